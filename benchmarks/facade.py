"""Every function of the facade on large arrays, beside CuPy or NumPy, and PyTorch.

    python benchmarks/facade.py [--json FILE] [--device cuda] [--sizes 10000 67108864]
                                [--only sort,argsort] [--dtypes float32]

A row is a function in one use, listed before anything was measured; ``ratio`` is
xdev's time over the best peer's. A time is from the first call of a run to the end of
the device's work, over the calls; the libraries take turns on the same arrays, each
with its own allocator's pool. Results are compared at the smallest size. Sizes are
elements of a vector; a matrix is the largest square of no more. ``solve`` and the like
take at most 2048 x 2048, singular values and symmetric matrices 1024 x 1024, ``eig``
256 x 256. Views, whose time does not depend on the size, are made at the smallest only.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
import warnings
from typing import TYPE_CHECKING, Any

import facade_rows
import numpy as np
import record
from facade_rows import ALL, LEFT_OUT, ROWS, VIEW, Inputs, Row

import xdev
from xdev import _optional, native

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping, Sequence

SIZES = {"cpu": (10**4, 2**24), "cuda": (10**4, 2**26)}
LIMITS = {"cpu": 600, "cuda": 180}  # of the whole program [s]
LEAST, MOST = 0.002, 0.1  # of a library's runs of a row [s]
PARTS = 6  # of a row's share of the limit: three libraries, half of it to compile in
ROUNDS, CALLS = 9, 100  # at most
ROUNDS_AT_LEAST = 3
LONG = 0.2  # of a call that is timed once [s]
REST = 0.02  # threads of the library before look for work no longer [s]
TOLERANCE = 1e-3  # libraries round differently


def spoken(row: Row, inputs: Inputs) -> dict[str, tuple[Any, str | None]]:
    """Return each library, xdev first, and how it says a row; PyTorch where it is."""
    peer = "NumPy" if inputs.library is np else "CuPy"
    found = {"xdev": (xdev, row.xdev), peer: (inputs.library, row.numpy)}
    if importlib.util.find_spec("torch"):
        found["PyTorch"] = importlib.import_module("torch"), row.torch
    return found


def candidates(
    row: Row, inputs: Inputs, device: xdev.Device
) -> tuple[dict[str, Callable[[], Any]], dict[str, float], dict[str, str]]:
    """Make each library's call of a row, twice.

    Returns
    -------
    calls : dict of str to callable without arguments
    first : dict of str to float
        How long the first call took [s]; it may compile.
    errors : dict of str to str
        Why others have no call.
    """
    calls, first, errors = {}, {}, {}
    for name, (library, expression) in spoken(row, inputs).items():
        if expression is None:
            errors[name] = "no such function"
            continue
        try:
            call = facade_rows.call(expression, library, inputs, device)
            start = time.perf_counter()
            call()
            xdev.synchronize(device)
            first[name] = float(f"{time.perf_counter() - start:.4g}")
            call()
            xdev.synchronize(device)
            calls[name] = call
        except Exception as error:  # noqa: BLE001 - it must not end the program
            errors[name] = text_of(error)
            free(device)
    return calls, first, errors


def text_of(error: Exception) -> str:
    """Return an error's type and first line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def timed(
    calls: Mapping[str, Callable[[], Any]], seconds: float, device: xdev.Device
) -> dict[str, list[float]]:
    """Return samples of each call, in turn: about so many seconds of each."""

    def finish() -> None:
        xdev.synchronize(device)

    def run(name: str, number: int) -> float:
        if device.type == "cpu":
            time.sleep(REST)
        samples = record.sample({name: calls[name]}, number, 1, finish)
        return samples[name][0]

    once = {name: run(name, 1) for name in calls}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    spent = dict.fromkeys(calls, 0.0)
    names = list(calls)
    for turn in range(ROUNDS):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            enough = turn >= ROUNDS_AT_LEAST and spent[name] >= seconds
            if once[name] >= LONG or enough:
                continue
            number = max(1, min(CALLS, int(seconds / ROUNDS / once[name])))
            samples[name].append(run(name, number))
            spent[name] += number * samples[name][-1]
    return {name: samples[name] or [once[name]] for name in names}


def different(calls: Mapping[str, Callable[[], Any]]) -> dict[str, str]:
    """Return whose results are other than the first's, and how."""
    results = {name: list(arrays(call())) for name, call in calls.items()}
    base, *others = results
    found = {}
    for name in others:
        shapes = [[x.shape for x in results[who]] for who in (base, name)]
        if shapes[0] != shapes[1]:
            found[name] = f"shapes {shapes[1][:3]}, {base}'s are {shapes[0][:3]}"
        elif not all(map(close, results[base], results[name])):
            found[name] = f"values are not {base}'s"
    return found


def close(x: Any, y: Any) -> bool:
    """Tell whether two arrays of the host have the same values."""
    return np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def arrays(result: Any) -> Iterator[Any]:
    """Yield the arrays of a result, on the host."""
    if isinstance(result, tuple | list):
        for each in result:
            yield from arrays(each)
    elif hasattr(result, "detach"):
        yield result.detach().cpu().numpy()
    else:
        yield xdev.to_numpy(result) if hasattr(result, "shape") else np.asarray(result)


def free(device: xdev.Device) -> None:
    """Give back what the pools of all libraries keep."""
    xdev.memory.reclaim(device=device)
    if device.type == "cuda":
        importlib.import_module("torch").cuda.empty_cache()
        _optional.cupy().get_default_memory_pool().free_all_blocks()


