"""Every public callable, found by a walk; what it ordinarily takes; what is left out.

A name that is added to a room's ``__all__``, and a method to a public class, is found.
"""

import inspect
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache, partial
from types import ModuleType

import dask.array as da
import numpy as np

import xdev
import xdev.cli
import xdev.numpy
from xdev import memory, random, testing, timing
from xdev.testing import FakeSource, SimulatedDevice, SimulatedSource
from xdev.ufunc import Ufunc

Parameter = inspect.Parameter


@xdev.vectorize(identity=0)
def scaled(x, y):
    """Return a scaled number."""
    return 2 * x + y


@xdev.kernel
def summed(i, x, out):
    """Add an element."""
    xdev.atomic.add(out, i, x[i])


class Pair:
    """What may be adapted."""


def candidates(*_):
    return {"one": lambda: 1, "other": lambda: 1}


ONCE = {"number": 1, "repeat": 3}
SIMULATED = SimulatedDevice()
POOL = memory.Pool(FakeSource(1 << 20))
compared = cache(lambda: timing.compare(candidates(), **ONCE))
swept = cache(lambda: timing.sweep(candidates, [1, 2], **ONCE))

#: What makes an object of a public class, or of one that a public function returns.
MAKERS = {
    xdev.Device: lambda: xdev.Device("fake"),
    xdev.Event: lambda: xdev.Stream("cpu").record(),
    xdev.Stream: lambda: xdev.Stream("cpu"),
    xdev.transfer_guard: lambda: xdev.transfer_guard("allow"),
    xdev.use_device: lambda: xdev.use_device("fake"),
    Ufunc: lambda: scaled,
    type(summed): lambda: summed,
    type(summed[2]): lambda: summed[2],
    type(xdev.adapt): lambda: xdev.adapt,
    memory.Block: lambda: POOL.acquire(512),
    memory.Pool: lambda: POOL,
    random.Generator: lambda: random.default_rng(1),
    random.Philox: lambda: random.Philox(1),
    testing.FakeArray: lambda: xdev.ones((2, 3), device="fake"),
    FakeSource: lambda: FakeSource(1 << 20),
    SimulatedDevice: SimulatedDevice,
    SimulatedSource: lambda: SimulatedSource(SimulatedDevice(), 1 << 20),
    testing.SimulatedEvent: lambda: SIMULATED.stream().record(),
    testing.SimulatedStream: SIMULATED.stream,
    testing.Tenant: lambda: SIMULATED.tenant(1 << 20, 512),
    timing.Changes: lambda: compared().since(compared().as_dict()),
    timing.Comparison: compared,
    timing.Ratio: lambda: compared().rows[1].ratio,
    timing.Row: lambda: compared().rows[1],
    timing.Sweep: swept,
    timing.Timing: lambda: compared().rows[1].timing,
}
OPERATORS = ("__call__", "__eq__", "__format__", "__getitem__", "__setitem__")
#: What no hostile object is handed to, and why. Nor is it to what ``xdev.numpy`` has
#: of NumPy's, to errors, and to records, which hold whatever they are given.
LEFT_OUT = {
    **dict.fromkeys(
        ("Event", "memory.Block", "testing.SimulatedEvent", "testing.SimulatedStream"),
        "made by methods",
    ),
    "ufunc.Ufunc": "made by vectorize and guvectorize",
    "numpy.ndarray": "to ask for: isinstance(x, np.ndarray)",
    **dict.fromkeys(
        (
            f"numpy.random.{name}"
            for name in ("Generator", "RandomState", "default_rng")
        ),
        "NumPy's, on the host",
    ),
    "numpy.ufunc": "to ask for: isinstance(f, np.ufunc)",
    "distributed.WorkerPlugin": "Dask calls its methods, with its worker",
    "distributed.local_cluster": "starts processes",
    "timing.copy_bandwidth": "takes a second",
    "cli.main": "has a test of its own",
    "FakeArray.put": "NumPy's ends in a SystemError where mode is a number",
    "Kernel.function": "the user's own",
    "Bound.launches": "what is kept of calls before",
}
#: Parameters that are others' to read, Dask's or Python's, which runs a text as it does
#: a function; and those of which a large one takes as long as it says.
LEFT_PARAMETERS = {
    "compare": ("number", "repeat"),
    "distributed.map": ("chunks", "drop_axis", "new_axis"),
    "timeit": ("f", "number", "repeat", "setup"),
    "timing.sweep": ("number", "repeat"),
}


