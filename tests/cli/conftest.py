"""What several tests of the command line share."""

import pytest

from xdev.cli import main


@pytest.fixture
def ended(capsys):
    """Return what runs a command that ends the program; its status, and its texts."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main([*words])
        return ended.value.code, *capsys.readouterr()

    return run
