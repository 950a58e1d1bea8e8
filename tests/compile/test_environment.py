"""Compiled code is of the settings that its compiler had."""

import numba
import pytest

from xdev.compile.digests import environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("NUMBA_OPT", "0"), ("NUMBA_BOUNDSCHECK", "1"), ("NUMBA_DEBUGINFO", "1")),
        *(("NUMBA_LOOP_VECTORIZE", "0"), ("NUMBA_SLP_VECTORIZE", "1")),
        *(("NUMBA_ENABLE_AVX", "0"), ("NUMBA_DISABLE_INTEL_SVML", "1")),
        *(("CUDA_HOME", "/elsewhere"), ("NUMBA_FORCE_CUDA_CC", "8.0")),
    ],
)
def test_code_is_of_the_environments_settings(monkeypatch, name, value):
    before = environment()
    monkeypatch.setenv(name, value)

    assert environment() != before


def test_code_is_of_the_settings_in_numbas_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = environment()
    (tmp_path / ".numba_config.yaml").write_text("opt: 0")

    assert environment() != before


@pytest.mark.parametrize("option", ["OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT"])
def test_code_is_of_the_settings_that_a_program_makes(monkeypatch, option):
    before = environment()
    monkeypatch.setattr(numba.config, option, 2)

    assert environment() != before


def test_code_is_for_any_number_of_threads(monkeypatch):
    before = environment()
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/elsewhere")

    assert environment() == before
