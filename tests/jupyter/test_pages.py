"""The pages' blocks, each pasted whole into a notebook, show what the pages show."""

import doctest
import io
import re
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import xdev

DOCS = Path(__file__).parent.parent.parent / "docs"
BLOCK = re.compile(r"```python\n(>>> .*?)```", re.DOTALL)
PLACE = re.compile(r"<doctest [^>]*>:\d+")  # of a line in a page: a cell has another
PAGES = {
    str(path.relative_to(DOCS)): BLOCK.findall(text)
    for path in sorted(DOCS.rglob("*.md"))
    if BLOCK.search(text := path.read_text())
}
#: What pages say that one installs for them.
NEEDED = {
    "distributed.md": "dask.array",
    "facade.md": "array_api_strict",
    "timing.md": "matplotlib",
}
RAISED = "Traceback (most recent call last):\n"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def shell():
    """A shell that shows every value, as Python's own does."""
    main = sys.modules["__main__"]  # the shell puts its own there: nothing can spawn
    made = InteractiveShell()
    made.ast_node_interactivity = "all"
    made.display_formatter.formatters["text/plain"].pprint = False
    made.showtraceback = lambda *_, **__: None
    yield made
    made.history_manager.enabled = False
    made.reset()  # what cells left would live on
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


def shown(shell, cell):
    """Return what a shell shows of a cell, as Python's own shell has it."""
    told = io.StringIO()
    with redirect_stdout(told):
        error = shell.run_cell(cell).error_in_exec
    values = re.sub(r"^Out\[\d+\]: ?", "", told.getvalue(), flags=re.MULTILINE)
    if error is None:
        return values
    return values + RAISED + "".join(traceback.format_exception_only(error))


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_is_pasted_shows_what_the_page_shows(page, shell):
    pytest.importorskip(NEEDED.get(page, "numpy"))
    for block in PAGES[page]:
        examples = doctest.DocTestParser().get_examples(block)
        cell = "\n".join(each.source for each in examples)
        wanted = "".join(
            each.want if each.exc_msg is None else RAISED + each.exc_msg
            for each in examples
        )
        with xdev.use_device("cpu"):
            found = shown(shell, cell)
        wanted = PLACE.sub("...", wanted)
        same = doctest.OutputChecker().check_output(wanted, found, FLAGS)
        assert same, f"{cell}\nshows\n{found}"
