"""The ``XDEV_*`` variables: what is in force, and whether it is valid."""

from __future__ import annotations

import os

from xdev import _config

READERS = {
    "XDEV_DEVICE": _config.device,
    "XDEV_MEMORY_POOL": _config.memory_pool,
    "XDEV_MEMORY_LIMIT": _config.memory_limit,
    "XDEV_MEMORY_TRACK": _config.memory_track,
    "XDEV_NUMPY_POOL": _config.numpy_pool,
    "XDEV_NATIVE": _config.native,
    "XDEV_NUM_THREADS": _config.num_threads,
    "XDEV_CACHE_DIR": _config.cache_dir,
    "XDEV_DEBUG": _config.debug,
}


def read() -> dict[str, tuple[object, bool]]:
    """Return each setting's value, and whether the environment set it.

    Raises
    ------
    ConfigurationError
        A variable's value is invalid; the text lists the valid ones.
    """
    return {
        name: (value(), bool(os.environ.get(name, "").strip()))
        for name, value in READERS.items()
    }
