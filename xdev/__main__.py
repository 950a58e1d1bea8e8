"""``python -m xdev``: see :mod:`xdev.cli`."""

import sys

from xdev.cli import main

if __name__ == "__main__":
    sys.exit(main())
