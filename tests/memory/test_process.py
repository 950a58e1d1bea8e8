"""The life of a process: fork, exit, settings, imports; each in its own process."""

import os

import pytest
from memory_laws import output as run


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("policy", ["split", "binned", "simple", "none"])
def test_a_child_forked_in_the_middle_of_everything_starts_afresh(policy):
    """Tracking and history are on, and another thread holds every lock there is.

    The child's pools are empty, and it frees nothing of its parent's.
    """
    program = """
    import contextlib, os, sys, threading, xdev
    from xdev import memory
    from xdev.memory import Pool, bridges
    from xdev.testing import FakeSource

    pool, source = memory.pool("cpu"), FakeSource(1 << 30)
    own, policy = Pool(source), pool.state.policy.name
    memory.record_history()
    tracked = memory.track()
    tracked.__enter__()
    held = [xdev.full(100_000, 7.0) for _ in range(3)]
    block = own.acquire(5000)
    before, lent = memory.allocated("cpu"), dict(source.lent)
    inside, leave = threading.Event(), threading.Event()
    with contextlib.suppress(xdev.ConfigurationError):  # without the compiled part
        bridges.install("numpy")
        bridges.uninstall("numpy")
    modules = [module for name, module in sys.modules.items() if "xdev" in name]
    found = [each for owner in (*modules, pool.budget) for each in vars(owner).values()]
    locks = [each for each in found if type(each) is type(threading.RLock())]
    assert len(locks) > 6
    def hold(heap):
        for lock in locks:
            lock.acquire()
        inside.set()
        leave.wait()
        for lock in locks:
            lock.release()
    thread = threading.Thread(target=pool.state.decide, args=(hold,))
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        assert memory.reserved("cpu") == memory.allocated("cpu") == 0
        assert own.stats().reserved == 0
        assert list(memory.outstanding("cpu")) == []
        assert (held[0] == 7).all()
        with memory.track():
            new = xdev.full(100_000, 9.0)
            [line] = memory.outstanding("cpu")
            assert 800_000 <= line.nbytes < 900_000, line
        del held[1:], block
        assert (held[0] == 7).all()
        assert memory.allocated("cpu") == line.nbytes
        memory.set_limit("1 GiB", "cpu")
        assert memory.snapshot() and memory.summary("cpu")
        del new
        assert memory.reclaim() > 0
        assert memory.reserved("cpu") == own.reclaim() == 0
        assert memory.free(held[0]) == 0  # it is the parent's
        assert source.lent == lent
        tracked.__exit__(None, None, None)
        memory.record_history(False)
        with contextlib.suppress(xdev.ConfigurationError):
            bridges.install("numpy")
            assert policy == "none" or "numpy" in bridges.installed()
        os._exit(0)
    leave.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert memory.get_limit("cpu") is None
    assert memory.allocated("cpu") == before
    assert len(memory.outstanding("cpu")) == 3
    assert (held[0] == 7).all()
    print("same")
    """
    assert run(program, XDEV_MEMORY_POOL=policy) == "same\n"


def test_a_daemon_thread_that_ends_with_the_locks_held_stops_no_finalizer():
    program = """
    import builtins, os, threading, time, xdev
    from xdev import memory

    pool = memory.pool("cpu")
    array = xdev.zeros(100_000)
    held = threading.Event()

    def hold(heap):
        held.set()
        time.sleep(1e6)

    def daemon():
        with pool.state.moving:
            pool.state.decide(hold)

    class Late:
        def __init__(self):
            self.array, self.zeros, self.write = array, xdev.zeros, os.write
        def __del__(self):
            again = self.zeros(200_000)
            again[:100_000] = self.array
            pool.release(pool.acquire(1000))
            pool.reclaim()
            self.write(1, f"{again[0]} {pool.stats().reserved > 0}\\n".encode())

    builtins.late = Late()  # goes last
    threading.Thread(target=daemon, daemon=True).start()
    held.wait()
    """
    assert run(program) == "0.0 True\n"


def test_the_policy_and_the_limit_are_read_from_the_environment():
    program = """
    import xdev
    policy = xdev.memory.summary().partition("policy: ")[2].split()[0]
    print(policy, xdev.memory.get_limit())
    """
    program = program.replace("import xdev\n", "import xdev; xdev.zeros(10**5)\n", 1)
    assert run(program) == "split None\n"
    settings = {"XDEV_MEMORY_POOL": "binned", "XDEV_MEMORY_LIMIT": "64 MiB"}
    assert run(program, **settings) == "binned 67108864\n"


@pytest.mark.parametrize(
    ("name", "value", "way"),
    [
        ("XDEV_MEMORY_POOL", "best", "split, binned, simple, none, async"),
        ("XDEV_MEMORY_LIMIT", "lots", "80%"),
        ("XDEV_MEMORY_TRACK", "maybe", "1, true, on"),
    ],
)
def test_wrong_settings_are_raised_at_first_use_with_the_valid_ones(name, value, way):
    program = """
    import xdev
    from xdev import memory

    assert memory.allocated("cpu") == 0
    for use in [lambda: xdev.zeros(1_000_000), lambda: memory.pool("cpu")] * 2:
        try:
            use()
        except xdev.ConfigurationError as error:
            print(error)
        else:
            raise AssertionError("nothing was raised")
    """
    [text] = set(run(program, **{name: value}).splitlines())
    assert f"{name}={value!r}" in text
    assert way in text


@pytest.mark.parametrize("size", [5, 100_000])
def test_tracking_can_be_on_from_the_start(size):
    program = f"""
    import xdev
    x = xdev.zeros({size}, dtype=xdev.uint8)
    print(*xdev.memory.outstanding(), sep="\\n")
    """
    text = run(program, XDEV_MEMORY_TRACK="1")
    assert text.startswith(f"<string>:3: {-(-size // 64) * 64:,} B of cpu")
