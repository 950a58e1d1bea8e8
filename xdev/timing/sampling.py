"""``timeit``, and candidates: what is timed, in loops by three clocks, and its runs."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, repeat as times
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, final

from xdev.device import Device, as_device, default_device, device_of, synchronize
from xdev.errors import ConfigurationError, quoted
from xdev.timing.environment import hold, record
from xdev.timing.result import Timing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdev.device import Event

# Source text, a parsed module, or what is called without arguments.
Code = str | ast.Module | Callable[[], object]
# The file that users' code is in, in tracebacks: the setup, then the statement.
SOURCE = "<timeit>"
# As in timeit.Timer: the setup and the statement share the function's variables, so
# that these are as fast as in users' functions. The setup goes before the first line.
TEMPLATE = """
def loop(_rounds, _start, _stop, _call=_call, _setup=_setup, _locals=locals):
    _begin = _start()
    for _round in _rounds:
        pass
    return _begin, _stop(), _locals()
"""

Where = Device | str | None
Names = dict[str, Any]
Objects = Iterable[object]
Clock = Callable[[], float]  # it returns the host's time [s]
# Given rounds, a start and a stop, it returns what these gave, and all variables.
Loop = Callable[[Objects, Clock, Callable[[], Any]], tuple[float, Any, Names]]


def compiled(statement: Code, setup: Code, namespace: Names) -> tuple[Loop, Objects]:
    """Return a setup and then a loop of a statement, between two readings of a clock.

    And the values of the global variables that they name. The setup runs each time that
    the loop is called.

    Raises
    ------
    SyntaxError
        The source is no valid statement, or no setup.
    """
    before = _parse(setup, "_setup()")
    above = setup.count("\n") + 1 if isinstance(setup, str) else 0
    body = _parse(statement, "_call()", above)
    whole = ast.parse(TEMPLATE)
    function: Any = whole.body[0]
    rounds = function.body[1]
    rounds.body = body.body or rounds.body
    function.body[:0] = before.body
    ast.fix_missing_locations(whole)
    code = compile(whole, SOURCE, "exec", dont_inherit=True)
    names: dict[str, Any] = {"_call": statement, "_setup": setup}
    exec(code, namespace, names)  # noqa: S102 - running it is what was asked for
    nodes = (*ast.walk(before), *ast.walk(body))
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names["loop"], [namespace[name] for name in named & namespace.keys()]


def _parse(code: Code, call: str, above: int = 0) -> ast.Module:
    """Return the syntax tree of what is code by itself, so many lines further down."""
    source = code if isinstance(code, ast.Module | str) else call
    # A `return` or `break` is wrong here, and in the loop it is not.
    compile(source, SOURCE, "exec", dont_inherit=True)
    if isinstance(source, ast.Module):
        return source
    return ast.parse("\n" * above + source, SOURCE)


@final
class Run(NamedTuple):
    """The time of one run [s] by each clock; on a CPU they are one."""

    launch: float
    device: float
    wall: float


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector off, and afterwards as it was."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


MOST_POWER = 9  # of ten
MOST_LOOPS = 10**MOST_POWER
RUN_SECONDS = 0.2  # IPython's
# A stream's queue is finite, of about 1000 launches: once it is full, a launch waits
# for the device. So launches are timed in short runs after one call on an idle one.
# None takes under a microsecond: a run of this time [s] does not fill it.
BURST_SECONDS = 1e-3
MOST_IN_BURST = 100
# A stream is held this much longer than a call takes, to see if the call waits for it.
HOLD_TIMES, HOLD_LEAST, HOLD_MOST = 4, 2e-3, 1.0  # the last two in seconds
TRIALS = 3
PARTS = 16  # of a list or dict, that are asked for their device


@final
@dataclass(slots=True)
class Candidate:
    """What is timed, and its runs so far.

    ``loop`` makes the calls, as :func:`compiled` gives it; ``device`` is whose work is
    waited for, ``queued`` whether its arrays are on a device that works while the host
    goes on; ``first`` is the time of the first call, by the host's ``clock`` [s];
    ``lazy`` whether a function's result is a graph of work that is not done yet.
    """

    loop: Loop
    device: Device
    queued: bool
    first: float
    clock: Callable[[], float]
    lazy: bool = False
    number: int = 1
    burst: int = 1
    waits: bool | None = None
    runs: list[Run] = field(default_factory=list)
    launches: list[float] = field(default_factory=list)

    def call(self) -> None:
        """Make one call, untimed."""
        self.loop((None,), self.clock, self.clock)

    def run(self, number: int) -> Run:
        """Call ``number`` times without a pause, from idle device to idle device."""
        rounds, device, clock = times(None, number), self.device, self.clock
        events: list[Event] = []

        def start_idle() -> float:
            synchronize(device)
            events.append(record(device))
            return clock()

        with collector_off():
            if device.type == "cpu":
                start, end, _ = self.loop(rounds, clock, clock)
                return Run(end - start, end - start, end - start)
            start, returned, _ = self.loop(rounds, start_idle, clock)
            events.append(record(device))
            synchronize(device)
            wall = clock() - start
        return Run(returned - start, events[1].elapsed(events[0]), wall)

    def launch_time(self, number: int, clock: Callable[[], float]) -> float:
        """Return the host's time for a call that does not wait [s]: a mean.

        A call before them meets the idle device, after which a launch can take several
        times as long as one that follows another.
        """
        started = 0.0

        def first() -> Iterator[None]:
            nonlocal started
            synchronize(self.device)
            yield None
            started = clock()

        rounds = chain(first(), times(None, number))
        with collector_off():
            returned: float = self.loop(rounds, clock, clock)[1]
            synchronize(self.device)
        return (returned - started) / number

    def settle(
        self,
        number: int | None,
        seconds: float = RUN_SECONDS,
        steps: tuple[int, ...] = (1, 2, 5),
        tell: Callable[[int, float], object] = lambda *_: None,
    ) -> None:
        """Fix how many calls make a run, and find out whether a call waits.

        Without a ``number`` the smallest whose run takes so many ``seconds``, of the
        ``steps`` times 1, 10, 100 ...; ``tell`` is given each number that was tried,
        and its time [s].
        """
        tried = (step * 10**power for power in range(MOST_POWER) for step in steps)
        for few in tried if number is None else ():
            wall = self.run(few).wall
            tell(few, wall)
            if wall >= seconds:
                number = few
                break
        self.number = number or MOST_LOOPS
        if self.device.type != "cpu":
            self.get_ready()

    def get_ready(self) -> None:
        """Find out what needs a call apart: its launch time, and if it waits."""
        # By this clock, whatever the runs': what sleeps takes no time of a processor.
        launch = self.launch_time(1, time.perf_counter)
        most = BURST_SECONDS / launch if launch > 0 else MOST_IN_BURST
        self.burst = max(1, min(self.number, MOST_IN_BURST, int(most)))
        seconds = max(HOLD_LEAST, HOLD_TIMES * launch)
        # Several times: a host that was busy elsewhere is no call that waits.
        for _ in range(TRIALS if seconds <= HOLD_MOST else 0):
            self.waits = self._returns_late(seconds)
            if not self.waits:
                break
            seconds *= 2

    def _returns_late(self, seconds: float) -> bool | None:
        """Hold the stream; say whether a call returned only after it was let go."""
        gate: Event | None = None

        def start() -> float:
            nonlocal gate
            synchronize(self.device)
            gate = hold(self.device, seconds)
            return 0.0

        late: bool | None = self.loop((None,), start, lambda: gate and gate.done)[1]
        synchronize(self.device)
        return late

    def sample(self) -> None:
        """Add one run."""
        one = self.run(self.number)
        launch = one.launch / self.number
        if self.queued and self.number > 1:
            launch = self.launch_time(self.burst, self.clock)
        self.runs.append(one)
        self.launches.append(launch)

    def measure(
        self, number: int | None, repeat: int, precision: int = 3, **how: Any
    ) -> Timing:
        """Make the runs of ``timeit``; ``how`` goes to :meth:`settle`."""
        self.settle(number, **how)
        for _ in range(repeat):
            self.sample()
        return self.timing(precision)

    def timing(self, precision: int = 3) -> Timing:
        """Return what the runs say."""
        number, walls = self.number, [one.wall for one in self.runs]
        best, worst = min(walls) / number, max(walls) / number
        clocks = self.launches, [one.device / number for one in self.runs]
        how = self.first, precision, *clocks, self.queued, self.waits, self.lazy
        return Timing(number, len(walls), best, worst, walls, *how)


# The first call: given a clock, it returns when the call started [s], and its results.
First = Callable[[Clock], tuple[float, Objects]]


def begin(
    call: Any, device: Where = None, arguments: Objects = (), clock: Clock | None = None
) -> tuple[Candidate, object]:
    """Make a function's first call; return the candidate and the call's result.

    The device whose work is waited for is ``device``, or that of an argument or the
    result.
    """
    results: list[object] = []

    def first(clock: Clock) -> tuple[float, Objects]:
        start = clock()
        results.append(call())
        return start, results

    loop, _ = compiled(call, "pass", {"__name__": __name__})  # its frames are xdev's
    candidate = _begin(loop, first, arguments, device, clock)
    candidate.lazy = hasattr(type(results[0]), "__dask_graph__")
    return candidate, results[0]


def begin_code(
    code: Code, setup: Code, names: Names, device: Where = None, clock: Any = None
) -> Candidate:
    """Do so with a statement and its setup."""
    loop, named = compiled(code, setup, names)

    def first(clock: Clock) -> tuple[float, Objects]:
        start, _, variables = loop((None,), clock, clock)
        return start, variables.values()

    return _begin(loop, first, named, device, clock)


def _begin(
    loop: Loop, first: First, before: Objects, device: Where, clock: Clock | None
) -> Candidate:
    clock = clock or time.perf_counter
    requested = None if device is None else as_device(device)  # refused before the call
    held_before = _holder(before)
    if expected := requested or held_before:
        synchronize(expected)  # of others' work
    start, results = first(clock)
    holder = held_before or _holder(results)
    # An array on the CPU does not decide: a call on it may use another device.
    where = requested or holder or default_device()
    synchronize(where)
    queued, seconds = holder is not None, clock() - start
    return Candidate(loop, where, queued, seconds, clock)


def _holder(objects: Iterable[object]) -> Device | None:
    """Return the device other than the CPU that holds one of the objects."""
    for thing in objects:
        parts: Iterable[object] = (thing,)
        if isinstance(thing, dict | tuple | list):
            parts = thing.values() if isinstance(thing, dict) else thing
        for part in islice(parts, PARTS):
            with suppress(TypeError, ConfigurationError):  # no array
                device = device_of(part)
                if device.type != "cpu":
                    return device
    return None


def whole(count: object, name: str, least: int = 1) -> int:
    """Return a count as an ``int``, which a record can hold; ``name`` is for the error.

    Raises
    ------
    ValueError
        It is no whole number (``__index__``), or less than ``least``.
    """
    with suppress(TypeError):  # of what has no index, as arrays
        number = index(count)  # type: ignore[arg-type]
        if number >= least and not isinstance(count, bool):
            return number
    wanted = f"a whole number of at least {least}"
    raise ValueError(f"{name} must be {wanted}, not {quoted(count)}")


def timeit(
    f: Callable[..., object] | str,
    *args: object,
    setup: str | Callable[[], object] = "pass",
    globals: dict[str, Any] | None = None,
    number: int | None = None,
    repeat: int = 7,
    device: Device | str | None = None,
    timer: Callable[[], float] | None = None,
) -> Timing:
    """Time ``f(*args)`` or a statement as IPython's ``%timeit`` does, to its end.

    The first call, which compiles and fills pools, is timed apart. Each run starts
    and ends with the device idle and has the garbage collector off. Give it random
    data: processors draw less power, and so run faster, on zeros.

    Parameters
    ----------
    f : callable or str
        What is timed; a statement as :func:`timeit.timeit` takes it.
    *args : object
        The function's arguments; after a statement at most one, its ``setup``.
    setup : str or callable
        Of a statement: what runs before each run, untimed. They share variables.
    globals : dict, optional
        The statement's global variables; left out, it has none but the builtins.
    number : int, optional
        Calls in one run; left out, the smallest power of ten that takes 0.2 s.
    repeat : int
        Runs.
    device : Device or str, optional
        Whose work is waited for; left out, the device that holds an argument, the
        result, or a variable that the statement names, else the default device.
    timer : callable, optional
        Returns the host's time [s]; left out, :func:`time.perf_counter`.

    Returns
    -------
    Timing
        Its text and attributes are those of IPython's ``TimeitResult`` and hold wall
        time [s]; ``launch`` and ``device`` hold the other two clocks' times, and
        ``notes`` says in sentences what a reader must know.

    Raises
    ------
    ValueError
        ``number`` or ``repeat`` is no positive whole number.
    TypeError
        ``f`` or ``timer`` cannot be called, or ``f`` has a setup or globals and is no
        statement.
    SyntaxError
        The statement or its setup is none.

    Examples
    --------
    >>> timeit(sum, [1, 2, 3], number=10, repeat=2).repeat
    2
    >>> timeit("x.sort()", "x = [3, 1, 2]", number=10).loops
    10
    """
    number = None if number is None else whole(number, "number")
    repeat = whole(repeat, "repeat")
    if timer is not None and not callable(timer):
        raise TypeError(f"timer is {quoted(timer)}: give a function, time.perf_counter")
    if isinstance(f, str):
        if len(args) > 1 or (args and setup != "pass"):
            way = 'timeit("f(x)", globals={"f": f, "x": x})'
            text = "a statement takes no arguments but its setup, once"
            raise TypeError(f"{text}: use {way}")
        code: Any = args[0] if args else setup
        names = {"__name__": "__main__"} if globals is None else globals
        try:
            candidate = begin_code(f, code, names, device, timer)
        except NameError as error:
            if globals is None:
                error.add_note("a statement sees your variables with globals=globals()")
            raise
    elif not callable(f):
        takes = "timeit takes a function and its arguments, as xdev.timeit(f, x)"
        raise TypeError(f"{takes}, not a {type(f).__name__}")
    elif setup != "pass" or globals is not None:
        way = "give a function its arguments, timeit(f, x, y)"
        raise TypeError(f"setup and globals are for statements: {way}")
    else:
        call = partial(f, *args) if args else f
        candidate = begin(call, device, args, timer)[0]
    return candidate.measure(number, repeat, steps=(1,))
