"""Where arrays are stored: a structure's arrays, all of them, moved to a device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from xdev.device import Device
from xdev.transfer.copies import to_device

if TYPE_CHECKING:
    from collections.abc import Sequence

FEW = 2  # a lone small array gains nothing by a pack


def store(
    arrays: Sequence[Any], target: Device, *, non_blocking: bool = False
) -> list[Any]:
    """Return arrays on a device, each as :func:`~xdev.to_device` does it.

    Small ones cross to and from CUDA in packs.

    Parameters
    ----------
    arrays : sequence of array
        Of any library and device.
    target : Device
        Where to.
    non_blocking : bool
        As :func:`~xdev.to_device` has it.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.ones(2)
    >>> store([x], Device("cpu"))[0] is x
    True
    """
    packed = _packed(arrays, target)
    return [
        packed[number]
        if number in packed
        else to_device(x, target, non_blocking=non_blocking)
        for number, x in enumerate(arrays)
    ]


def _packed(arrays: Sequence[Any], target: Device) -> dict[int, Any]:
    """Move the arrays that go in packs; return them by their number."""
    if target.kind not in ("cpu", "cuda") or "cupy" not in sys.modules:
        return {}
    from xdev.transfer import cuda_packs

    up = target.kind == "cuda"
    groups: dict[int, list[int]] = {}  # by the index of the CUDA device
    for number, x in enumerate(arrays):
        if (cuda_packs.is_upload if up else cuda_packs.is_download)(x):
            index = target.index if up else x.data.device_id
            groups.setdefault(index, []).append(number)
    moved: dict[int, Any] = {}
    for index, numbers in groups.items():
        if len(numbers) >= FEW:
            members = [arrays[number] for number in numbers]
            if up:
                results = cuda_packs.upload(members, target)
            else:
                results = cuda_packs.download(members, Device(f"cuda:{index}"))
            moved.update(zip(numbers, results, strict=True))
    return moved
