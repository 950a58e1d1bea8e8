"""Small stand-ins that several tests of CUDA use: they need no CuPy to be imported."""

from contextlib import contextmanager


class Exporter:
    """A foreign array: it has the interface and nothing else.

    ``x`` is a CuPy array, or a NumPy array that stands for one.
    """

    def __init__(self, x, *, writable=True, mask=None, stream=None, address=None):
        self.array, self.stream, self._writable = x, stream, writable
        self._mask, self._address = mask, address

    @property
    def __cuda_array_interface__(self):
        known = getattr(self.array, "__cuda_array_interface__", None)
        known = known or self.array.__array_interface__
        address, _ = known["data"]
        return {
            "shape": known["shape"],
            "typestr": known["typestr"],
            "data": (
                address if self._address is None else self._address,
                not self._writable,
            ),
            "strides": known["strides"],
            "version": 3,
            "mask": self._mask,
            "stream": self.stream,
        }


@contextmanager
def no_order(_):
    yield 0
