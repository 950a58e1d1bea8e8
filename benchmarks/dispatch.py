"""What the facade costs: every function of the standard at size 1, beside its library.

The aims. On the CPU, beside the NumPy function of the same name: no slower in the
geometric mean; none more than 60 ns slower, 120 ns where it takes ``device=``; ``sum``,
``max``, ``reshape`` and ``permute_dims`` at least 1.8 times as fast. On CUDA: at most
150 ns over the CuPy function that it calls. The functions that take more than the aim
are listed, each with how much longer it takes.

On the CPU calls are compared by their best runs. On CUDA a call takes 7 us and more,
and its best runs vary by more than the aim: there it is the median of the differences
of runs that follow each other, with CuPy's function in the run twice, to tell how much
it differs from itself; a function is over the aim for sure where the interval of 95 %
confidence is. What of that is dispatch, in warm caches, is measured beside it,
alone: a call whose library function does nothing, over the time of that function.
"""

from __future__ import annotations

import inspect
import math
import operator
import statistics
from itertools import repeat as times
from typing import TYPE_CHECKING, Any, NamedTuple

import calls
import record

import xdev
from xdev.facade.dispatch import library_of
from xdev.timing.verdict import ratio

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES = {"cpu": "NumPy", "cuda": "CuPy"}
INNER = 100  # calls in one timed loop, so that the loop's own call does not count
QUICKER = ("sum", "max", "reshape", "permute_dims")
PLACE = "looks where to make its array"
#: By device, the functions that must cost more, with the reason.
EXCEPTIONS = {
    "cpu": {
        "concat": "looks at each array",
        "linalg.eig": "always complex, as the standard says: before NumPy 2.5 a cast",
        "linalg.eigvals": "likewise",
    },
    "cuda": {
        "astype": "looks at the data type, and where the result is to be",
        "clip": "looks at its bounds",
        "from_dlpack": PLACE,
        "linspace": PLACE,
        "repeat": "looks at its counts",
        "fft.rfftfreq": PLACE,
        "linalg.eigh": "has named results, as the standard says: CuPy's have no names",
    },
}
AGAIN = "again"  # the library's function, beside itself
LONG = 20  # hundreds of calls that take well below a microsecond each
CUDA_LIMIT = 150.0  # ns


class Cost(NamedTuple):
    """What one function takes, of the best of its runs [s], and how much longer [ns].

    ``noise`` is how much longer the library's takes than itself; ``least`` is how much
    longer the function takes for sure; ``alone`` is what dispatch takes, None where the
    function does not end in one call of the library's.
    """

    name: str
    own: float
    peer: float
    over: float
    noise: float = 0.0
    least: float = 0.0
    alone: float | None = None

    @property
    def limit(self) -> float:
        """How much longer it may take on the CPU [ns]."""
        return 120.0 if self.name in calls.PLACED else 60.0

    def __str__(self) -> str:
        alone = "" if self.alone is None else f"{self.alone:9.0f}"
        return (
            f"{self.name:26}{self.own * 1e9:9.0f}{self.peer * 1e9:9.0f}"
            f"{self.over:9.0f}{self.own / self.peer:8.2f}{alone}"
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
    functions: dict[str, Callable[..., Any]],
    args: tuple[Any, ...],
    repeat: int,
    finish: Callable[[], object] = lambda: None,
    number: int = 1,
) -> dict[str, list[float]]:
    """Time functions in turn, in so many hundreds of calls a run [s per call]."""
    loops = {name: loop(function, args) for name, function in functions.items()}
    for call in loops.values():
        call()
    samples = record.sample(loops, number, repeat, finish)
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


def alone(
    name: str, args: tuple[Any, ...], x: Any, repeat: int
) -> dict[str, list[float]]:
    """Return runs with dispatch on CUDA and without; none if it cannot be told.

    The function of the library that ``x`` is of is one of the same parameters
    meanwhile, which returns what was computed before.
    """
    functions = library_of(x, name).functions
    if name not in functions:
        return {}
    real, asked = functions[name], list[Any]()

    def asking(*given: Any, **options: Any) -> Any:
        asked.append(real(*given, **options))
        return asked[-1]

    try:
        functions[name] = asking
        calls.own(name)(*args)
        if len(asked) != 1:
            return {}
        idle = idling(real, calls.own(name), asked[0])
        functions[name] = idle
        pair = {"xdev": calls.own(name), "idle": idle}
        return measure(pair, args, repeat, number=LONG)
    finally:
        functions[name] = real


