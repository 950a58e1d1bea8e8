"""The picture of a snapshot, by its pixels."""

import pickle

import numpy as np
import pytest

from xdev.cli import main

MIB = 1 << 20
FIRST, FREE, USED = "#0072b2", "#e4e4e4", "#b0c4d8"


def event(action, address, nbytes, seconds, line, file="mine.py"):
    frames = [{"filename": file, "line": line, "name": "f"}]
    time = {"time_us": int(seconds * 1e6), "stream": 0, "frames": frames}
    return {"action": action, "addr": address, "size": nbytes * MIB, **time}


def snapshot(blocks, events=()):
    """Return a snapshot of blocks of so many MiB: of a line, or free without one."""
    at, described = 0, []
    for nbytes, line in blocks:
        state = "active_allocated" if line else "inactive"
        frames = event("", 0, 0, 0, line)["frames"]
        block = {"address": at, "size": nbytes * MIB, "state": state, "frames": frames}
        described.append(block)
        at += nbytes * MIB
    segment = {"address": 0, "device": 0, "total_size": at, "blocks": described}
    return {"segments": [segment], "device_traces": [list(events)], "pools": ["mine"]}


@pytest.fixture
def drawn(tmp_path):
    """Return what draws a saved snapshot, and returns the picture."""
    image = pytest.importorskip("matplotlib.image")

    def draw(found):
        saved, path = tmp_path / "saved.pickle", tmp_path / "out.png"
        saved.write_bytes(pickle.dumps(found))
        assert main(["memory", "--plot", str(path), str(saved)]) == 0
        return image.imread(path)

    return draw


def pixels(picture, colour):
    """Return how many pixels of a picture have a colour."""
    rgb = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    return int((np.abs(picture[..., :3] - rgb) < 0.01).all(axis=-1).sum())


def test_the_maps_show_each_blocks_share_and_the_timeline_what_was_in_use(drawn):
    """Half of the time all of the segment is in use, then a quarter of it."""
    events = [event("alloc", 0, 25, 0, 1), event("alloc", 25 * MIB, 75, 0, 2)]
    events += [event("free_completed", 25 * MIB, 75, 1, 2)]
    events += [event("segment_free", 1 << 40, 1, 2, 2)]
    picture = drawn(snapshot([(25, 1), (75, 0)], events))
    height, width, _ = picture.shape
    timeline, maps = picture[: height // 2], picture[height // 2 : height * 4 // 5]
    peak, end = maps[:, : width // 2], maps[:, width // 2 :]
    assert 2.3 < pixels(end, FREE) / pixels(end, "#e69f00") < 3.7
    assert pixels(peak, FIRST) > 1000
    assert pixels(end, FIRST) == 0, "the block of the second line is gone"
    used = np.array([pixels(timeline[:, k : k + 1], USED) for k in range(width)])
    early, late = map(np.median, np.array_split(used[used > 0], 2))
    assert 3.8 < early / late < 4.2


def test_names_are_shown_as_they_are(drawn, monkeypatch):
    files, legends = ["__init__.py", "$a_{$.py"], []
    found = snapshot([(1, 1), (1, 1)]) | {"pools": ["$b_{$"]}
    for block, file in zip(found["segments"][0]["blocks"], files, strict=True):
        block["frames"] = event("", 0, 0, 0, 1, file)["frames"]
    figure = pytest.importorskip("matplotlib.figure")
    save = figure.Figure.savefig

    def keep(self, *args, **options):
        legends.extend(self.subfigs[0].legends)
        save(self, *args, **options)

    monkeypatch.setattr(figure.Figure, "savefig", keep)
    drawn(found)
    texts = [text.get_text() for text in legends[0].get_texts()]
    assert texts == [f"{file}:1" for file in files] + ["free"]


def test_a_missing_matplotlib_is_named_with_its_remedy(tmp_path, python):
    program = f"""
import sys
import xdev.cli
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
sys.exit(xdev.cli.main(["memory", "--plot", {str(tmp_path / "out.png")!r}]))
"""
    done = python("-c", program)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'pip install ".[plot]"' in done.stderr
