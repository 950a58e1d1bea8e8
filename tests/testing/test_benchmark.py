"""The fixture ``xdev_benchmark``, and whether pytest-benchmark reads its record."""

import json
import statistics

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
import fractions
import numpy as np
import pytest
import xdev

@pytest.mark.parametrize("n", [10, 1000])
def test_sort(xdev_benchmark, n):
    x = np.random.default_rng(0).random(n)
    xdev_benchmark.group = "sorting"
    xdev_benchmark.extra_info = {
        "n": np.int64(n), "share": np.float32(0.5), "sizes": np.arange(3),
        7: [(1, None), True, fractions.Fraction(1, 3)], "long": np.longdouble(2),
    }
    assert xdev_benchmark(np.sort, x)[0] == x.min()

def test_nothing_is_timed(xdev_benchmark):
    assert xdev_benchmark.timing is None

def test_another():
    pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run_program(*options, program=PROGRAM, passed=4):
        pytester.makepyfile(test_it=program)
        path = pytester.path / "record.json"
        # xdist's workers are processes, and what starts them must be no worker itself.
        start = pytester.runpytest_subprocess if options else pytester.runpytest
        result = start("-p", "pytest_xdev", f"--xdev-benchmark-json={path}", *options)
        result.assert_outcomes(passed=passed)
        return path, result

    return run_program


def test_pytest_benchmark_compares_two_records(run, pytester, python):
    first, _ = run()
    second = first.rename(pytester.path / "second.json")
    run()

    command = "-m", "pytest_benchmark", "compare", "--csv=out.csv", first, second
    done = python(*command, cwd=pytester.path)

    assert done.returncode == 0, done.stderr
    assert "'sorting': 4 tests" in done.stdout
    for name in ("test_sort[10]", "test_sort[1000]"):
        assert sum(name in line for line in done.stdout.splitlines()) == 2
    table = (pytester.path / "out.csv").read_text().splitlines()
    medians = [
        e["stats"]["median"] for e in json.loads(first.read_text())["benchmarks"]
    ]
    for median in medians:
        assert any(str(median) in line for line in table)


def test_a_path_that_cannot_be_written_is_refused_before_any_test(pytester):
    pytester.makepyfile(test_it="def test_it(): raise SystemExit('it ran')")
    for path, words in (("nowhere/at/all.json", "No such file"), (".", "Is a dir")):
        options = "-p", "pytest_xdev", f"--xdev-benchmark-json={path}"
        result = pytester.runpytest(*options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*--xdev-benchmark-json: cannot write*{words}*"])
        assert "it ran" not in str(result.stdout)


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2")])
def test_the_record_has_what_was_timed(run, options):
    path, result = run(*options)

    record = json.loads(path.read_text())
    one, other = sorted(
        record["benchmarks"], key=lambda entry: entry["extra_info"]["n"]
    )
    assert one["fullname"] == "test_it.py::test_sort[10]"
    assert (one["name"], one["param"]) == ("test_sort[10]", "10")
    assert one["params"] == {"n": "10"}
    info = {"n": 10, "share": 0.5, "sizes": [0, 1, 2], "long": "2.0"}
    assert one["extra_info"] == info | {"7": [[1, None], True, "1/3"]}
    assert one["stats"]["rounds"] == len(one["stats"]["data"]) == 11
    assert other["stats"]["median"] > one["stats"]["median"] > 0
    assert record["machine_info"]["versions"]["numpy"]
    stats, times = one["stats"], sorted(one["stats"]["data"])
    for name, function in {
        "mean": statistics.mean,
        "stddev": statistics.stdev,
        "median": statistics.median,
        "min": min,
        "max": max,
        "ops": lambda times: 1 / statistics.mean(times),
    }.items():
        assert stats[name] == pytest.approx(function(times))
    assert stats["q1"] <= stats["median"] <= stats["q3"]
    far, outer = map(int, stats["outliers"].split(";"))
    assert far == sum(abs(t - stats["mean"]) > stats["stddev"] for t in times)
    usual = [t for t in times if stats["ld15iqr"] <= t <= stats["hd15iqr"]]
    assert len(usual) == len(times) - outer
    result.stdout.fnmatch_lines(["*xdev_benchmark*", "test_it.py::test_sort*: * (*)"])


CALLS = """
import pytest
import xdev

def test_once(xdev_benchmark):
    assert xdev_benchmark(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]
    with pytest.raises(RuntimeError, match="one thing in a test"):
        xdev_benchmark(max, 1, 2)

@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_to_the_end_of_the_work(xdev_benchmark, device):
    x = xdev.ones(1000, device=device)
    assert xdev.device_of(xdev_benchmark(xdev.add, x, x)) == device
    assert xdev_benchmark.timing.queued == (device != "cpu")
"""


def test_it_passes_keyword_arguments_on_waits_for_a_device_and_is_called_once(run):
    run(program=CALLS, passed=3)
