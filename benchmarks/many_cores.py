"""What the CPU's threads are worth: functions of 2^24 float32 beside NumPy and PyTorch.

Rows of ``benchmarks/facade.py``, on the CPU; the environment says how many cores there
were, and ``XDEV_NUM_THREADS`` how many of them xdev's functions take.
"""

from __future__ import annotations

import warnings
from argparse import Namespace

import facade
import record

import xdev
from xdev import _config

FUNCTIONS = "add,multiply,exp,sin,sum,mean,var,max,where,take,concat,astype,sort"


def main() -> None:
    """Measure on the CPU."""
    parser = record.arguments((__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=2**24, help="(default: 2^24)")
    parser.add_argument("--limit", type=float, default=60, help="of all [s]")
    options = parser.parse_args()
    chosen = Namespace(only=FUNCTIONS, dtypes="float32")
    cases = facade.chosen(chosen, [options.size])
    with warnings.catch_warnings(), xdev.use_device("cpu"):
        warnings.simplefilter("ignore")  # of libraries' own calls
        rows, _ = facade.measure(cases, xdev.Device("cpu"), options.limit)
    record.write(options.json, rows, threads=_config.num_threads())


if __name__ == "__main__":
    main()
