"""IPython's ``%timeit`` of an asynchronous call, beside xdev's of the same call.

A call on CUDA arrays returns when its work is queued. ``%timeit -n 100`` therefore
times how long it takes to queue it, as long as the queue has room. Left to itself
``%timeit`` makes so many calls that the queue, of about a thousand, is full: then each
waits for one to be done, and the mean is near the truth, whatever the first ones took.
``xdev.timing.timeit`` waits at the end of each run. The claim: with ``-n 100`` the
naive figure is wrong by more than 10 times. Without CUDA there is nothing to measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import timing

if TYPE_CHECKING:
    from IPython.core.magics.execution import TimeitResult

CALLS, REPEAT = 100, 4  # together less than the queue holds, by two launches each
SIZE = 2560  # of square matrices: long beside a launch, and 10,000 of them take seconds


def naive(x: Any, options: str) -> TimeitResult:
    """Return what ``%timeit`` says of ``xp.matmul(x, x)``, from an empty queue on."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.push({"xp": xdev, "x": x})
    xdev.synchronize(xdev.device_of(x))
    return shell.run_line_magic("timeit", f"-o {options} xp.matmul(x, x)")


def main() -> None:
    """Measure both ways and print them."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--n", type=int, default=SIZE, help="(default: %(default)s)")
    options = parser.parse_args()
    cuda = xdev.Device("cuda")
    if not cuda.available:
        print(f"left out, all of it: {cuda.reason}")
        record.write(options.json, [], left_out={str(cuda): cuda.reason})
        return
    random = np.random.default_rng(0).random((options.n, options.n), np.float32)
    x = xdev.asarray(random, device=cuda)
    xdev.matmul(x, x)
    ours = timing.timeit(xdev.matmul, x, x, number=CALLS, repeat=REPEAT)
    found = {
        "xdev.timing.timeit": ours,
        f"%timeit -n {CALLS}": naive(x, f"-n {CALLS} -r {REPEAT}"),
        "%timeit": naive(x, f"-r {REPEAT}"),
    }
    rows = []
    for name, each in found.items():
        ratio = each.average / ours.average
        print(f"{name:24}{each}; {ratio:.3g} of the truth")
        rows.append({"name": name, "samples": each.timings, "ratio": ratio})
    truth = {"device": ours.device, "launch": ours.launch}
    rows += [{"name": f"xdev's {k} time", "samples": v} for k, v in truth.items()]
    record.write(options.json, rows, n=options.n)


if __name__ == "__main__":
    main()
