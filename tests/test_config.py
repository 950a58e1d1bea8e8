import pytest
from hypothesis import given, strategies as st

from xdev import ConfigurationError, _config

VALID = [
    ("XDEV_DEVICE", "cuda:3", "cuda:3"),
    ("XDEV_DEVICE", "", "auto"),
    ("XDEV_MEMORY_POOL", "Binned", "binned"),
    ("XDEV_MEMORY_POOL", "none", "none"),
    ("XDEV_MEMORY_LIMIT", "4GiB", 4 * 2**30),
    ("XDEV_MEMORY_LIMIT", "1.5 KiB", 1536),
    ("XDEV_MEMORY_LIMIT", "123456789012345678", 123456789012345678),
    ("XDEV_MEMORY_LIMIT", "80%", 0.8),
    ("XDEV_MEMORY_LIMIT", "80 %", 0.8),
    ("XDEV_MEMORY_LIMIT", "", None),
    ("XDEV_MEMORY_TRACK", "on", True),
    ("XDEV_MEMORY_TRACK", "0", False),
    ("XDEV_MEMORY_TRACK", "Exit", "exit"),
    ("XDEV_NUMPY_POOL", "1", True),
    ("XDEV_CUPY_OPERATORS", "1", True),
    ("XDEV_CUPY_OPERATORS", "", False),
    ("XDEV_NATIVE", "", True),
    ("XDEV_NATIVE", "off", False),
    ("XDEV_MEMORY_LIMIT", "0.8", 0.8),
    ("XDEV_MEMORY_LIMIT", "1.0", 1.0),
    ("XDEV_MEMORY_LIMIT", "1", 1),
    ("XDEV_NUM_THREADS", "3", 3),
    ("XDEV_NUM_THREADS", " 1024 ", 1024),
    ("XDEV_NUM_THREADS", "007", 7),
    ("XDEV_DEBUG", "TRUE", True),
]


@pytest.mark.parametrize(("name", "text", "value"), VALID)
def test_valid_settings_are_read(read, name, text, value):
    assert read(name, text) == value


INVALID = [
    ("XDEV_DEVICE", "gpu", "auto, cpu, cuda"),
    ("XDEV_DEVICE", "CUDA", "auto, cpu, cuda"),
    ("XDEV_MEMORY_POOL", "pooled", "split, binned, simple, none, async"),
    ("XDEV_MEMORY_LIMIT", "lots", '"4GiB"'),
    ("XDEV_MEMORY_LIMIT", "-1", '"4GiB"'),
    ("XDEV_MEMORY_LIMIT", "120%", '"80%"'),
    ("XDEV_MEMORY_LIMIT", "9999999TiB", '"80%"'),
    ("XDEV_MEMORY_TRACK", "maybe", "1, true, on, 0, false, off, exit"),
    ("XDEV_MEMORY_LIMIT", "1.5", "or 0.8"),
    ("XDEV_MEMORY_LIMIT", "\u0663", "or 0.8"),
    ("XDEV_DEVICE", "cuda:\u0663", "cuda:N"),
    ("XDEV_DEVICE", "fake:\u00b2", "cuda:N"),
    ("XDEV_DEVICE", "cuda:-1", "cuda:N"),
    ("XDEV_DEVICE", "cuda:99999999999999999999", "cuda:N"),
    ("XDEV_DEBUG", "\u00b9", "1, true, on"),
    *[
        ("XDEV_NUM_THREADS", text, "a whole number from 1 to 1024")
        for text in (
            *("0", "-1", "1.5", "+2", "1e3", "2 3", "0x2", "many", "1_0"),
            *("1025", "999999999999", "9" * 5000),
            *("\u00b2", "\u0663", "\u2460", "\uff12"),
        )
    ],
    ("XDEV_CACHE_DIR", "/dev/null", "a folder"),
    ("XDEV_DEBUG", "2", "1, true, on"),
]


@pytest.mark.parametrize(("name", "text", "way"), INVALID)
def test_invalid_settings_name_the_valid_ones(read, name, text, way):
    with pytest.raises(ConfigurationError, match=name) as caught:
        read(name, text)

    assert way in str(caught.value)
    assert repr(text) in str(caught.value)


def test_every_setting_has_cases(read):
    assert {name for name, *_ in VALID + INVALID} == read.names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("XDEV_DEVCE", "XDEV_DEVICE"),
        ("XDEV_MEMORY_LIMITS", "XDEV_MEMORY_LIMIT"),
        ("XDEV_NUMTHREADS", "XDEV_NUM_THREADS"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_warned_of_once(python, name, meant):
    done = python("-c", "import xdev; xdev.zeros(3); xdev.zeros(3)", **{name: "1"})
    (line,) = done.stderr.splitlines()
    assert f"{name} is not a setting of xdev, and ignored: use {meant}" in line


@pytest.mark.parametrize("name", ["XDEV_HOME", "XDEV_TEST_DEVICES", "XDEV_DEBUG"])
def test_other_variables_are_not_warned_of(python, name):
    program = "import xdev; xdev.zeros(3)"
    done = python("-W", "error", "-c", program, **{name: "0"})
    assert (done.returncode, done.stderr) == (0, "")


def test_what_texts_advise_is_valid(read):
    with pytest.raises(ConfigurationError) as caught:
        read("XDEV_MEMORY_LIMIT", "lots")
    for text in ("4294967296", "4GiB", "1.5 GB", "80%", "0.8"):
        assert text in str(caught.value)
        assert read("XDEV_MEMORY_LIMIT", text)
    for name in ("auto", "cpu", "cuda", "cuda:0", "fake", "fake:1"):
        assert read("XDEV_DEVICE", name) == name
    for text in ("1", "1024"):
        assert read("XDEV_NUM_THREADS", text) == int(text)


def test_an_invalid_number_of_threads_is_told_where_threads_start(python):
    code = """if 1:
        import numpy as np, xdev
        @xdev.vectorize
        def f(x):
            return x + 1
        try:
            f(np.ones(1 << 20))
        except xdev.ConfigurationError as error:
            print(error)
    """
    done = python("-c", code, XDEV_NUM_THREADS="999999999999")
    assert "a whole number from 1 to 1024" in done.stdout


TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.from_regex(r"[0-9.]{1,30} ?(GiB|%|KB)?", fullmatch=True),
    st.from_regex(r"(cuda|cpu|fake)(:\d{0,12})?", fullmatch=True),
    st.just("x" * 5000),
)


@given(st.sampled_from(_config.SETTINGS), TEXTS)
def test_any_text_is_a_value_or_refused_by_the_name_of_its_variable(name, text):
    read = getattr(_config, name.removeprefix("XDEV_").lower()).__wrapped__
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, text)
        try:
            read()
        except ConfigurationError as error:
            message = str(error)
        else:
            return
    assert message.startswith(f"{name}={text.strip()!r} is not valid: use ")
