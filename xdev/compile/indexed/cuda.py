"""Kernels over indices on CUDA: a cubin that is kept on disk.

A process that finds it there does not load Numba.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from xdev.compile import adapters, cubins, digests, elementwise
from xdev.compile.elementwise import BLOCK, FUNCTION, cpp_name
from xdev.compile.indexed import INDEX, Indexed


@final
@dataclass(frozen=True, slots=True)
class Launch:
    """How the template is filled in for a kernel, and how many threads it takes."""

    kernel: Indexed
    template: str = "indexed"

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        types = [cpp_name(self.kernel.result), *map(cpp_name, self.kernel.parameters)]
        return f"xdev::indexed<{','.join(types)}>"

    @property
    def span(self) -> int:
        """Return how many elements a block computes."""
        return BLOCK * self.kernel.lanes

    def macros(self) -> elementwise.Macros:
        """Return the template's macros."""
        reads = (INDEX, *self.kernel.parameters)
        pointers = [f"const {cpp_name(dtype)}*" for dtype in reads]
        pointers += [f"{cpp_name(self.kernel.result)}*"] * self.kernel.lanes
        words = {
            "FUNCTION": FUNCTION,
            "SIGNATURE": ",".join(pointers),
            "BLOCK": BLOCK,
            "LANES": self.kernel.lanes,
        }
        return [(f"XDEV_{k}", str(v)) for k, v in words.items()]


def cubin(kernel: Indexed, capability: tuple[int, int]) -> tuple[bytes, str]:
    """Compile a function of an index into a kernel. No GPU is needed.

    Its parameter is a slot for the output's address and each of the function's own, and
    the number of elements (64 bits).

    Parameters
    ----------
    kernel : Indexed
        The function and its types.
    capability : (int, int)
        The compute capability, as in ``(9, 0)``.

    Returns
    -------
    (bytes, str)
        The cubin, and the kernel's name in it.

    Raises
    ------
    TypeError
        The function cannot be compiled for these types.
    DeviceUnavailableError
        The CUDA compiler is missing or its parts do not fit together.
    """

    def make() -> tuple[bytes, str]:
        reads, writes = (INDEX, *kernel.parameters), (kernel.result,) * kernel.lanes
        function = kernel.callable()
        code = adapters.adapter().ltoir(function, reads, writes, FUNCTION, capability)
        return elementwise.build(Launch(kernel), code, capability, fastmath=False)

    digest, name = digests.digest(kernel.function), kernel.function.__name__
    return cubins.kept(digest, (kernel.types, capability), name, make)
