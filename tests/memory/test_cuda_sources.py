"""CUDA's memory in the order of streams, as the driver is asked for it."""

from types import SimpleNamespace

import pytest

from xdev import _optional
from xdev.device.cuda import BACKEND
from xdev.errors import ConfigurationError, DeviceUnavailableError
from xdev.memory import Pool
from xdev.memory.sources.cuda import NEVER, CudaAsyncSource, CudaSource

MIB = 1 << 20


class Runtime:
    """The CUDA runtime's pools as numbers."""

    class CUDARuntimeError(RuntimeError):
        """CuPy's."""

    cudaDevAttrMemoryPoolsSupported = 115  # noqa: N815 - CUDA's names
    cudaMemPoolAttrReleaseThreshold = 4  # noqa: N815
    cudaMemPoolAttrReservedMemCurrent = 5  # noqa: N815
    cudaMemAllocationTypePinned = 1  # noqa: N815
    cudaMemHandleTypeNone = 0  # noqa: N815
    cudaMemLocationTypeDevice = 1  # noqa: N815

    def __init__(self, *, supported=True):
        self.supported, self.log = supported, []

    def MemPoolProps(self, *props):  # noqa: N802
        return props

    def deviceGetAttribute(self, attribute, index):  # noqa: N802
        return self.supported and (attribute, index) == (115, 3)

    def mallocFromPoolAsync(self, nbytes, pool, stream):  # noqa: N802
        self.log.append(("malloc", nbytes, pool, stream))
        if nbytes > MIB:
            error = self.CUDARuntimeError("no such stream")
            error.status = 2 if stream == Stream.ptr else 400
            raise error
        return 4096

    def memPoolGetAttribute(self, pool, attribute):  # noqa: N802
        return {(99, 5): 32 * MIB}[pool, attribute]

    def memPoolCreate(self, props):  # noqa: N802
        self.log.append(("create", props))
        return 99

    def __getattr__(self, name):
        return lambda *args: self.log.append((name, *args))


class Stream:
    ptr, done = 77, True

    def __del__(self):
        """As CuPy's: it destroys the stream."""


@pytest.fixture
def runtime(monkeypatch):
    return cuda_of(monkeypatch, Runtime())


def cuda_of(monkeypatch, runtime):
    class Device:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            assert self.index == 3

        def __exit__(self, *_): ...

    stream = Stream()
    cuda = SimpleNamespace(
        runtime=runtime, Device=Device, get_current_stream=lambda: stream
    )
    monkeypatch.setattr(_optional, "cupy", lambda: SimpleNamespace(cuda=cuda))
    return runtime


def test_cuda_memory_is_allocated_and_freed_on_its_stream(runtime, monkeypatch):
    source = CudaAsyncSource(CudaSource(3))
    assert source.allocate(1000, 77) == 4096
    source.free(4096, 1000, 77)
    source.free(4096, 1000, 78)  # a stream that may be gone: after all work
    source.trim(5)
    assert runtime.log == [
        ("create", (1, 0, 1, 3)),
        ("memPoolSetAttribute", 99, 4, NEVER),
        ("malloc", 1000, 99, 77),
        ("freeAsync", 4096, 77),
        ("deviceSynchronize",),
        ("freeAsync", 4096, 0),
        ("memPoolTrimTo", 99, 5),
    ]
    assert source.held() == 32 * MIB
    with pytest.raises(MemoryError):
        source.allocate(2 * MIB, 77)
    with pytest.raises(Runtime.CUDARuntimeError, match="no such stream"):
        source.allocate(2 * MIB, 78)
    calls = len(runtime.log)
    monkeypatch.setattr(BACKEND, "forked", True)
    with pytest.raises(DeviceUnavailableError, match="spawn"):
        source.allocate(1000, 77)
    assert (source.held(), len(runtime.log)) == (0, calls)


def test_a_device_without_stream_order_is_refused_with_the_way_out(monkeypatch):
    cuda_of(monkeypatch, Runtime(supported=False))
    with pytest.raises(ConfigurationError, match=r"cuda:3 has no stream.*split"):
        Pool(CudaSource(3), "async")


@pytest.mark.cuda
@pytest.mark.full_card  # looks at what the card has left, whoever uses it
def test_the_drivers_pool_holds_what_the_ledger_says(cuda):
    import cupy

    pool = Pool(CudaSource(cuda.index), "async")
    source, streams = pool.state.source, [cupy.cuda.Stream() for _ in range(3)]
    held = []
    for number in range(60):
        stream = streams[number % 3]
        with stream:
            block = pool.acquire((number % 7 + 1) * MIB, stream.ptr)
            owner = cupy.cuda.UnownedMemory(block.address, block.nbytes, block)
            pointer = cupy.cuda.MemoryPointer(owner, 0)
            cupy.ndarray(block.nbytes, cupy.uint8, pointer).fill(number)
        held.append((number, block))
        if number % 4 == 3:
            del held[0]
        stats = pool.stats()
        assert stats.reserved == source.held() == pool.budget.reserved
        assert stats.allocated == sum(block.nbytes for _, block in held)
        assert stats.reserved >= stats.allocated
    for stream in streams:
        stream.synchronize()
    for number, block in held:
        owner = cupy.cuda.UnownedMemory(block.address, block.nbytes, block)
        pointer = cupy.cuda.MemoryPointer(owner, 0)
        assert bool((cupy.ndarray(block.nbytes, cupy.uint8, pointer) == number).all())
    del held, block, owner, pointer
    before, (room, _) = source.held(), source.room()
    assert pool.reclaim() == before
    assert source.room()[0] - room == before
    assert pool.stats().reserved == 0
