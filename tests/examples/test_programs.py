"""The example programs on each device: their results are plain NumPy's."""

import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import xdev

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
NAMES = ("black_scholes", "heat", "k_means", "mandelbrot", "pagerank")


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = SimpleNamespace(**{name: load(name) for name in NAMES})


@pytest.fixture(autouse=True)
def default(device):
    with xdev.use_device(device):
        yield


def there(x):
    return xdev.asarray(x, device=xdev.default_device())


def host(x, device):
    assert xdev.device_of(x) == device
    return xdev.to_numpy(x)


def test_black_scholes(device):
    rng = np.random.default_rng(0)
    spot, strike = rng.uniform(10, 50, (2, 1000))
    years = rng.uniform(0.1, 5, 1000)
    rate, volatility = 0.01, 0.4

    calls, puts = EXAMPLES.black_scholes.prices(
        there(spot), there(strike), there(years), rate, volatility
    )

    def likely(x):
        return 0.5 * np.array([math.erfc(-each / math.sqrt(2)) for each in x])

    deviation = volatility * np.sqrt(years)
    d = (np.log(spot / strike) + rate * years) / deviation + deviation / 2
    bond = strike * np.exp(-rate * years)
    expected = spot * likely(d) - bond * likely(d - deviation)
    np.testing.assert_allclose(host(calls, device), expected, atol=1e-11)
    expected = bond * likely(deviation - d) - spot * likely(-d)
    np.testing.assert_allclose(host(puts, device), expected, atol=1e-11)


def test_heat(device):
    plate = np.random.default_rng(0).random((17, 23))

    diffused = EXAMPLES.heat.diffused(there(plate), steps=50, rate=0.15)

    expected = plate.copy()
    for _ in range(50):
        total = expected[:-2, 1:-1] + expected[2:, 1:-1]
        total = total + expected[1:-1, :-2] + expected[1:-1, 2:]
        expected[1:-1, 1:-1] = 0.4 * expected[1:-1, 1:-1] + 0.15 * total
    np.testing.assert_allclose(host(diffused, device), expected, rtol=1e-12)
    edges = np.ones(plate.shape, bool)
    edges[1:-1, 1:-1] = False
    np.testing.assert_array_equal(host(diffused, device)[edges], plate[edges])


def test_k_means(device):
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [9.0, 1.0], [2.0, 8.0]])
    labels = rng.integers(0, 3, 600)
    points = corners[labels] + rng.standard_normal((600, 2))
    start = corners[[1, 2, 0]] * 0.7 + 1

    centres = EXAMPLES.k_means.k_means(there(points), there(start))

    expected = start
    for _ in range(100):
        distances = np.linalg.norm(points[:, None] - expected, axis=2)
        chosen = distances.argmin(axis=1)
        expected = np.array([points[chosen == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(host(centres, device), expected, rtol=1e-9)


def test_mandelbrot(device):
    example, limit = EXAMPLES.mandelbrot, 60

    steps = host(example.mandelbrot(80, 60, limit), device)

    x = example.LEFT + (np.arange(80) + 0.5) / 80 * (example.RIGHT - example.LEFT)
    y = example.TOP - (np.arange(60) + 0.5) / 60 * (example.TOP - example.BOTTOM)
    c = x + 1j * y[:, None]
    z, expected = np.zeros_like(c), np.full(c.shape, limit)
    for step in range(limit):
        gone = (np.abs(z) > 2) & (expected == limit)
        expected[gone] = step
        z = np.where(expected == limit, z * z + c, 0)
    # Near the edge of the set one rounding may turn the count of a point.
    assert np.mean(steps != expected) < 0.002
    assert steps.dtype == np.int32


def test_page_rank(device):
    rng = np.random.default_rng(0)
    pages = 60
    sources, targets = rng.integers(0, pages - 5, 200), rng.integers(0, pages, 200)
    links = np.bincount(sources, minlength=pages)
    matrix = EXAMPLES.pagerank.matrix_of(sources, targets, pages)
    web = xdev.adapt(device, (matrix, links))

    rank = host(EXAMPLES.pagerank.page_rank(*web, tolerance=1e-12), device)

    google = np.zeros((pages, pages))
    np.add.at(google, (targets, sources), 1 / links[sources])
    google[:, links == 0] = 1 / pages
    google = 0.85 * google + 0.15 / pages
    values, vectors = np.linalg.eig(google)
    first = vectors[:, np.argmax(values.real)].real
    np.testing.assert_allclose(rank, first / first.sum(), rtol=1e-8)


RESULTS = {
    "black_scholes": "mean price of a call 9.1897",
    "heat": "hottest spot 0.941538, exactly 0.941538",
    "k_means": "centre at -4.0",
    "mandelbrot": "area 1.52",
    "pagerank": "page 0 has 2.0",
}


@pytest.mark.parametrize("name", NAMES)
def test_each_program_says_what_it_found_and_where(name, device, capsys):
    getattr(EXAMPLES, name).main()

    text = capsys.readouterr().out
    assert RESULTS[name] in text
    assert f"on {device}" in text.splitlines()[-1]