def rows_of(
    row: Row, inputs: Inputs, device: xdev.Device, seconds: float, *, check: bool
) -> list[dict[str, Any]]:
    """Measure a row; return the record's rows, one for each library."""
    calls, first, errors = candidates(row, inputs, device)
    samples: dict[str, list[float]] = {}
    differs: dict[str, str] = {}
    try:
        samples = timed(calls, seconds, device) if calls else {}
        differs = different(calls) if check and row.alike and calls else {}
    except Exception as error:  # noqa: BLE001 - as above
        errors |= dict.fromkeys(calls.keys() - samples.keys(), text_of(error))
        differs = dict.fromkeys(samples, text_of(error))
        free(device)
    medians = {name: statistics.median(each) for name, each in samples.items()}
    peers = [seconds for name, seconds in medians.items() if name != "xdev"]
    group = f"{row.title}, {inputs.dtype}"
    found = []
    for name, (_, expression) in spoken(row, inputs).items():
        facts = {"name": f"{group}: {name}", "group": group, "candidate": name}
        facts |= {"n": inputs.n, "dtype": str(inputs.dtype), "section": row.section}
        facts |= {"call": expression}
        told = {"samples": samples, "first_call": first, "error": errors}
        told |= {"differs": differs}
        facts |= {key: each[name] for key, each in told.items() if name in each}
        if name == "xdev" and name in medians and peers:
            facts["ratio"] = medians[name] / min(peers)
        found.append(facts)
    return found


def shown(found: Sequence[dict[str, Any]]) -> str:
    """Return a row's times as a line, with xdev's over each."""
    words = [f"{found[0]['group']:44} {found[0]['n']:>9}"]
    times = {
        each["candidate"]: statistics.median(each["samples"])
        for each in found
        if "samples" in each
    }
    for each in found:
        name = each["candidate"]
        told = f"{times[name] * 1e6:.1f} us" if name in times else each["error"][:60]
        if name != "xdev" and {name, "xdev"} <= times.keys():
            told += f" ({times['xdev'] / times[name]:.2f} x)"
        words.append(" ".join(filter(None, (name, told, each.get("differs")))))
    return "  ".join(words)


def chosen(options: Namespace, sizes: Sequence[int]) -> list[tuple[int, str, Row]]:
    """Return the rows to measure, with their sizes and data types."""
    only = options.only and set(options.only.split(","))
    return [
        (n, dtype, row)
        for n in sizes
        for dtype in options.dtypes.split(",")
        for row in ROWS
        if dtype in row.dtypes
        and (not only or only & {row.function, row.function.split(".")[-1]})
        and (n == min(sizes) or row.section != VIEW)
    ]


def measure(
    cases: Sequence[tuple[int, str, Row]], device: xdev.Device, limit: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure the rows within a time [s]; return the record's, and which were late."""
    library = np if device.type == "cpu" else _optional.cupy()
    start, inputs = time.perf_counter(), None
    found: list[dict[str, Any]] = []
    for done, (n, dtype, row) in enumerate(cases):
        if inputs is None or (inputs.n, inputs.dtype) != (n, dtype):
            inputs = None  # its arrays go before others are made
            free(device)
            inputs = Inputs(library, n, dtype)
        left = limit - (time.perf_counter() - start)
        if left < 0:
            return found, [f"{late.title} {d} {n}" for n, d, late in cases[done:]]
        share = min(max(left / (len(cases) - done) / PARTS, LEAST), MOST)
        rows = rows_of(row, inputs, device, share, check=n == cases[0][0])
        print(shown(rows), flush=True)
        found += rows
    return found, []


def main() -> None:
    """Measure on one device, the default one unless told otherwise."""
    parser = record.arguments((__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", help="cpu or cuda (default: the default device)")
    parser.add_argument("--sizes", type=int, nargs="+", help="elements of a vector")
    parser.add_argument("--only", help="functions, with commas between")
    parser.add_argument("--dtypes", default=",".join(ALL), help="(default: all)")
    parser.add_argument("--limit", type=float, help="of the time of all [s]")
    options = parser.parse_args()
    device = xdev.Device(options.device or xdev.default_device()).require()
    sizes = sorted(options.sizes or SIZES[device.type])
    cases = chosen(options, sizes)
    if not cases:
        parser.error(f"no row is called {options.only}")
    start = time.perf_counter()
    limit = options.limit or LIMITS[device.type]
    with warnings.catch_warnings(), xdev.use_device(device):
        warnings.simplefilter("ignore")  # of libraries' own calls
        rows, late = measure(cases, device, limit)
    seconds = time.perf_counter() - start
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    near, far = (sum(r <= 1.10 for r in ratios), sum(r > 2 for r in ratios))
    print(f"{near} of {len(ratios)} rows within 1.10 of the best, {far} above 2")
    facts = {
        "device": str(device),
        "gpus_visible": sum(each.type == "cuda" for each in xdev.devices()),
        "streams": "each library's default one; no other was used",
        "native_tier": native.STATE,
        "seconds": round(seconds, 1),
    }
    left_out = {reason: " ".join(names.split()) for reason, names in LEFT_OUT.items()}
    if late:
        left_out[f"{len(late)} rows not reached in {limit:g} s"] = ", ".join(late)
        print(f"{len(late)} rows not reached in {limit:g} s")
    record.write(options.json, rows, left_out=left_out, **facts)


if __name__ == "__main__":
    main()