def idling(
    function: Callable[..., Any], own: Callable[..., Any], result: Any
) -> Callable[..., Any]:
    """Return a function of the same parameters that returns a result.

    Where they are not known, as of CuPy's methods, they are those of xdev's function,
    which hands them on by these names, with defaults that are nobody's.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
        known = True
    except (TypeError, ValueError):
        parameters = inspect.signature(own).parameters.values()
        known = False
    empty = inspect.Parameter.empty
    plain, defaults = [], {"result": result}
    for p in parameters:
        needed = p.default is empty and p.kind is not p.KEYWORD_ONLY
        defaults[p.name] = p.default if known and p.default is not empty else ...
        default = empty if needed else _Name(p.name)
        plain.append(p.replace(annotation=empty, default=default))
    exec(f"def idle{inspect.Signature(plain)}: return result", defaults)  # noqa: S102
    return defaults["idle"]  # type: ignore[no-any-return]


class _Name(str):
    """A name, as a signature shows it among its defaults."""

    __slots__ = ()
    __repr__ = str.__str__


def cost_of(
    name: str, samples: dict[str, list[float]], dispatch: dict[str, list[float]]
) -> Cost:
    """Return what the runs of xdev's function and the library's say."""
    own, peer, *again = samples.values()
    best_of = [min(runs) * 1e9 for runs in dispatch.values()]
    only = best_of[0] - best_of[1] if best_of else None
    best = min(own), min(peer)
    if not again:
        return Cost(name, *best, (best[0] - best[1]) * 1e9)

    def over(runs: list[float]) -> float:
        pairs = zip(runs, peer, strict=True)
        return statistics.median(one - other for one, other in pairs) * 1e9

    least = (ratio(own, peer).low - 1) * statistics.median(peer) * 1e9
    return Cost(name, *best, over(own), over(*again), least, only)


def costs(
    device: xdev.Device, repeat: int, chosen: list[str]
) -> tuple[list[Cost], list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure functions on one device, results compared first; print the table.

    Returns what they cost, the rows of the record, and the runs that are of interest
    beside these alone.
    """
    table, rows, controls = [], [], []
    cuda, peer = device.type == "cuda", LIBRARIES[device.type]
    print(f"\n{device}: ns per call at size 1")
    last = f"{'alone':>9}" if cuda else ""
    print(f"{'':26}{'xdev':>9}{'library':>9}{'over':>9}{'ratio':>8}{last}")
    with xdev.use_device(device):
        arrays = calls.operands(device)
        for name in chosen:
            plain = counterpart(name, device)
            args = calls.arguments(name, arrays)
            try:
                plain(*args)
            except TypeError as error:
                print(f"{name:26} left out: the library's is called otherwise: {error}")
                continue
            calls.check(name, plain, args)
            pair = {"xdev": calls.own(name), peer: plain}
            again = {AGAIN: plain} if cuda else {}
            samples = measure(
                pair | again, args, repeat, lambda: xdev.synchronize(device)
            )
            dispatch = alone(name, args, arrays["x"], repeat) if cuda else {}
            table.append(cost_of(name, samples, dispatch))
            print(table[-1], flush=True)
            rows += [
                {"name": f"{device} {name}: {key}", "samples": samples[key]}
                for key in pair
            ]
            controls += [
                {"name": f"{device} {name}: {key}", "samples": runs}
                for key, runs in {
                    **{key: samples[key] for key in again},
                    **{f"{key}, alone": runs for key, runs in dispatch.items()},
                }.items()
            ]
    return table, rows, controls


def summarise(device: xdev.Device, table: list[Cost]) -> dict[str, Any]:
    """Print and return what the claims are about."""
    ratios = [cost.own / cost.peer for cost in table]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\n{device}: {len(table)} functions, {mean:.3f} of the library's time")
    print("the ten that cost most:")
    for cost in sorted(table, key=lambda cost: -cost.over)[:10]:
        print(cost, EXCEPTIONS[device.type].get(cost.name, ""))
    for cost in table:
        if cost.name in QUICKER:
            print(f"{cost.name}: {cost.peer / cost.own:.2f} times as fast")
    claims: dict[str, Any] = {"geometric_mean": mean, "functions": len(table)}
    if device.type == "cpu":
        beyond = {cost.name: cost.over for cost in table if cost.over > cost.limit}
        return claims | told("over_the_aim", beyond)
    middle, noise = (
        statistics.median(each)
        for each in ([c.over for c in table], [abs(c.noise) for c in table])
    )
    print(f"the median takes {middle:.0f} ns longer; CuPy beside itself {noise:.0f} ns")
    known = {cost.name: cost.alone for cost in table if cost.alone is not None}
    usual = statistics.median(known.values()) if known else math.nan
    print(f"dispatch alone, of {len(known)} functions: {usual:.0f} ns in the median")
    claims |= {
        "median_ns": middle,
        "of_cupy_beside_itself_ns": noise,
        "alone": len(known),
        "alone_median_ns": usual,
    }
    longer = {cost.name: cost.over for cost in table if cost.over > CUDA_LIMIT}
    surely = {cost.name: cost.least for cost in table if cost.least > CUDA_LIMIT}
    slow = {name: took for name, took in known.items() if took > CUDA_LIMIT}
    claims |= told("over_the_aim", longer) | told("over_it_for_sure", surely)
    return claims | told("alone_over_150_ns", slow)


def told(label: str, beyond: dict[str, float]) -> dict[str, Any]:
    """Print and return how many functions take more, and which by how much."""
    text = ", ".join(f"{name} +{over:.0f} ns" for name, over in beyond.items())
    print(f"{label}, {len(beyond)}: {text or 'none'}")
    return {label: len(beyond), f"{label}_which": text or "none"}


def main() -> None:
    """Measure on the CPU, and on CUDA where it is."""
    parser = record.arguments(__doc__ or "")
    parser.add_argument("--repeat", type=int, default=60, help="(default: 60)")
    parser.add_argument("names", nargs="*", help="functions (default: all)")
    options = parser.parse_args()
    chosen = options.names or calls.names()
    rows: list[dict[str, Any]] = []
    controls: list[dict[str, Any]] = []
    claims = {}
    cuda = xdev.Device("cuda")
    for device in (xdev.Device("cpu"), *([cuda] if cuda.available else [])):
        table, samples, beside = costs(device, options.repeat, chosen)
        rows += samples
        controls += record.shortened(beside)
        claims[str(device)] = summarise(device, table)
    if not cuda.available:
        print(f"\nleft out: {cuda} ({cuda.reason})")
    record.write(options.json, rows, claims=claims, controls=controls)


if __name__ == "__main__":
    main()
