"""The picture of a snapshot, by its pixels."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

import xdev
from xdev import memory
from xdev.memory import history as plots

MIB = 1 << 20


def event(action, address, nbytes, seconds, line=0):
    frames = [{"filename": "mine.py", "line": line, "name": "f"}]
    return {
        "action": action,
        "addr": address,
        "size": nbytes * MIB,
        "stream": 0,
        "time_us": int(seconds * 1e6),
        "frames": frames,
    }


def block(address, nbytes, line=None):
    return {
        "address": address,
        "size": nbytes * MIB,
        "state": "inactive" if line is None else "active_allocated",
        "frames": [] if line is None else event("", 0, 0, 0, line)["frames"],
    }


def snapshot(blocks, events=()):
    nbytes = sum(each["size"] for each in blocks)
    segment = {"address": 0, "device": 0, "total_size": nbytes, "blocks": blocks}
    return {"segments": [segment], "device_traces": [list(events)], "pools": ["mine"]}


def pixels(picture, colour):
    """Return how many pixels of a picture have a colour."""
    near = np.abs(picture[..., :3] - to_rgb(colour)) < 0.01
    return int(near.all(axis=-1).sum())


def drawn(tmp_path, found):
    path = tmp_path / "out.png"
    plots.draw(found, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return imread(path)


def test_the_map_gives_each_block_its_share_and_its_lines_colour(tmp_path):
    blocks = [block(0, 50, line=1), block(50 * MIB, 20), block(70 * MIB, 30, line=2)]
    picture = drawn(tmp_path, snapshot(blocks))
    first, second = (pixels(picture, colour) for colour in plots.COLOURS[:2])
    free = pixels(picture, plots.UNUSED)
    assert 1.5 < first / second < 1.8
    assert 2.3 < first / free < 2.7
    assert pixels(picture, plots.COLOURS[2]) == pixels(picture, plots.USED) == 0


def test_the_timeline_is_as_high_as_what_was_in_use(tmp_path):
    """One half of the time all of the segment is in use, then a quarter of it."""
    events = [
        event("alloc", 0, 25, 0, line=1),
        event("alloc", 25 * MIB, 75, 0, line=2),
        event("free_completed", 25 * MIB, 75, 1),
        event("segment_free", 1 << 40, 1, 2),
    ]
    found = snapshot([block(0, 25, line=1), block(25 * MIB, 75)], events)
    picture = drawn(tmp_path, found)
    used = np.abs(picture[..., :3] - to_rgb(plots.USED)).max(axis=-1) < 0.01
    heights = used[: len(used) // 2].sum(axis=0)
    heights = heights[heights > 0]
    early, late = (np.median(half) for half in np.array_split(heights, 2))
    assert 3.8 < early / late < 4.2
    # The block that is gone at the end is in the map of the most in use.
    half = picture.shape[1] // 2
    below = picture[picture.shape[0] // 2 : picture.shape[0] * 4 // 5]
    assert pixels(below[:, :half], plots.COLOURS[0]) > 1000
    assert pixels(below[:, half:], plots.COLOURS[0]) == 0


def test_a_real_record_is_drawn(tmp_path):
    memory.record_history()
    try:
        kept = [xdev.empty(n * 50_000, device="cpu") for n in range(2, 30)]
        del kept[::3]
        picture = drawn(tmp_path, memory.snapshot("cpu"))
    finally:
        memory.record_history(enabled=False)
    assert pixels(picture, plots.COLOURS[0]) > 1000
    assert pixels(picture, plots.USED) > 1000


def test_a_missing_matplotlib_is_named_with_its_remedy(tmp_path, python):
    program = f"""
import sys
sys.modules["matplotlib"] = None
from xdev.cli import main
sys.exit(main(["memory", "--plot", {str(tmp_path / "out.png")!r}]))
"""
    done = python("-c", program)
    assert done.returncode == 2
    assert 'pip install ".[plot]"' in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("room", ["xdev.memory", "xdev.cli.memory"])
def test_matplotlib_is_loaded_by_a_picture_only(room, python):
    done = python("-c", f"import sys, {room}; print('matplotlib' in sys.modules)")
    assert done.stdout == "False\n"


def test_lines_beyond_the_colours_share_one(tmp_path):
    count = len(plots.COLOURS) + 5
    blocks = [block(n * MIB, 1, line=n + 1) for n in range(count)]
    picture = drawn(tmp_path, snapshot(blocks))
    one, others = (pixels(picture, c) for c in (plots.COLOURS[3], plots.OTHER))
    assert 4 < others / one < 6


def test_every_pool_has_a_part_of_the_picture(tmp_path):
    none = drawn(tmp_path, {"segments": [], "device_traces": [], "pools": []})
    one = drawn(tmp_path, snapshot([block(0, 1)]))
    two = snapshot([block(0, 1)])
    two |= {"device_traces": [[], []], "pools": ["a", "b"]}
    assert none.shape == one.shape
    assert drawn(tmp_path, two).shape[0] == 2 * one.shape[0]
