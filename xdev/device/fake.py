"""Two stand-ins for devices, for tests where no GPU is.

They are the non-CPU devices of ``array_api_strict``: its arrays there refuse to turn
into NumPy arrays behind the user's back, as CuPy's do.
"""

from __future__ import annotations

from typing import Any

from xdev import _optional
from xdev.device import registry
from xdev.device.cpu import HostBackend

NATIVE = ("device1", "device2")


class FakeBackend(HostBackend):
    """Streams and events of the host, arrays and devices of ``array_api_strict``."""

    libraries: tuple[str, ...] = ("array_api_strict",)

    def count(self) -> int:
        """Return 2 where ``array_api_strict`` is installed."""
        return len(NATIVE) if _optional.installed("array_api_strict") else 0

    def reason(self, index: int) -> str | None:
        """Say why not, with the fix."""
        if not self.count():
            return "array_api_strict is not installed: pip install array-api-strict"
        if index >= len(NATIVE):
            return "there are two fake devices: use 'fake:0' or 'fake:1'"
        return None

    def native(self, index: int) -> Any:
        """Return the ``array_api_strict.Device``."""
        return _optional.array_api_strict().Device(NATIVE[index])

    def index_of(self, native: Any) -> int:
        """Return the index that an ``array_api_strict.Device`` names."""
        return NATIVE.index(native._device)  # noqa: SLF001 - it has no public name


registry.register("fake", FakeBackend())
