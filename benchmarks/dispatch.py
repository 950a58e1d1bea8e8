"""What the facade costs: xdev's functions beside NumPy's and CuPy's own at size 1.

The claims: an elementwise function of NumPy arrays takes at most 100 ns over NumPy's,
and ``xdev.empty`` on CUDA at most 1.2 times ``cupy.empty``.
"""

from __future__ import annotations

import statistics
from itertools import repeat as times
from typing import TYPE_CHECKING, Any

import numpy as np
import record

import xdev
from xdev import facade

if TYPE_CHECKING:
    from collections.abc import Callable

ELEMENTWISE = sorted(
    {*facade.arithmetic.__all__, *facade.logic.__all__, *facade.transcendental.__all__}
)
OTHERS = ("sum", "max", "reshape", "permute_dims", "matmul", "sort")
TWO = {"add", "atan2", "copysign", "divide", "floor_divide", "hypot", "logaddexp"}
TWO |= {"nextafter", "pow", "remainder", "subtract", "multiply", "maximum", "minimum"}
TWO |= {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
TWO |= {"logical_and", "logical_or", "logical_xor", "matmul"}
TWO |= {f"bitwise_{op}" for op in ("and", "or", "xor", "left_shift", "right_shift")}
INNER = 100  # calls in one timed loop, so that the loop's own call does not count


def arguments(name: str, device: object) -> tuple[Any, ...]:
    """Return arguments of size 1 that a function takes."""
    kind = "float32"
    if name.startswith("bitwise"):
        kind = "int32"
    elif name.startswith("logical"):
        kind = "bool"
    # 0.5 is in every domain but acosh's; integers and booleans become 1.
    value = 0.5 if kind == "float32" and name != "acosh" else 1
    x = xdev.full((1, 1), value, dtype=kind, device=device)
    rest: dict[str, tuple[Any, ...]] = {
        "clip": (0.0, 1.0),
        "reshape": ((1,),),
        "permute_dims": ((1, 0),),
    }
    return (x, x) if name in TWO else (x, *rest.get(name, ()))


def loop(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], None]:
    """Return a call of the function in a loop, written out for its arity."""
    first, *others = args

    def one() -> None:
        for _ in times(None, INNER):
            function(first)

    def two() -> None:
        for _ in times(None, INNER):
            function(first, second)

    def three() -> None:
        for _ in times(None, INNER):
            function(first, second, third)

    second, third = (*others, None, None)[:2]
    return (one, two, three)[len(others)]


def measure(
    own: Callable[..., Any],
    plain: Callable[..., Any],
    args: tuple[Any, ...],
    repeat: int,
    finish: Callable[[], object],
) -> dict[str, list[float]]:
    """Time both in turn [s per call]."""
    pair = {"xdev": loop(own, args), "library": loop(plain, args)}
    for call in pair.values():
        call()
    samples = record.sample(pair, 3, repeat, finish)
    return {name: [run / INNER for run in runs] for name, runs in samples.items()}


def rows_of(device: xdev.Device, repeat: int) -> list[dict[str, Any]]:
    """Measure every function on one device and print the table."""
    library = xdev.namespace(device)
    cases = [(name, arguments(name, device)) for name in (*ELEMENTWISE, *OTHERS)]
    rows = []
    print(f"\n{device}: xdev beside {library.__name__}, ns per call at size 1")
    print(f"{'':24}{'xdev':>9}{library.__name__:>9}{'over':>9}{'ratio':>8}")
    with xdev.use_device(device):
        cases += [("empty", (1,)), ("empty", ((64, 1024),)), ("zeros", (1,))]
        for name, args in cases:
            plain = getattr(library, name)
            samples = measure(
                getattr(xdev, name),
                plain,
                args,
                repeat,
                lambda: xdev.synchronize(device),
            )
            own, other = (statistics.median(samples[key]) for key in samples)
            shown = f"{name}{args[0]}" if name in ("empty", "zeros") else name
            print(
                f"{shown:24}{own * 1e9:9.0f}{other * 1e9:9.0f}"
                f"{(own - other) * 1e9:9.0f}{own / other:8.2f}"
            )
            rows += [
                {"name": f"{device} {shown} {key}", "samples": runs}
                for key, runs in samples.items()
            ]
    return rows


def main() -> None:
    """Measure on the CPU, and on CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=15, help="(default: 15)")
    options = parser.parse_args()
    rows = rows_of(xdev.Device("cpu"), options.repeat)
    cuda = xdev.Device("cuda")
    if cuda.available:
        rows += rows_of(cuda, options.repeat)
    else:
        print(f"\nleft out: {cuda} ({cuda.reason})")
    over = {
        name: statistics.median(own["samples"]) - statistics.median(plain["samples"])
        for name in ELEMENTWISE
        for own, plain in zip(rows[::2], rows[1::2], strict=True)
        if own["name"] == f"cpu {name} xdev"
    }
    worst = max(over, key=lambda name: over[name])
    print(
        f"\nelementwise on the CPU: {np.median(list(over.values())) * 1e9:.0f} ns over "
        f"NumPy in the middle, {over[worst] * 1e9:.0f} ns at worst ({worst})"
    )
    record.write(options.json, rows, claim="elementwise: at most 100 ns over NumPy")


if __name__ == "__main__":
    main()
