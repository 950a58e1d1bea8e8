"""``xdev doctor``: each broken set-up is found, explained, and has a way out."""

import json
import multiprocessing
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import xdev
from xdev import _config, _optional, native
from xdev.cli import doctor, main
from xdev.compile import compilers, cubins
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
    def change(*installed, driver=13000, **parts):
        names = dict.fromkeys(installed, "1.0")
        monkeypatch.setattr(_optional, "distributions", lambda: names)
        monkeypatch.setattr(cuda, "driver_version", lambda: driver)
        if driver is None:
            monkeypatch.setattr(cuda, "_probe", cuda._probe.__wrapped__)
        versions = {"nvrtc": "", "nvvm": "", "nvjitlink": ""} | parts
        monkeypatch.setattr(cubins, "installed", lambda: versions)

    return change


def wheel(*names, driver=13000, nvjitlink=""):
    """Return a change: these CuPy wheels beside this driver and this linker."""
    return lambda m: m.machine(*names, driver=driver, nvjitlink=nvjitlink)


def nothing_of_cuda(m):
    def missing():
        raise xdev.DeviceUnavailableError("cuda.core cannot be imported")

    m.machine()
    m.patch.setattr(_optional, "installed", lambda name: name != "cupy")
    m.patch.setattr(cuda, "_probe", cuda._probe.__wrapped__)
    m.patch.setattr(cubins, "installed", missing)


def no_numba_cuda(m):
    m.machine("cupy_cuda13x")
    m.patch.setattr(_optional, "installed", lambda _: False)
    m.patch.setattr(compilers, "adapter", compilers.adapter.__wrapped__)


def old_linker(m):
    m.machine("cupy_cuda13x", nvvm="13.0")
    bound = {"nvjitlink": (13, 0), "nvrtc": (13, 1)}
    m.patch.setattr(cubins, "_bound", bound.get)
    m.patch.setattr(compilers, "adapter", lambda: None)


def new_numpy(m):
    m.machine("numba_cuda")
    m.patch.delattr(np, "row_stack", raising=False)


def not_built(m):
    m.patch.setattr(native, "STATE", "not built, or for another Python: no module")
    m.patch.setattr(_config, "native", lambda: True)
    m.patch.setenv("PATH", str(m.folder))


def beside_an_installed_one(m):
    not_built(m)
    (m.folder / "xdev" / "native").mkdir(parents=True)
    m.patch.syspath_prepend(m.folder)


def open_cache(m):
    m.patch.setattr(_config, "cache_dir", lambda: m.folder / "cache")
    (m.folder / "cache").mkdir()
    (m.folder / "cache").chmod(0o777)


def full_disk(m):
    m.patch.setattr(_config, "cache_dir", lambda: m.folder / "cache")
    m.patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))


def high_limit(m):
    m.patch.setattr(_config, "memory_limit", lambda: 2**60)
    m.patch.setattr(doctor, "devices", lambda: [xdev.Device("cpu")])


def hidden(m):
    m.machine("cupy_cuda13x", nvjitlink="13.0")
    m.patch.setattr(cuda, "_probe", cuda._probe.__wrapped__)
    runtime = SimpleNamespace(getDeviceCount=lambda: 0)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    m.patch.setattr(_optional, "cupy", lambda: cupy)


def held(mode, free=0, total=0):
    def change(m):
        m.patch.setattr(doctor, "_cuda_devices", lambda: [xdev.Device("cuda:1")])
        m.patch.setattr(doctor, "_card", lambda _: (mode, free, total))

    return change


def started(*methods):
    def change(m):
        held(0, GIB, GIB)(m)
        m.patch.setattr(multiprocessing, "get_all_start_methods", lambda: methods)

    return change


def wrong_results(m):
    m.patch.setitem(doctor.info.OPERATIONS, "array", lambda _: False)
    m.patch.setattr(doctor, "devices", lambda: [xdev.Device("cpu")])


