"""Where Python's objects have what machine code reads of them."""

import ctypes

import pytest

from xdev.compile import (
    machine_words,
    quick_call_code,
    quick_function_code,
    quick_launch_code,
)


def word(address):
    return ctypes.c_void_p.from_address(address).value


def test_items_of_tuples_and_lists():
    listed = [object() for _ in range(3)]
    fixed = tuple(listed)
    for k, x in enumerate(listed):
        assert word(id(fixed) + machine_words.FIRST_ITEM + 8 * k) == id(x)
        assert word(word(id(listed) + machine_words.ITEMS) + 8 * k) == id(x)
    for each in (listed, fixed):
        assert word(id(each) + machine_words.LENGTH) == 3


@pytest.mark.parametrize(
    ("code", "given"),
    [(quick_call_code, ()), (quick_function_code, ()), (quick_launch_code, ("a",))],
)
def test_code_on_disk_is_found_by_where_the_items_are(monkeypatch, code, given):
    class Disk:
        def load(self, key):
            self.key = key
            return b"kept"

    disk = Disk()
    monkeypatch.setattr(code, "_cache", disk)
    assert code.binary(*given) == b"kept"
    _, *told = disk.key.split("-")
    assert told == [str(kind.__basicsize__) for kind in (object, tuple)] + [*given]
