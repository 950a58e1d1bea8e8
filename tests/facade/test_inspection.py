"""``__array_namespace_info__``: true of each device, which is not started for it."""

import pytest

import xdev

KINDS = {
    "bool": {"bool"},
    "signed integer": {"int8", "int16", "int32", "int64"},
    "unsigned integer": {"uint8", "uint16", "uint32", "uint64"},
    "real floating": {"float32", "float64"},
    "complex floating": {"complex64", "complex128"},
}


def test_every_data_type_it_names_makes_arrays_of_it(device):
    info = xdev.__array_namespace_info__()
    for kind, names in KINDS.items():
        found = info.dtypes(device=device, kind=kind)
        assert set(found) == names
        for dtype in found.values():
            assert xdev.zeros(1, dtype=dtype, device=device).dtype == dtype
    assert set(info.dtypes(device=device)) == set().union(*KINDS.values())


def test_its_defaults_are_what_arrays_have_where_none_is_given(device):
    found = xdev.__array_namespace_info__().default_dtypes(device=device)

    x = xdev.asarray([3, 1, 2], device=device)
    assert found["integral"] == x.dtype
    assert found["indexing"] == xdev.argsort(x).dtype
    assert found["real floating"] == xdev.zeros(1, device=device).dtype
    assert found["complex floating"] == xdev.asarray([1j], device=device).dtype


def test_its_capabilities_are_true(device):
    with xdev.use_device(device):
        found = xdev.__array_namespace_info__().capabilities()

    x = xdev.asarray([0, 3, 0, 4], device=device)
    assert found["boolean indexing"]
    assert xdev.to_numpy(x[x > 0]).tolist() == [3, 4]
    assert found["data-dependent shapes"]
    assert xdev.nonzero(x)[0].shape == (2,)
    most = found["max dimensions"]
    assert xdev.zeros((1,) * most, device=device).ndim == most
    with pytest.raises((ValueError, TypeError)):
        xdev.zeros((1,) * (most + 1), device=device)


def test_its_devices_are_as_the_arrays_name_theirs(device):
    info = xdev.__array_namespace_info__()
    x = xdev.zeros(1, device=device)

    with xdev.use_device(device):
        assert x.device == info.default_device()
        assert xdev.zeros(1).device == x.device
    listed = [each for each in info.devices() if each == x.device]
    assert len(listed) == (device in xdev.devices())
    for each in listed:
        assert xdev.device_of(xdev.zeros(1, device=each)) == device
        assert info.dtypes(device=each) == info.dtypes(device=device)