OWN = "set XDEV_CACHE_DIR to a folder of your own"
# The set-up, the check that finds it, the level, what it says, and the way out.
SETUPS = [
    (wheel("cupy_cuda13x", driver=None), "GPU", "broken",
     "no CUDA driver", "install NVIDIA's driver"),
    (hidden, "GPU", "broken", "sees no device", "check `nvidia-smi` and CUDA_VISIBLE_"),
    (wheel("cupy_cuda13x", "cupy_cuda12x", driver=None), "GPU", "skipped",
     "as said above", ""),
    (nothing_of_cuda, "CuPy", "skipped", "it is not installed", ""),
    (nothing_of_cuda, "GPU", "warning",
     "CuPy is not installed, though a driver of CUDA 13 is there",
     """'.[cu13]' in xdev's checkout"""),
    (wheel("cupy_cuda13x", driver=12080, nvjitlink="13.0"), "CuPy", "broken",
     "cupy-cuda13x needs a driver of CUDA 13, and this one is of CUDA 12.8",
     "update the driver to 580", "'.[cu12]'"),
    (wheel("cupy_cuda12x", nvjitlink="13.0.88"), "CuPy", "broken",
     "cupy-cuda12x is of CUDA 12, numba-cuda's compiler of CUDA 13.0.88",
     "pip uninstall cupy-cuda12x", "'.[cu13]'"),
    (wheel("cupy_cuda12x", "cupy_cuda13x", nvjitlink="12.9+13.0"), "CuPy", "broken",
     "cupy-cuda12x and cupy-cuda13x are installed",
     "pip uninstall cupy-cuda12x cupy-cuda13x", "'.[cu13]'"),
    (wheel("cupy_cuda11x", driver=12080), "CuPy", "broken",
     "cupy-cuda11x is of CUDA 11, which xdev does not use",
     "pip uninstall cupy-cuda11x", "'.[cu12]'"),
    (wheel("cupy_cuda12x", driver=12080, nvjitlink="12.9.86"), "CuPy", "ok", "", ""),
    (no_numba_cuda, "CUDA compiler", "broken",
     "numba_cuda and numba_cuda_mlir are missing", "'.[cu13]'"),
    (old_linker, "CUDA compiler", "broken",
     "nvJitLink 13.0 is older than NVRTC 13.1", "'nvidia-nvjitlink>=13.1'"),
    (new_numpy, "Numba and NumPy", "warning",
     "has no row_stack, which numba-cuda reads", "'numpy<2.5'"),
    (not_built, "native part", "warning",
     "the native part is not built", "install a C compiler",
     "python -m pip install -e . in xdev's checkout"),
    (beside_an_installed_one, "native part", "warning", "the native part is not built",
     "run it outside ", "which hides the installed xdev"),
    (open_cache, "kernel cache", "broken", "/cache", OWN),
    (full_disk, "kernel cache", "broken",
     "/cache is on a disk with 1.000 MiB free", "make room there, or", OWN),
    (lambda m: m.patch.setenv("XDEV_LIMIT", "1GiB"), "settings", "warning",
     "XDEV_LIMIT is not a setting of xdev",
     "use XDEV_MEMORY_LIMIT, or unset XDEV_LIMIT"),
    (lambda m: m.patch.setenv("XDEV_FOO", "1"), "settings", "warning",
     "XDEV_FOO is not a setting of xdev", "unset XDEV_FOO; xdev info lists"),
    (high_limit, "memory limit", "warning", "it limits nothing", "80%"),
    (held(0, 70 * GIB, 80 * GIB), "GPU memory", "ok", "", ""),
    (held(0, 2 * GIB, 80 * GIB), "GPU memory", "warning",
     "2.000 GiB of 80.000 GiB", "nvidia-smi"),
    (held(3, 70 * GIB, 80 * GIB), "GPU memory", "warning",
     "admits one process", "-i 1 -c DEFAULT"),
    (held(2), "GPU memory", "broken",
     "admits no process, and refuses this one", "-c DEFAULT"),
    (started("fork", "spawn"), "processes", "warning", "forks", "spawn"),
    (started("spawn", "fork"), "processes", "ok", "", ""),
    (lambda m: m.machine("xdev"), "other xdev", "broken",
     "another project", "python -m pip uninstall xdev"),
    (wrong_results, "every device", "broken",
     "array fails on cpu, the result is wrong", "mend what is above"),
]  # fmt: skip


