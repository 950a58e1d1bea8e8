"""PyTorch's tensors from the pool; a process each: PyTorch keeps its allocator."""

from textwrap import dedent

import pytest

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("cuda", "tier")]
START = """
import gc, torch, xdev
from xdev import memory
from xdev.memory import bridges
def in_use(): return memory.allocated("cuda", "device")
"""


@pytest.fixture
def run(imported, python):
    imported("torch")

    def lines(code):
        done = python("-c", START + dedent(code))
        assert not done.returncode, done.stderr
        return done.stdout.splitlines()

    return lines


def test_tensors_are_blocks_and_every_thread_is_served(run):
    code = """
        bridges.install("torch")
        assert "torch" in bridges.installed(), bridges.left_alone()
        before = in_use()
        x = torch.zeros(1000, 1000, device="cuda", requires_grad=True)
        assert in_use() - before == 4_000_256, in_use() - before
        (x @ x).sum().backward()  # in PyTorch's own thread, without the lock
        assert torch.equal(x.grad, torch.zeros_like(x))
        y = x.detach()[::2] + 1
        assert float(y.sum()) == 500_000
        block = memory.pool("cuda").find(x.data_ptr())
        assert block.address == x.data_ptr()
        del x, y; gc.collect(); torch.cuda.synchronize()
        torch._C._cuda_clearCublasWorkspaces()
        print(in_use() - before)
        try:
            bridges.uninstall("torch")
        except xdev.ConfigurationError as error:
            print("life of the process" in str(error), *bridges.installed())
    """
    first, second = run(code)
    assert first == "0"
    assert second.startswith("True ")
    assert "torch" in second


def test_one_ledger_with_cupy_and_a_refusal_is_pytorchs_error(run):
    code = """
        import cupy
        bridges.install("torch")
        x = cupy.ones(1 << 20, "f4")
        t = torch.as_tensor(x, device="cuda") + 1
        memory.set_limit("256 MiB", "cuda")
        try:
            torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
        except RuntimeError as error:
            print("refused" in str(error))
        memory.set_limit(None, "cuda")
        print(float(torch.empty(1 << 28, device="cuda").fill_(2).sum()) > 0)
        print(memory.stats("cuda")["num_ooms"])
    """
    assert run(code) == ["True", "True", "1"]


def test_a_tensor_on_two_streams_is_not_reused_too_early(run):
    code = """
        bridges.install("torch")
        side = torch.cuda.Stream()
        for _ in range(20):
            x = torch.ones(1 << 24, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(10_000_000)
                y = x * 2
            x.record_stream(side)
            del x
            z = torch.full((1 << 24,), 7.0, device="cuda")
            side.synchronize()
            assert bool((y == 2).all())
        print("well")
    """
    assert run(code) == ["well"]


def test_after_pytorchs_first_use_it_does_not_go_in(run):
    code = """
        torch.ones(3, device="cuda")
        bridges.install("torch")
        print("torch" in bridges.installed(), bridges.left_alone()["torch"])
    """
    [said] = run(code)
    assert said.startswith("False PyTorch uses an allocator already")


def test_a_process_ends_well_with_tensors_alive(run):
    code = """
        bridges.install("torch")
        keep = [torch.ones(1 << n, device="cuda") for n in range(20)]
        print("end")
    """
    for _ in range(5):
        assert run(code) == ["end"]
