import asyncio
from functools import partial

import numpy as np
import pytest
from running import within

import xdev
from xdev import ConfigurationError, DeviceUnavailableError


def test_use_device_nests_is_entered_again_and_restores_after_an_error():
    before, use = xdev.default_device(), xdev.use_device("fake:1")
    with xdev.use_device("cpu"):
        with use as inner, use:
            assert xdev.default_device() == inner == "fake:1"
        assert xdev.default_device() == "cpu"
    with pytest.raises(KeyError), use:
        raise KeyError
    assert xdev.default_device() == before


@pytest.mark.parametrize("name", ["gpu", "CPU", "cuda:x", 3, object()])
def test_use_device_refuses_what_is_no_device_also_without_with(name):
    with pytest.raises(ConfigurationError):
        xdev.use_device(name)


def test_a_device_is_no_context_manager_and_says_what_is():
    with (
        pytest.raises(TypeError, match=r"with xdev\.use_device\('fake:1'\):"),
        xdev.Device("fake:1"),
    ):
        pass


def test_use_device_decorates_functions_that_call_themselves():
    @xdev.use_device("fake:1")
    def seen(depth):
        found = [str(xdev.default_device())]
        with xdev.use_device("fake:0"):
            return found + (seen(depth - 1) if depth else [])

    before = xdev.default_device()

    assert seen(2) == ["fake:1"] * 3
    assert xdev.default_device() == before


async def coroutine():
    """Run where it is awaited."""


def generator():
    yield


async def asynchronous():
    yield


@pytest.mark.parametrize(
    "body", [coroutine, generator, asynchronous, Exception, partial(generator)]
)
@pytest.mark.parametrize(
    "context", [xdev.use_device("cpu"), xdev.transfer_guard("log")]
)
def test_what_does_not_run_in_its_call_is_not_decorated(context, body):
    with pytest.raises(TypeError, match=r"write `with \w+\(...\):` inside it"):
        context(body)


def test_the_default_is_a_contexts_own():
    seen = {}

    async def task(name):
        with xdev.use_device(name):
            await asyncio.sleep(0)
            seen[name] = str(xdev.default_device())

    async def both():
        await asyncio.gather(task("fake:0"), task("fake:1"))

    asyncio.run(both())
    with xdev.use_device("fake"):
        [seen["thread"]] = within(10, [lambda: xdev.default_device().type])

    assert seen["fake:0"] == "fake:0"
    assert seen["fake:1"] == "fake:1"
    assert seen["thread"] != "fake"


@pytest.mark.parametrize("make", [xdev.use_device, xdev.transfer_guard])
def test_tasks_may_share_one_object(make):
    shared = make("fake:1" if make is xdev.use_device else "allow")
    before = xdev.default_device()

    async def task(pause):
        for _ in range(3):
            with shared:
                await asyncio.sleep(pause)
            assert xdev.default_device() == before

    async def both():
        await asyncio.gather(task(0.001), task(0.0015), task(0))

    asyncio.run(both())


def test_set_default_device_and_back():
    before = xdev.default_device()
    xdev.set_default_device("fake:1")
    try:
        for name in ("gpu", "cuda:99", "fake:9"):
            with pytest.raises((ConfigurationError, DeviceUnavailableError)):
                xdev.set_default_device(name)
        assert xdev.default_device() == "fake:1"
    finally:
        xdev.set_default_device(None)

    assert xdev.default_device() == before


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("cpu", "cpu"),
        ("fake", "fake:0"),
        ("", "cpu"),
        ("auto", "cpu"),
        ("gpu", "XDEV_DEVICE='gpu' is not valid: use auto, cpu, cuda, cuda:N"),
        ("FAKE:0", "is not valid: use fake:0, in lower case; there are auto, cpu"),
        ("cuda", "DeviceUnavailableError: cuda:0 cannot be used"),
    ],
)
def test_the_environment_chooses(python, variable, told):
    show = "import xdev; print(xdev.device_of(xdev.zeros(3)))"
    if variable in ("", "auto", "cuda") and xdev.Device("cuda").available:
        told = "cuda:0"

    done = python("-c", show, XDEV_DEVICE=variable)

    assert told in (done.stderr or done.stdout)


