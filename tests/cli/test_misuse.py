"""Hostile words and files: a command ends with a status, a record is refused."""

import copy
import json
import pickle
import sys
import time
from contextlib import suppress

import entries
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from xdev import ConfigurationError, _config
from xdev.cli import main

LONGEST = 10  # s, of a command
WORD = "?"  # stands for what is hostile
COMMANDS = (
    *("?", "info ?", "doctor ?", "cache ?", "cache clear --older ?", "cache path ?"),
    *("cache warm --functions ?", "cache warm --dtypes ?", "bench --n ?", "bench ?"),
    *("bench --dtype ?", "bench --device ?", "bench --baseline ?", "memory ?"),
    *("bench --json ? --baseline ?", "memory --plot ?", "memory --snapshot ? --x"),
    *("memory --plot out.png ?", "timeit -n ? pass", "timeit -r ? -n 1 pass"),
    *("timeit -u ? pass", "timeit -n 1 -s ? pass", "--json ?", "info --json ?"),
)
FILES = {
    "empty.json": b"",
    "deep.json": b"[" * 200_000,
    "numbers.json": b"[1, 2]",
    "record.json": b'{"environment": [], "rows": [{"name": 1, "samples": [-1]}]}',
    "no text.json": b"\xff\xfe\0",
    "empty.pickle": b"",
    "cut.pickle": pickle.dumps({"segments": [1, 2]})[:-4],
    "code.pickle": b"cos\nsystem\n(S'touch executed'\ntR.",
    "large.pickle": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
    "program.py": b"\0def",
    "exits.py": b"raise SystemExit('no')",
}
#: A word of the command line has no NUL; bytes of no encoding are such as the last.
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.sampled_from((*FILES, ".", "loop", "none/none", "-", "--", "", "\udcff"))
TEXTS |= st.text(LETTERS, max_size=9).filter(lambda text: not text.strip().isdecimal())


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.filterwarnings("ignore")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(COMMANDS), TEXTS)
@example("bench --baseline ?", "deep.json")
@example("memory --plot out.png ?", "code.pickle")
def test_a_command_ends_with_a_status(damaged, command, text):
    words = [text if word == WORD else word for word in command.split(" ")]
    start = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(damaged)
        patch.setattr(_config, "cache_dir", lambda: damaged / "cache")
        patch.setattr(sys, "path", [*sys.path])  # timeit's modules are the folder's too
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code
    assert status in {0, 1, 2}
    assert time.monotonic() - start < LONGEST
    assert not (damaged / "executed").exists()


RECORD = json.loads(json.dumps(entries.compared().as_dict()))
SCALARS = st.none() | st.integers(-5, 5) | st.text(max_size=2)
SCALARS |= st.sampled_from((10**400, 1e308, 5e-324, float("inf"), float("nan"), True))
JSON = st.recursive(
    SCALARS,
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.dictionaries(st.sampled_from(("name", "rows", "")), parts, max_size=2)
    ),
    max_leaves=5,
)


def paths(whole, path=()):
    parts = whole.items() if isinstance(whole, dict) else enumerate(whole)
    for key, part in parts:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from paths(part, (*path, key))


@settings(max_examples=12 * settings.default.max_examples)
@given(st.sampled_from([*paths(RECORD)]), JSON)
@example(("rows", 0, "conditions"), [1])
@example(("rows", 0, "samples", 0), 10**400)
def test_a_forged_record_is_compared_or_refused(path, value):
    record = part = copy.deepcopy(RECORD)
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with suppress(ConfigurationError):
        assert entries.compared().since(record).text()
