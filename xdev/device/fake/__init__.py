"""Two stand-ins for GPUs, for tests where none is.

Their arrays (:mod:`xdev.device.fake.arrays`) lie in the host's memory and are computed
by NumPy, but can do no more than CuPy's: they meet no array of another device and turn
into no NumPy array unasked. Only what CUDA's compiler says, and races, are not seen.
"""

from __future__ import annotations

from xdev.device.cpu import HostBackend
from xdev.device.identity import Device

STRICT = ("device1", "device2")  # array_api_strict's devices that are not the CPU


class FakeBackend(HostBackend):
    """Streams and events of the host, arrays of :mod:`xdev.device.fake.arrays`.

    The devices of ``array_api_strict`` that are not the CPU count as these.
    """

    libraries: tuple[str, ...] = ("array_api_strict",)

    def count(self) -> int:
        """Return 2."""
        return len(STRICT)

    def reason(self, index: int) -> str | None:
        """Refuse every index but 0 and 1."""
        if index < len(STRICT):
            return None
        return "there are two fake devices: use 'fake:0' or 'fake:1'"

    def native(self, index: int) -> Device:
        """Return the device itself, as the arrays' ``device`` is."""
        return Device(f"fake:{index}")

    def index_of(self, native: object) -> int:
        """Return the index that an ``array_api_strict.Device`` names."""
        return STRICT.index(native._device)  # type: ignore[attr-defined] # noqa: SLF001


BACKEND = FakeBackend()