def rooms():
    """Return the public modules by name, of which ``xdev`` itself has none."""
    found, ahead = {}, [xdev, xdev.cli, xdev.numpy]
    while ahead:
        room = ahead.pop()
        found[room.__name__.removeprefix("xdev").removeprefix(".")] = room
        things = [getattr(room, name) for name in getattr(room, "__all__", dir(room))]
        ahead += [
            x
            for x in things
            if isinstance(x, ModuleType)
            and x.__name__.startswith("xdev.")
            and x not in (*found.values(), *ahead)
        ]
    return dict(sorted(found.items()))


def is_ours(thing):
    """Say whether a public thing is a callable of xdev's, and no record or error."""
    home = str(getattr(inspect.unwrap(thing), "__module__", ""))
    if not callable(thing) or not (home.startswith("xdev") or isinstance(thing, Ufunc)):
        return False
    record = is_dataclass(thing) or hasattr(thing, "_fields")
    return not (isinstance(thing, type) and (record or issubclass(thing, Exception)))


def call_method(make, name, *args, **keywords):
    return getattr(make(), name)(*args, **keywords)


def _all():
    """Return every public callable by name, each once, with what has its parameters."""
    named = {
        f"{room}.{name}".lstrip("."): getattr(module, name)
        for room, module in rooms().items()
        for name in getattr(module, "__all__", dir(module))
    }
    once = {id(thing): name for name, thing in reversed(named.items())}
    found = {
        name: (named[name], named[name])
        for name in once.values()
        if is_ours(named[name])
    }
    for kind, make in MAKERS.items():
        one = make()
        own = {name for base in kind.__mro__[:-1] for name in vars(base)}
        names = {name for name in dir(one) if not name.startswith("_")}
        for name in names | own & {*OPERATORS}:
            if callable(method := getattr(one, name)):
                call = partial(call_method, make, name)
                described = one if name == "__call__" else method
                found[f"{kind.__name__}.{name}"] = call, described
    return dict(sorted(found.items()))


ALL = _all()
ENTRIES = {name: call for name, (call, _) in ALL.items() if name not in LEFT_OUT}
PARAMETERS = {
    name: tuple(inspect.signature(ALL[name][1]).parameters.values()) for name in ENTRIES
}

# -- what they ordinarily take --------------------------------------------------------

