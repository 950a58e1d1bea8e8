"""The settings ``XDEV_*``: what is valid, and that all else is refused by its name."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from xdev import ConfigurationError
from xdev.errors import quoted

VALID = {
    "XDEV_DEVICE": {"cuda:3": "cuda:3", "fake:1": "fake:1", "": "auto"},
    "XDEV_MEMORY_POOL": {"Binned": "binned", "none": "none", "async": "async"},
    "XDEV_MEMORY_LIMIT": {
        "4GiB": 4 * 2**30,
        "4294967296": 4 * 2**30,
        "1.5 KiB": 1536,
        "1.5 GB": 1_500_000_000,
        "123456789012345678": 123456789012345678,
        "80%": 0.8,
        "80 %": 0.8,
        "0.8": 0.8,
        "1.0": 1.0,
        "1": 1,
        "": None,
    },
    "XDEV_MEMORY_TRACK": {"on": True, "0": False, "Exit": "exit"},
    "XDEV_NUMPY_POOL": {"1": True},
    "XDEV_CUPY_OPERATORS": {"1": True, "": False},
    "XDEV_NATIVE": {"": True, "off": False},
    "XDEV_NUM_THREADS": {"3": 3, " 1024 ": 1024, "007": 7},
    "XDEV_DEBUG": {"TRUE": True},
}
# The way out that is told, and the texts that are refused.
INVALID = {
    "XDEV_DEVICE": (
        "auto, cpu, cuda, cuda:N, fake or fake:N",
        *("gpu", "CUDA", "cuda:\u0663", "fake:\u00b2", "cuda:-1", f"cuda:{10**20}"),
    ),
    "XDEV_MEMORY_POOL": ("split, binned, simple, none, async", "pooled"),
    "XDEV_MEMORY_LIMIT": (
        'bytes (4294967296), a size ("4GiB", "1.5 GB") or a share ("80%", or 0.8)',
        *("lots", "-1", "120%", "9999999TiB", "1.5", "\u0663"),
    ),
    "XDEV_MEMORY_TRACK": ("1, true, on, 0, false, off, exit", "maybe"),
    "XDEV_NUM_THREADS": (
        "a whole number from 1 to 1024",
        *("0", "-1", "1.5", "+2", "1e3", "2 3", "0x2", "many", "1_0", "1025"),
        *("9" * 5000, "\u00b2", "\u0663", "\u2460", "\uff12"),
    ),
    "XDEV_CACHE_DIR": ("a folder", "/dev/null"),
    "XDEV_DEBUG": ("1, true, on, 0, false, off", "2", "\u00b9"),
}
SETTINGS = sorted({*VALID, *INVALID})


def test_valid_settings_are_read(read):
    assert set(SETTINGS) == read.names
    for name, texts in VALID.items():
        for text, value in texts.items():
            assert read(name, text) == value, (name, text)


@pytest.mark.parametrize("name", INVALID)
def test_invalid_settings_name_the_valid_ones(read, name):
    way, *texts = INVALID[name]
    for text in texts:
        with pytest.raises(ConfigurationError) as caught:
            read(name, text)
        assert str(caught.value).startswith(f"{name}={quoted(text)} is not valid: use ")
        assert str(caught.value).endswith(way) or name == "XDEV_CACHE_DIR"


TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.from_regex(r"[0-9.]{1,30} ?(GiB|%|KB)?", fullmatch=True),
    st.from_regex(r"(cuda|cpu|fake)(:\d{0,12})?", fullmatch=True),
    st.just("x" * 5000),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(SETTINGS), text=TEXTS)
def test_any_text_is_a_value_or_refused_by_the_name_of_its_variable(read, name, text):
    start = message = f"{name}={quoted(text.strip())} is not valid: use "
    try:
        read(name, text)
    except ConfigurationError as error:
        message = str(error)
    assert message.startswith(start)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("XDEV_DEVCE", "XDEV_DEVICE"),
        ("XDEV_MEMORY_LIMITS", "XDEV_MEMORY_LIMIT"),
        *((name, None) for name in ("XDEV_HOME", "XDEV_TEST_DEVICES", "XDEV_DEBUG")),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_warned_of_once(python, name, meant):
    done = python("-c", "import xdev; xdev.zeros(3); xdev.zeros(3)", **{name: "0"})
    told = [line for line in done.stderr.splitlines() if name in line]
    assert len(told) == (meant is not None)
    for line in told:
        assert f"{name} is not a setting of xdev, and ignored: use {meant}" in line


def test_an_invalid_number_of_threads_is_told_where_threads_start(python):
    code = "import numpy as np, xdev; xdev.vectorize(lambda x: x + 1)(np.ones(1 << 20))"
    done = python("-c", code, XDEV_NUM_THREADS="999999999999")
    assert "a whole number from 1 to 1024" in done.stderr