@pytest.mark.parametrize(
    "setup", SETUPS, ids=[f"{setup[1]}, {setup[3]}" for setup in SETUPS]
)
def test_a_set_up_is_found_explained_and_has_a_way_out(
    setup, machine, found, monkeypatch, tmp_path
):
    change, check, level, words, *ways = setup
    change(SimpleNamespace(patch=monkeypatch, machine=machine, folder=tmp_path))

    answer = found(check)

    assert answer[0] == level
    assert words in answer[1]
    way = answer[2].replace('"', "'")
    assert all(part in way for part in ways)
    assert (level in ("ok", "skipped")) == (way == "")


def test_what_pip_and_the_environment_leave(python, tmp_path):
    """Each in one process: two wheels, a Numba that fails, settings, no native part."""
    for wheel in ("cupy_cuda12x-14.0.0", "cupy_cuda13x-14.0.0"):
        (tmp_path / f"{wheel}.dist-info").mkdir()
    (tmp_path / "numba").mkdir()
    refusal = "Numba needs NumPy 2.4 or less. Got NumPy 2.5."
    (tmp_path / "numba" / "__init__.py").write_text(f"raise ImportError({refusal!r})")
    paths = f"{tmp_path}:{doctor.__file__.partition('/xdev/cli')[0]}"
    settings = {"XDEV_MEMORY_LIMIT": "lots", "XDEV_NATIVE": "0"}

    done = python("-m", "xdev", "doctor", PYTHONPATH=paths, **settings)

    assert (done.returncode, done.stderr) == (1, "")
    told = " ".join(done.stdout.split())
    for words in (
        "broken settings: XDEV_MEMORY_LIMIT='lots' is not valid -> use bytes",
        "broken CuPy: cupy-cuda12x and cupy-cuda13x are installed",
        f"broken Numba and NumPy: numba cannot be imported ({refusal}) -> python",
        "warning native part: the native part is not used",
        "-> unset XDEV_NATIVE ",
        "skipped memory limit: it depends on a setting that is not valid",
    ):
        assert words in told
    many = re.search(r"(\d+) warnings?, ", told)
    assert many
    assert many[0] == f"{many[1]} warning{'s' * (many[1] != '1')}, "


@pytest.mark.parametrize(
    "name", ["XDEV_NATIVE", "XDEV_NUMPY_POOL", "XDEV_CUPY_OPERATORS"]
)
def test_a_setting_that_import_reads_is_found_too(python, name):
    setting, wrong = {name: "maybe"}, f"{name}='maybe' is not valid"
    found = python("-m", "xdev", "doctor", **setting)
    program = python("-c", "import xdev", **setting)

    assert (found.returncode, found.stderr) == (1, "")
    told = " ".join(found.stdout.split())
    assert f"broken settings: {wrong} -> use one of" in told
    assert program.returncode == 1
    assert f"ConfigurationError: {wrong}" in program.stderr


def test_without_a_gpu_asked_for_nothing_of_cuda_is_missed(python, tmp_path):
    where = {"XDEV_DEVICE": "cpu", "XDEV_CACHE_DIR": str(tmp_path)}
    done = python("-m", "xdev", "doctor", **where)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    assert "0 broken" in last
    for check in ("CuPy", "GPU", "CUDA compiler", "GPU memory"):
        assert f"skipped  {check}: XDEV_DEVICE=cpu asks for no GPU" in lines


def test_a_device_that_works_is_well(real_device, found):
    assert found("every device")[0] == "ok"
    if real_device.type == "cuda":
        _, free, total = doctor._card(real_device)
        assert total > free > 0
        for check in ("CuPy", "GPU", "CUDA compiler"):
            assert found(check)[0] == "ok"
