"""``xdev doctor``: each broken set-up is found, explained, and has a way out."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _config, _optional, native
from xdev.cli import doctor, main
from xdev.compile import cubins
from xdev.device import cuda

GIB = 2**30


@pytest.fixture
def found(monkeypatch, capsys):
    """Return what the doctor finds of a check now; its status says so.

    It tries the devices only where that is asked for.
    """
    monkeypatch.setattr(_config, "device", lambda: "auto")

    def look(check):
        if check != "every device":
            monkeypatch.setattr(doctor.info, "OPERATIONS", {})
        status = main(["doctor", "--json"])
        findings = json.loads(capsys.readouterr().out)
        assert status == any(one["level"] == "broken" for one in findings)
        [one] = [one for one in findings if one["check"] == check]
        return one["level"], one["what"], one["way"]

    return look


@pytest.fixture
def machine(monkeypatch):
    """Change what is installed, and the driver."""

    def change(*installed, driver=13000, **parts):
        names = dict.fromkeys(installed, "1.0")
        monkeypatch.setattr(_optional, "distributions", lambda: names)
        monkeypatch.setattr(cuda, "driver_version", lambda: driver)
        if driver is None:
            monkeypatch.setattr(cuda, "_probe", cuda._probe.__wrapped__)
        versions = {"nvrtc": "", "nvvm": "", "nvjitlink": ""} | parts
        monkeypatch.setattr(cubins, "installed", lambda: versions)

    return change


def test_no_driver(machine, found):
    machine("cupy_cuda13x", driver=None)

    level, what, way = found("CUDA driver")

    assert level == "broken"
    assert "no CUDA driver" in what
    assert "install NVIDIA's driver" in way
    assert found("GPU")[0] == "skipped"  # it is told once


def test_no_cupy_beside_a_driver(machine, found, monkeypatch):
    machine()
    monkeypatch.setattr(_optional, "installed", lambda name: name != "cupy")
    monkeypatch.setattr(cuda, "_probe", cuda._probe.__wrapped__)

    level, what, way = found("GPU")

    assert level == "warning"
    assert "CuPy is not installed, though a driver of CUDA 13 is there" in what
    assert '".[cu13]" in xdev\'s checkout' in way


@pytest.mark.parametrize(
    ("wheels", "driver", "nvjitlink", "words", "ways"),
    [
        (
            ("cupy_cuda13x",), 12080, "13.0",
            "cupy-cuda13x needs a driver of CUDA 13, and this one is of CUDA 12.8",
            ["update the driver to 580", '".[cu12]"'],
        ),
        (
            ("cupy_cuda12x",), 13000, "13.0.88",
            "cupy-cuda12x is of CUDA 12, numba-cuda's compiler of CUDA 13.0.88",
            ["pip uninstall cupy-cuda12x", '".[cu13]"'],
        ),
        (
            ("cupy_cuda12x", "cupy_cuda13x"), 13000, "12.9+13.0",
            "cupy-cuda12x and cupy-cuda13x are installed",
            ["pip uninstall cupy-cuda12x cupy-cuda13x", '".[cu13]"'],
        ),
        (
            ("cupy_cuda11x",), 12080, "",
            "cupy-cuda11x is of CUDA 11, which xdev does not use",
            ["pip uninstall cupy-cuda11x", '".[cu12]"'],
        ),
    ],
)  # fmt: skip
def test_a_wheel_of_the_wrong_cuda(
    wheels, driver, nvjitlink, words, ways, machine, found
):
    machine(*wheels, driver=driver, nvjitlink=nvjitlink)

    level, what, way = found("CuPy")

    assert level == "broken"
    assert words in what
    assert all(part in way for part in ways)


def test_one_wheel_that_fits_is_well(machine, found):
    machine("cupy_cuda12x", driver=12080, nvjitlink="12.9.86", nvrtc="12.9.86")
    assert found("CuPy")[0] == "ok"


def test_two_wheels_as_pip_leaves_them(python, tmp_path):
    for wheel in ("cupy_cuda12x-14.0.0", "cupy_cuda13x-14.0.0"):
        (tmp_path / f"{wheel}.dist-info").mkdir()
    paths = f"{tmp_path}:{doctor.__file__.partition('/xdev/cli')[0]}"

    done = python("-m", "xdev", "doctor", PYTHONPATH=paths, XDEV_DEVICE="auto")

    assert (done.returncode, done.stderr) == (1, "")
    assert "cupy-cuda12x and cupy-cuda13x are installed" in done.stdout


def test_no_numba_cuda(machine, found, monkeypatch):
    machine("cupy_cuda13x")
    monkeypatch.setattr(_optional, "installed", lambda _: False)
    monkeypatch.setattr(cubins, "adapter", cubins.adapter.__wrapped__)

    level, what, way = found("CUDA compiler")

    assert level == "broken"
    assert "numba_cuda and numba_cuda_mlir are missing" in what
    assert '".[cu13]"' in way


@pytest.mark.parametrize("newer", ["nvrtc", "nvvm"])
def test_a_linker_older_than_a_compiler(newer, machine, found, monkeypatch):
    bound = {"nvjitlink": (13, 0), "nvrtc": (13, 0), newer: (13, 1)}
    machine("cupy_cuda13x", nvvm=".".join(map(str, bound.get("nvvm", (13, 0)))))
    monkeypatch.setattr(cubins, "_bound", bound.get)
    monkeypatch.setattr(cubins, "adapter", lambda: None)

    level, what, way = found("CUDA compiler")

    assert level == "broken"
    assert f"nvJitLink 13.0 is older than {newer.upper()} 13.1" in what
    assert way == "pip install 'nvidia-nvjitlink>=13.1'"


def test_numpy_too_new_for_numba_cuda(machine, found, monkeypatch):
    machine("numba_cuda")
    monkeypatch.delattr(np, "row_stack", raising=False)

    level, what, way = found("Numba and NumPy")

    assert level == "warning"
    assert "has no row_stack, which numba-cuda reads" in what
    assert "'numpy<2.5'" in way


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("Numba needs NumPy 2.4 or less. Got NumPy 2.5.", "install --upgrade numba"),
        ("No module named 'llvmlite'", "install --upgrade numba"),
    ],
)
def test_numba_that_cannot_be_imported(text, way, python, tmp_path):
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text(f"raise ImportError({text!r})")
    paths = f"{tmp_path}:{doctor.__file__.partition('/xdev/cli')[0]}"

    done = python("-m", "xdev", "doctor", PYTHONPATH=paths, XDEV_DEVICE="cpu")

    assert (done.returncode, done.stderr) == (1, "")
    told = " ".join(done.stdout.partition("Numba and NumPy: ")[2].split())
    problem, _, to_do = told.partition(" -> ")
    assert problem == f"numba cannot be imported ({text})"
    assert way in to_do.partition(" ok ")[0]


@pytest.mark.parametrize("there", [True, False])
def test_no_native_part(there, found, monkeypatch, tmp_path):
    monkeypatch.setattr(native, "STATE", "not built, or for another Python: no module")
    monkeypatch.setattr(_config, "native", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    if there:
        (tmp_path / "gcc").touch(mode=0o755)

    level, what, way = found("native part")

    assert level == "warning"
    assert "the native part is not built" in what
    assert way.startswith("install a C compiler") != there
    assert way.endswith(". in xdev's checkout")


def test_the_native_part_is_switched_off(python):
    done = python("-m", "xdev", "doctor", XDEV_NATIVE="0", XDEV_DEVICE="cpu")

    assert (done.returncode, done.stderr) == (0, "")
    assert "warning  native part: the native part is not used" in done.stdout
    assert "-> unset XDEV_NATIVE\n" in done.stdout


@pytest.mark.parametrize("broken", ["shared", "a file in its place", "linked"])
def test_a_cache_that_cannot_be_used(broken, found, monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setattr(_config, "cache_dir", lambda: folder)
    if broken == "shared":
        folder.mkdir()
        folder.chmod(0o777)
    elif broken == "linked":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.touch()

    level, what, way = found("kernel cache")

    assert level == "broken"
    assert str(folder) in what
    assert way == "set XDEV_CACHE_DIR to a folder of your own"


def test_a_cache_whose_name_is_too_long(python):
    done = python("-m", "xdev", "doctor", XDEV_DEVICE="cpu", XDEV_CACHE_DIR="x" * 300)

    assert (done.returncode, done.stderr) == (1, "")
    assert "File name too long" in done.stdout
    assert "-> set XDEV_CACHE_DIR to a folder of your own\n" in done.stdout


def test_a_full_disk(found, monkeypatch, tmp_path):
    monkeypatch.setattr(_config, "cache_dir", lambda: tmp_path / "cache")
    usage = SimpleNamespace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    level, what, way = found("kernel cache")

    assert level == "broken"
    assert f"{tmp_path / 'cache'} is on a disk with 1.000 MiB free" in what
    assert "make room there, or set XDEV_CACHE_DIR" in way


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("XDEV_DEVICE", "gpu", "auto, cpu, cuda"),
        ("XDEV_MEMORY_LIMIT", "lots", "4GiB"),
        ("XDEV_MEMORY_POOL", "puddle", "split"),
        ("XDEV_NUM_THREADS", "0", "a whole number from 1"),
    ],
)
def test_a_setting_that_is_not_valid(name, value, valid, python):
    done = python("-m", "xdev", "doctor", "--json", **{name: value})

    assert (done.returncode, done.stderr) == (1, "")
    [one] = [one for one in json.loads(done.stdout) if one["check"] == "settings"]
    assert one["what"] == f"{name}={value!r} is not valid"
    assert one["way"].startswith("use ")
    assert valid in one["way"]


def test_a_variable_that_xdev_does_not_read(found, monkeypatch):
    monkeypatch.setenv("XDEV_LIMIT", "1GiB")
    level, what, way = found("settings")
    assert (level, way) == ("warning", "unset XDEV_LIMIT")
    assert what == "XDEV_LIMIT is not a setting of xdev"


def test_a_limit_above_the_memory_there_is(found, monkeypatch):
    monkeypatch.setattr(_config, "memory_limit", lambda: 2**60)
    monkeypatch.setattr(doctor, "devices", lambda: [xdev.Device("cpu")])

    level, what, way = found("memory limit")

    assert level == "warning"
    assert "cpu has" in what
    assert "limits nothing" in what
    assert "80%" in way


def test_every_gpu_is_hidden(machine, found, monkeypatch):
    machine("cupy_cuda13x", nvjitlink="13.0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setattr(doctor, "_cuda_devices", list)

    level, what, way = found("visible GPUs")

    assert level == "broken"
    assert "CUDA_VISIBLE_DEVICES='-1' hides every GPU" in what
    assert "unset CUDA_VISIBLE_DEVICES" in way


@pytest.mark.parametrize(
    ("mode", "memory", "level", "words", "way"),
    [
        (0, (70 * GIB, 80 * GIB), "ok", "", ""),
        (0, (2 * GIB, 80 * GIB), "warning", "2.000 GiB of 80.000 GiB", "nvidia-smi"),
        (3, (70 * GIB, 80 * GIB), "warning", "admits one process", "-i 1 -c DEFAULT"),
        (3, None, "broken", "admits one process, and refuses this one", "-c DEFAULT"),
        (2, None, "broken", "admits no process, and refuses this one", "-c DEFAULT"),
    ],
)
def test_a_card_that_others_hold(mode, memory, level, words, way, found, monkeypatch):
    card = doctor.Card(xdev.Device("cuda:1"), mode, memory)
    monkeypatch.setattr(doctor, "_cards", lambda: [card])

    answer = found("GPU memory")

    assert answer[0] == level
    assert words in answer[1]
    assert way in answer[2]


@pytest.mark.parametrize(("method", "level"), [("fork", "warning"), ("spawn", "ok")])
def test_workers_that_are_forked(method, level, found, monkeypatch):
    monkeypatch.setattr(doctor, "_cuda_devices", lambda: [xdev.Device("cuda")])
    monkeypatch.setattr(doctor, "_cards", list)
    methods = sorted(("fork", "spawn"), key=method.__ne__)
    patched = doctor.multiprocessing
    monkeypatch.setattr(patched, "get_all_start_methods", lambda: methods)

    answer = found("processes")

    assert answer[0] == level
    assert ("spawn" in answer[2]) == (level == "warning")


def test_the_other_project_called_xdev(machine, found):
    machine("xdev")
    level, _, way = found("other xdev")
    assert level == "broken"
    assert way.startswith("python -m pip uninstall xdev")


def test_a_device_that_gives_wrong_results(found, monkeypatch):
    monkeypatch.setitem(doctor.info.OPERATIONS, "array", lambda _: False)
    monkeypatch.setattr(doctor, "devices", lambda: [xdev.Device("cpu")])
    level, what, _ = found("every device")
    assert (level, what) == ("broken", "array fails on cpu, the result is wrong")


def test_without_a_gpu_asked_for_nothing_of_cuda_is_missed(python, tmp_path):
    done = python(
        *("-m", "xdev", "doctor"), XDEV_DEVICE="cpu", XDEV_CACHE_DIR=str(tmp_path)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 broken" in done.stdout.splitlines()[-1]


def test_a_device_that_works_is_well(real_device, found):
    assert found("every device")[0] == "ok"
    if real_device.type == "cuda":
        assert all(one.memory[1] > one.memory[0] > 0 for one in doctor._cards())
        for check in ("CUDA driver", "GPU", "visible GPUs", "CUDA compiler"):
            assert found(check)[0] == "ok"


@pytest.mark.parametrize(
    "name", ["XDEV_NATIVE", "XDEV_NUMPY_POOL", "XDEV_CUPY_OPERATORS"]
)
def test_a_setting_that_the_import_reads_is_told_by_the_import(name, python):
    done = python("-m", "xdev", "doctor", **{name: "perhaps"})

    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert f"{name}='perhaps' is not valid: use one of" in last
