"""What the facade costs: every function of the standard at size 1, beside its library.

The aims. On the CPU, beside the NumPy function of the same name: no slower in the
geometric mean; none more than 60 ns slower, 120 ns where it takes ``device=``; ``sum``,
``max``, ``reshape`` and ``permute_dims`` at least 1.8 times as fast. On CUDA: at most
150 ns over the CuPy function that it calls. The functions that take more than the aim
are listed, each with how much longer it takes.
"""

from __future__ import annotations

import math
import operator
from itertools import repeat as times
from typing import TYPE_CHECKING, Any, NamedTuple

import calls
import record

import xdev

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES = {"cpu": "NumPy", "cuda": "CuPy"}
INNER = 100  # calls in one timed loop, so that the loop's own call does not count
QUICKER = ("sum", "max", "reshape", "permute_dims")
#: Functions that must cost more on the CPU, with the reason.
EXCEPTIONS = {
    "concat": "looks at each array: it may have been freed",
    "arange": "arguments that have names alone take CPython 70 ns",
    "linalg.eig": "always complex, as the standard says: NumPy's is cast",
    "linalg.eigvals": "likewise",
    "linalg.pinv": "its default of rtol is the standard's, which depends on the shape",
}
OFTEN = 30_000  # calls, after which elementwise functions are machine code


class Cost(NamedTuple):
    """What one function takes [s]: the best of its runs, which noise only slows."""

    name: str
    own: float
    peer: float

    @property
    def over(self) -> float:
        """How much longer xdev's takes [ns]."""
        return (self.own - self.peer) * 1e9

    @property
    def limit(self) -> float:
        """How much longer it may take on the CPU [ns]."""
        return 120.0 if self.name in calls.PLACED else 60.0

    def __str__(self) -> str:
        return (
            f"{self.name:26}{self.own * 1e9:9.0f}{self.peer * 1e9:9.0f}"
            f"{self.over:9.0f}{self.own / self.peer:8.2f}"
        )


def loop(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], None]:
    """Return a call of the function in a loop, written out for its arity."""
    first, second, third, *_ = (*args, None, None, None)

    def none() -> None:
        for _ in times(None, INNER):
            function()

    def one() -> None:
        for _ in times(None, INNER):
            function(first)

    def two() -> None:
        for _ in times(None, INNER):
            function(first, second)

    def three() -> None:
        for _ in times(None, INNER):
            function(first, second, third)

    call = (none, one, two, three)[len(args)]
    # The interpreter adapts code to what it calls: each gets its own, as in a program.
    call.__code__ = call.__code__.replace()
    return call


def measure(
    pair: dict[str, Callable[..., Any]],
    args: tuple[Any, ...],
    repeat: int,
    finish: Callable[[], object],
) -> dict[str, list[float]]:
    """Time two functions in turn [s per call]."""
    loops = {name: loop(function, args) for name, function in pair.items()}
    for call in loops.values():
        call()
    samples = record.sample(loops, 1, repeat, finish)
    return {name: [run / INNER for run in runs] for name, runs in samples.items()}


def counterpart(name: str, device: xdev.Device) -> Callable[..., Any]:
    """Return the function of the device's library that a user would call instead.

    On CUDA that is CuPy's by the standard's name, or what array_api_compat calls so.
    """
    if device.type == "cpu":
        found = operator.attrgetter(name)(xdev.namespace(device))
    else:
        from array_api_compat import cupy as standard

        for namespace in (xdev.namespace(device), standard):
            try:
                found = operator.attrgetter(name)(namespace)
                break
            except AttributeError:
                found = None
    return found  # type: ignore[no-any-return]


def costs(
    device: xdev.Device, repeat: int, chosen: list[str]
) -> tuple[list[Cost], list[dict[str, Any]]]:
    """Measure functions on one device, results compared first; print the table."""
    table, rows = [], []
    print(f"\n{device}: ns per call at size 1")
    print(f"{'':26}{'xdev':>9}{'library':>9}{'over':>9}{'ratio':>8}")
    with xdev.use_device(device):
        arrays = calls.operands(device)
        for _ in range(OFTEN):
            xdev.abs(arrays["x"])
        for name in chosen:
            plain = counterpart(name, device)
            args = calls.arguments(name, arrays)
            try:
                plain(*args)
            except TypeError as error:
                print(f"{name:26} left out: the library's is called otherwise: {error}")
                continue
            calls.check(name, plain, args)
            pair = {"xdev": calls.own(name), LIBRARIES[device.type]: plain}
            samples = measure(pair, args, repeat, lambda: xdev.synchronize(device))
            table.append(Cost(name, *(min(runs) for runs in samples.values())))
            print(table[-1], flush=True)
            rows += [
                {"name": f"{device} {name}: {key}", "samples": runs}
                for key, runs in samples.items()
            ]
    return table, rows


def summarise(device: xdev.Device, table: list[Cost]) -> dict[str, Any]:
    """Print and return what the claims are about."""
    ratios = [cost.own / cost.peer for cost in table]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\n{device}: {len(table)} functions, {mean:.3f} of the library's time")
    print("the ten that cost most:")
    for cost in sorted(table, key=lambda cost: -cost.over)[:10]:
        reason = EXCEPTIONS.get(cost.name, "") if device.type == "cpu" else ""
        print(cost, reason)
    for cost in table:
        if cost.name in QUICKER:
            print(f"{cost.name}: {cost.peer / cost.own:.2f} times as fast")
    beyond = [
        f"{cost.name} +{cost.over:.0f} ns"
        for cost in table
        if cost.over > (cost.limit if device.type == "cpu" else 150.0)
    ]
    told = ", ".join(beyond) or "none"
    print(f"over the aim, {len(beyond)} of {len(table)}: {told}")
    return {
        "geometric_mean": mean,
        "functions": len(table),
        "over_the_aim": len(beyond),
        "which": told,
    }


def main() -> None:
    """Measure on the CPU, and on CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=60, help="(default: 60)")
    parser.add_argument("names", nargs="*", help="functions (default: all)")
    options = parser.parse_args()
    chosen = options.names or calls.names()
    rows: list[dict[str, Any]] = []
    claims = {}
    cuda = xdev.Device("cuda")
    for device in (xdev.Device("cpu"), *([cuda] if cuda.available else [])):
        table, samples = costs(device, options.repeat, chosen)
        rows += samples
        claims[str(device)] = summarise(device, table)
    if not cuda.available:
        print(f"\nleft out: {cuda} ({cuda.reason})")
    record.write(options.json, rows, claims=claims)


if __name__ == "__main__":
    main()
