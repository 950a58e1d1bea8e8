"""Graphs: replays equal to calls, results that stay where they are."""

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from chains import address, arrays, chain, step, values

import xdev


class Pair(NamedTuple):
    low: Any
    high: Any


def test_replays_equal_calls_on_what_the_arrays_hold_then(device):
    x, y = arrays(device)
    g = xdev.graph(chain, x, y)
    first = g()

    for seed in range(3, 6):
        x[...] = xdev.asarray(values(seed), device=device)
        assert g() is first
        expected = chain(values(seed), values(1))
        np.testing.assert_allclose(xdev.to_numpy(first), expected, rtol=1e-6)


def test_results_keep_their_addresses(real_device):
    x, y = arrays(real_device)
    g = xdev.graph(chain, x, y)
    before = address(g())
    others = [chain(x, y) for _ in range(10)]

    assert address(g()) == before
    assert before not in map(address, others)


def test_containers_come_back_as_they_are(device):
    x, y = arrays(device)
    g = xdev.graph(lambda x, y: {"a": [x + y, None], "b": Pair(x, xdev.sum(y))}, x, y)
    first = g()
    y[...] = 2.0
    again = g()

    assert again is first
    assert again["b"].low is x
    assert again["a"][1] is None
    np.testing.assert_allclose(xdev.to_numpy(again["a"][0]), values(0) + 2)
    assert float(again["b"].high) == 2000


def test_arguments_in_containers(device):
    x, y = arrays(device)
    g = xdev.graph(lambda both: step(both["x"], both["y"][0]), {"x": x, "y": [y]})

    np.testing.assert_array_equal(
        xdev.to_numpy(g()), xdev.to_numpy(step(x, y)), strict=True
    )


def test_work_in_place_is_done_once_a_replay(device):
    x, y = arrays(device)

    def add(x, y):
        x += y

    g = xdev.graph(add, x, y)
    np.testing.assert_array_equal(xdev.to_numpy(x), values(0))

    assert g() is None
    assert g() is None
    np.testing.assert_array_equal(xdev.to_numpy(x), values(0) + values(1) + values(1))


def test_a_buffer_of_the_functions_own(device):
    x, y = arrays(device)
    buffer = xdev.empty_like(x)
    g = xdev.graph(lambda x: step(x, y, out=buffer), x)
    expected = step(x, y)

    assert g() is buffer
    np.testing.assert_array_equal(xdev.to_numpy(buffer), xdev.to_numpy(expected))


def test_two_graphs_in_turn(device):
    x, y = arrays(device)
    one, two = xdev.graph(step, x, y), xdev.graph(step, y, x)
    results = [one(), two()]

    for _ in range(3):
        x += y
        assert one() is results[0]
        assert two() is results[1]
        for found, expected in zip(results, (step(x, y), step(y, x)), strict=True):
            np.testing.assert_array_equal(xdev.to_numpy(found), xdev.to_numpy(expected))


def test_a_graph_inside_another(device):
    x, y = arrays(device)
    inner = xdev.graph(step, x, y)
    outer = xdev.graph(lambda y: inner() + y, y)
    x += y

    expected = xdev.to_numpy(step(x, y) + y)
    np.testing.assert_array_equal(xdev.to_numpy(outer()), expected)


def test_several_threads_replay_one_graph(device):
    x, y = arrays(device)
    g = xdev.graph(chain, x, y)
    found = []
    threads = [threading.Thread(target=lambda: found.append(g())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(each is found[0] for each in found)
    np.testing.assert_array_equal(
        xdev.to_numpy(found[0]), xdev.to_numpy(chain(x, y)), strict=True
    )


def test_the_functions_own_error_comes_as_it_is(device):
    x, y = arrays(device)

    def fails(x, y):
        x += y
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        xdev.graph(fails, x, y)()


def test_tensors_in_a_graph(real_device):
    torch = pytest.importorskip("torch")
    if real_device.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    x, y = (torch.rand(1000, device=real_device.type) for _ in range(2))
    g = xdev.graph(chain, x, y)
    result = g()
    assert isinstance(result, torch.Tensor)

    for seed in range(3):
        x.copy_(torch.as_tensor(values(seed)))
        assert g() is result
        assert torch.equal(result, chain(x, y))