SQUARE = [[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]
#: Ordinary values by the name of a parameter.
VALUES = {
    "axis": lambda: 0,
    "device": xdev.default_device,
    "dtype": lambda: "float64",
    "event": lambda: xdev.Stream("cpu").record(),
    "n_children": lambda: 2,
    "nbytes": lambda: 512,
    "shape": lambda: (3, 3),
    "since": lambda: xdev.Stream("cpu").record(),
    "stream": lambda: 0,
}
#: And the first of these for all others with which a call succeeds.
FILLERS = (
    lambda: xdev.asarray(SQUARE),
    lambda: xdev.asarray(SQUARE, dtype=xdev.int64),
    lambda: 1,
    lambda: xdev.ones(3),
    lambda: [xdev.ones(3), xdev.ones(3)],
    lambda: "float64",
    lambda: xdev.ones((1, 3)),
    lambda: "d",
    lambda: [1],
    lambda: "one",
)


def simulated():
    return SIMULATED.stream().record()


def x():
    return xdev.asarray(SQUARE)


#: The arguments where that does not do.
ARGUMENTS = {
    "Kernel.__call__": lambda: (),
    "Bound.__call__": lambda: (xdev.ones(2), xdev.ones(2)),
    "Comparison.since": lambda: (compared().as_dict(),),
    "Generator.integers": lambda: (1,),
    "FakeArray.__eq__": lambda: (1,),
    "FakeArray.__setitem__": lambda: (0, 1.0),
    "FakeArray.astype": lambda: ("float32",),
    "FakeArray.compress": lambda: ([True, False],),
    "FakeArray.dot": lambda: (xdev.ones(3, device="fake"),),
    "Device": lambda: ("fake",),
    "Device.__format__": lambda: ("",),
    "FakeArray.__format__": lambda: ("",),
    "FakeArray.reshape": lambda: (6,),
    "SimulatedDevice.record": lambda: (0,),
    "permute_dims": lambda: (x(), (1, 0)),
    "take_along_axis": lambda: (x(), xdev.asarray([[0]])),
    "tile": lambda: (x(), (2,)),
    "FakeArray.swapaxes": lambda: (0, 1),
    "Kernel.writes": lambda: (1, np.ones(2), np.ones(2)),
    "Pool.release": lambda: (POOL.acquire(512),),
    "SimulatedDevice.wait": lambda: (0, simulated()),
    "SimulatedEvent.elapsed": lambda: (simulated(),),
    "SimulatedSource.done": lambda: (simulated(),),
    "SimulatedSource.wait": lambda: (0, simulated()),
    "SimulatedStream.wait_event": lambda: (simulated(),),
    "Sweep.crossover": lambda: ("one", "other"),
    "Sweep.plot": lambda: ("times.png",),
    "Tenant.use": lambda: (SIMULATED.stream(),),
    "Ufunc.at": lambda: (xdev.ones(3), [0], 1.0),
    "Ufunc.reduceat": lambda: (x(), [0, 2]),
    "_Adapt.register": lambda: (Pair,),
    "can_access_peer": lambda: ("fake:0", "fake:1"),
    "compare": lambda: (candidates(),),
    "distributed.map": lambda: (xdev.abs, da.ones(6, chunks=3)),
    "full_like": lambda: (x(), 1.0),
    "graph": lambda: (lambda y: y + 1, x()),
    "guvectorize": lambda: ("(n)->()",),
    "isdtype": lambda: ("float64", "integral"),
    "kernel": lambda: (summed.__wrapped__,),
    "linalg.matrix_power": lambda: (x(), 2),
    "memory.Pool": lambda: (FakeSource(1 << 20),),
    "memory.bridges.install": lambda: (),
    "memory.bridges.uninstall": lambda: ("numpy",),
    "memory.host_array": lambda: ((3, 3), np.dtype(float)),
    "memory.pinned_array": lambda: ((3, 3), np.dtype(float)),
    "memory.set_limit": lambda: ("1GiB", "fake"),
    "moveaxis": lambda: (x(), 0, 1),
    "numpy.arange": lambda: (3,),
    "numpy.fromfunction": lambda: (lambda i: i, (3,)),
    "numpy.vectorize": lambda: (abs,),
    "repeat": lambda: (x(), 2),
    "result_type": lambda: (x(),),
    "set_default_device": lambda: (xdev.default_device(),),
    "testing.SimulatedSource": lambda: (SIMULATED, 1 << 20),
    "testing.FakeArray": lambda: (np.ones(3), xdev.Device("fake")),
    "testing.Tenant": lambda: (SIMULATED, 1 << 30, 512),
    "timeit": lambda: (abs, 1),
    "timing.sweep": lambda: (candidates, [1, 2]),
    "transfer_guard": lambda: ("log",),
    "vectorize": lambda: (lambda y: y + 1,),
}
#: The keywords that a call needs, or that keep it short.
KEYWORDS = {
    "Row.cells": {"baseline": False},
    "compare": ONCE,
    "timing.sweep": ONCE,
    "timeit": {"number": 1, "repeat": 1},
}
#: What nothing ordinary is taken by here, and why.
REFUSING = {
    **dict.fromkeys(
        ("atomic.add", "atomic.cas", "atomic.max", "atomic.min"), "kernels"
    ),
    "FakeArray.item": "of arrays of one element",
    "FakeArray.searchsorted": "of sorted lines",
    "FakeSource.free": "of what was lent",
    "Kernel.__call__": "says how a kernel is called",
    "SimulatedSource.free": "of what was lent",
    "distributed.memory_status": "of a cluster",
    "memory.pinned_array": "of CUDA",
    "memory.record_stream": "of the pool's arrays, which begin at 64 KiB",
}


def _values(needed, filler, more):
    return *(VALUES.get(name, filler)() for name in needed), *(
        filler() for _ in range(more)
    )


@cache
def _ordinary(name):
    """Return what makes a call's ordinary arguments: by name, or the first that do."""
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    kinds = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    own = [p for p in PARAMETERS[name] if p.default is Parameter.empty]
    needed = [p.name for p in own if p.kind in kinds]
    several = any(p.kind is Parameter.VAR_POSITIONAL for p in own)
    ways = [partial(_values, needed, f, n) for n in range(1 + several) for f in FILLERS]
    for make in ways if needed or several else ():
        with suppress(Exception):
            ENTRIES[name](*make(), **KEYWORDS.get(name, {}))
            return make
    return ways[0]


def ordinary(name):
    """Return new ordinary arguments, and keywords, of a call."""
    return list(_ordinary(name)()), dict(KEYWORDS.get(name, {}))
