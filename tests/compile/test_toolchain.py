"""An nvJitLink that is older than the other compilers is refused."""

import pytest

from xdev.compile import toolchain


@pytest.mark.parametrize(
    ("linker", "compiler", "nvvm", "words"),
    [
        ((12, 4), (13, 0), "13.0.48", "nvJitLink 12.4 is older than NVRTC 13.0, "),
        ((12, 4), (12, 8), "12.8.93", "pip install 'nvidia-nvjitlink-cu12>=12.8'"),
        ((13, 0), (13, 0), "13.2.51", "nvJitLink 13.0 is older than NVVM 13.2, "),
        ((13, 0), (13, 0), "13.2.51", "pip install 'nvidia-nvjitlink>=13.2'"),
    ],
)
def test_an_nvjitlink_older_than_the_compilers_is_refused(
    linker, compiler, nvvm, words, monkeypatch
):
    bound = {"nvjitlink": linker, "nvrtc": compiler}
    monkeypatch.setattr(toolchain, "_bound", bound.get)
    monkeypatch.setattr(toolchain, "installed", lambda: {"nvvm": nvvm})

    with pytest.raises(toolchain.DeviceUnavailableError) as refused:
        toolchain.check()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("linker", "compiler", "nvvm"),
    [
        ((13, 1), (13, 0), "13.0.48"),
        ((13, 0), (13, 0), "13.0.99"),
        ((13, 0), (13, 0), ""),
        (None, (13, 0), "13.0.48"),
    ],
)
def test_one_that_is_as_new_is_not(linker, compiler, nvvm, monkeypatch):
    bound = {"nvjitlink": linker, "nvrtc": compiler}
    monkeypatch.setattr(toolchain, "_bound", bound.get)
    monkeypatch.setattr(toolchain, "installed", lambda: {"nvvm": nvvm})

    toolchain.check()