WAYS = {
    "no CuPy": (13000, None, "though a driver of CUDA 13 is there: python -m pip"),
    "neither": (None, None, "CuPy is not installed, and no CUDA driver"),
    "no driver": (None, "CuPy", "no CUDA driver"),
    "a broken driver": (13000, "CuPy", "check `nvidia-smi`"),
    "a driver of CUDA 12": (12090, "CuPy", '".[cu12]"'),
}


@pytest.mark.parametrize("what", WAYS)
def test_a_cuda_that_cannot_be_used_says_why_and_the_way(python, what):
    version, cupy, reason = WAYS[what]
    code = f"""
import ctypes, importlib.machinery, sys, types
import xdev

class Driver:
    def __init__(self, name):
        if {version} is None:
            raise OSError("no such library")
    def cuDriverGetVersion(self, place):
        place._obj.value = {version}

def getDeviceCount():
    raise RuntimeError("cudaErrorInitializationError")

ctypes.CDLL = Driver
sys.modules["cupy"] = cupy = types.ModuleType("cupy") if {cupy!r} else None
if cupy:
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    cupy.cuda = cupy.runtime = cupy
    cupy.getDeviceCount, cupy.__version__ = getDeviceCount, "14.0.0"
print(xdev.devices())
xdev.Device("cuda").require()
"""
    result = python("-c", code)

    assert result.returncode == 1
    assert reason in result.stderr
    assert "DeviceUnavailableError" in result.stderr
    assert result.stdout.strip() == "[Device('cpu')]"


def test_device_of_other_libraries_arrays():
    strict = pytest.importorskip("array_api_strict")

    assert xdev.device_of(np.float32(1)) == xdev.device_of(strict.zeros(3)) == "cpu"
    assert xdev.device_of(strict.zeros(3, device=strict.Device("device2"))) == "fake:1"
    with pytest.raises(TypeError, match="is not an array"):
        xdev.device_of([1, 2])

    class Sparse:
        device = property(lambda _: 1 / 0)
        tocsr = tocoo = None

    with pytest.raises(TypeError, match=r"Sparse: pass x\.toarray\(\)"):
        xdev.device_of(Sparse())
    for kind in (np.ndarray, np.float64, type(strict.zeros(3)), int):
        with pytest.raises(TypeError, match=f"class {kind.__name__}: pass an object"):
            xdev.device_of(kind)


def test_an_array_of_a_type_that_was_seen_is_still_asked_where_it_is():
    cupy = pytest.importorskip("cupy")
    for index in (0, 1, 0):
        memory = cupy.cuda.UnownedMemory(1 << 20, 12, None, index)
        x = cupy.ndarray(3, "f4", cupy.cuda.MemoryPointer(memory, 0))
        assert str(xdev.device_of(x)) == f"cuda:{index}"


def test_peers_and_synchronize(device):
    xdev.synchronize(device)

    assert xdev.can_access_peer(device, device)
    assert not xdev.can_access_peer(device, "cpu" if device.type == "fake" else "fake")


@pytest.mark.cuda
@pytest.mark.usefixtures("cuda")
def test_a_forked_child_gets_a_clear_error(python):
    code = """
import os, xdev
x = xdev.zeros(3, device="cuda")
xdev.to_numpy(x)
calls = [lambda: xdev.zeros(3, device="cuda"), lambda: xdev.to_numpy(x)]
pid = os.fork()
if not pid:
    for call in calls:
        try:
            call()
        except xdev.DeviceUnavailableError as error:
            if "spawn" not in str(error):
                os._exit(2)
        else:
            os._exit(3)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert python("-c", code, XDEV_DEVICE="cuda").stdout.strip() == "0"
