"""How a structure's arrays are stored: small ones cross to and from CUDA together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from xdev.device import Device

if TYPE_CHECKING:
    from collections.abc import Sequence

FEW = 2  # a lone small array gains nothing by a pack


def packed(arrays: Sequence[Any], target: Device) -> dict[int, Any]:
    """Move the arrays that cross to or from CUDA in packs.

    Parameters
    ----------
    arrays : sequence of array
        Of any library and device.
    target : Device
        Where to.

    Returns
    -------
    dict
        What they became, by their number; the others are to be moved one by one.

    Examples
    --------
    >>> import numpy as np
    >>> packed([np.ones(2), np.ones(3)], Device("cpu"))
    {}
    """
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
