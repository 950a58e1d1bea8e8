"""Elementwise CUDA kernels: a template, operand types and LTO-IR make a cubin."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev import _optional
from xdev.compile import toolchain
from xdev.compile.halves import is_bfloat16, is_half

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    class Template(Protocol):
        """A kernel's template, its name there, and the macros that fill it in.

        One that makes the same kernel is equal, and has the same hash.
        """

        @property
        def template(self) -> str:
            """The file's name."""

        @property
        def entry(self) -> str:
            """The kernel's C++ name, template arguments included."""

        def macros(self) -> Macros:
            """Return the macros."""


Dtypes = tuple[np.dtype[Any], ...]
Macros = list[tuple[str, str]]
FUNCTION = "xdev_function"
BLOCK = 256
ITEMS = 4  # elements a thread of the strided kernel computes
ACCESS = 16  # bytes of the widest access to memory
MOVED = ("Linear", "Output")  # kinds with an element in memory for each
TEMPLATES = 64  # of so many, what NVRTC made is kept: functions come and go
WORD = 4  # bytes of the least access that may be shifted
SPREAD = 32  # bytes of one operand that a thread may take, where itemsizes differ
CPP_NAMES = {
    ("b", 1): "bool",
    ("i", 1): "signed char",
    ("i", 2): "short",
    ("i", 4): "int",
    ("i", 8): "long long",
    ("u", 1): "unsigned char",
    ("u", 2): "unsigned short",
    ("u", 4): "unsigned int",
    ("u", 8): "unsigned long long",
    ("f", 2): "xdev::half",
    ("f", 4): "float",
    ("f", 8): "double",
}


@final
class Operand:
    """How a kernel reads or writes one operand.

    Parameters
    ----------
    kind : str
        ``"Linear"`` (contiguous along rows), ``"Uniform"`` (one element in memory for
        each row), ``"Constant"`` (a number by value), ``"Strided"``, or ``"Output"``.
    storage : numpy.dtype
        The dtype in memory.
    loop : numpy.dtype
        The dtype that the ufunc's loop takes or gives.
    """

    __slots__ = ("kind", "loop", "storage")

    def __init__(self, kind: str, storage: np.dtype[Any], loop: np.dtype[Any]) -> None:
        self.kind, self.storage, self.loop = kind, storage, loop

    @property
    def cpp(self) -> str:
        """Return the operand's type in the template."""
        loop = cpp_name(self.loop)
        if self.kind == "Constant":
            return f"xdev::Constant<{loop}>"
        return f"xdev::{self.kind}<{cpp_name(self.storage)},{loop}>"


@final
class Elementwise:
    """What decides the machine code of an elementwise kernel, but the function.

    Parameters
    ----------
    operands : tuple of Operand
        The inputs, then the outputs.
    template : str
        ``"rows"``, of operands that are contiguous or one element along the last
        dimension, or ``"strided"``.
    dimensions : int
        How many dimensions are left once those that can be are merged.
    masked : bool
        Whether a mask says which elements are computed (strided only).
    wide, far : bool
        Whether indices and offsets in bytes need 64 bits.
    """

    __slots__ = ("dimensions", "far", "masked", "operands", "template", "wide")

    def __init__(
        self,
        operands: tuple[Operand, ...],
        template: str = "rows",
        dimensions: int = 1,
        *,
        masked: bool = False,
        wide: bool = False,
        far: bool = False,
    ) -> None:
        self.operands, self.template, self.dimensions = operands, template, dimensions
        self.masked, self.wide, self.far = masked, wide, far

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        operands = ",".join(operand.cpp for operand in self.operands)
        return f"xdev::{self.template}<{operands}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is Elementwise and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[object, ...]:
        """All that the entry and the macros are made of."""
        return self.entry, self.dimensions, self.masked, self.wide, self.far

    @property
    def lanes(self) -> int:
        """Return how many neighbours a thread computes."""
        if self.template == "strided":
            return 1
        sizes = [o.storage.itemsize for o in self.operands if o.kind in MOVED]
        most = min(ACCESS // min(sizes), SPREAD // max(sizes))
        return max(1, WORD // min(sizes), most)

    @property
    def is_flat(self) -> bool:
        """Say whether it takes one row of any length, with 32 bits."""
        flat = self.template == "rows" and self.dimensions == 1
        return flat and not (self.wide or self.far)

    @property
    def span(self) -> int:
        """Return how many elements a block computes."""
        return BLOCK * (ITEMS if self.template == "strided" else self.lanes)

    def macros(self) -> Macros:
        """Return the template's macros."""
        pointers = (
            ("" if o.kind == "Output" else "const ") + cpp_name(computed(o.loop)) + "*"
            for o in self.operands
        )
        sizes = {
            "LANES": self.lanes,
            "ITEMS": ITEMS,
            "BLOCK": BLOCK,
            "DIMENSIONS": self.dimensions,
            "MASKED": int(self.masked),
        }
        words = {
            "FUNCTION": FUNCTION,
            "SIGNATURE": ",".join(pointers),
            "INDEX": "unsigned long long" if self.wide else "unsigned int",
            "OFFSET": "long long" if self.wide or self.far else "int",
        }
        return defined({**sizes, **words})


def defined(values: Mapping[str, object]) -> Macros:
    """Return macros for a template, of names without their prefix."""
    return [(f"XDEV_{name}", str(value)) for name, value in values.items()]


def cubin(
    kernel: Template,
    function: Callable[..., Any],
    inputs: Dtypes,
    outputs: Dtypes,
    capability: tuple[int, int],
    *,
    fastmath: bool = False,
) -> tuple[bytes, str]:
    """Compile a scalar function into an elementwise kernel. No GPU is needed.

    Parameters
    ----------
    kernel : Template
        The layout, and the operands with their dtypes.
    function, inputs, outputs, fastmath
        As :func:`xdev.compile.numba_cuda.ltoir` takes them.
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
    code = toolchain.adapter()(
        function, inputs, outputs, FUNCTION, capability, fastmath=fastmath
    )
    entry, macros = kernel.entry, kernel.macros()
    return build(kernel.template, entry, macros, code, capability, fastmath=fastmath)


def build(
    template: str,
    entry: str,
    macros: Macros,
    code: bytes,
    capability: tuple[int, int],
    *,
    fastmath: bool,
) -> tuple[bytes, str]:
    """Compile a template and link it with the LTO-IR of a function.

    Parameters
    ----------
    template, entry, macros
        As a :class:`Template` has them.
    code : bytes
        The function's LTO-IR.
    capability : (int, int)
        The compute capability.
    fastmath : bool
        Whether a product and a sum may be one rounding.

    Returns
    -------
    (bytes, str)
        The cubin, and the kernel's name in it.

    Raises
    ------
    DeviceUnavailableError
        The CUDA compiler is missing or its parts do not fit together.
    """
    arch = "sm_{}{}".format(*capability)
    with toolchain.explained():
        source = (_folder() / f"{template}.cu").read_text()
        part, symbol = _compiled(
            source, entry, tuple(macros), arch, "ltoir", fma=fastmath
        )
        return toolchain.link([part, code], arch, fma=fastmath), symbol


def expressed(
    kernel: Template,
    function: str,
    capability: tuple[int, int],
    folders: Sequence[str],
    *,
    fastmath: bool,
) -> tuple[bytes, str]:
    """Compile a template with a function in C++; nothing is linked.

    Parameters
    ----------
    kernel : Template
        The layout, and the operands with their dtypes.
    function : str
        C++ that defines :data:`FUNCTION`.
    capability : (int, int)
        The compute capability.
    folders : sequence of str
        Where else its headers are.
    fastmath : bool
        Whether a product and a sum may be one rounding.

    Returns
    -------
    (bytes, str)
        The cubin, and the kernel's name in it.

    Raises
    ------
    DeviceUnavailableError
        The CUDA compiler is missing or its parts do not fit together.
    """
    arch = "sm_{}{}".format(*capability)
    source = function + (_folder() / f"{kernel.template}.cu").read_text()
    with toolchain.explained():
        return _compiled(
            source,
            kernel.entry,
            tuple(kernel.macros()),
            arch,
            "cubin",
            fma=fastmath,
            folders=tuple(folders),
        )


@lru_cache(maxsize=TEMPLATES)
def _compiled(
    source: str,
    entry: str,
    macros: tuple[tuple[str, str], ...],
    arch: str,
    code: str,
    *,
    fma: bool,
    folders: tuple[str, ...] = (),
) -> tuple[bytes, str]:
    """Return what NVRTC makes of a template, and the kernel's name in it."""
    core = _optional.cuda_core()
    linked: Any = {"relocatable_device_code": True, "link_time_optimization": True}
    # A product and a sum stay two roundings, so that results equal NumPy's.
    options = core.ProgramOptions(
        arch=arch,
        std="c++17",
        fma=fma,
        include_path=[str(_folder()), *folders],
        define_macro=list(macros),
        **(linked if code == "ltoir" else {}),
    )
    program = core.Program(source, "c++", options)
    made = program.compile(code, name_expressions=(entry,))
    symbol = made.symbol_mapping[entry]
    return bytes(made.code), symbol.decode() if isinstance(symbol, bytes) else symbol


@cache
def _folder() -> Path:
    return Path(__file__).parent / "templates"


def cpp_name(dtype: np.dtype[Any]) -> str:
    """Return a dtype's type in the templates."""
    if dtype.kind == "c":
        return f"xdev::complex<{cpp_name(np.dtype(f'f{dtype.itemsize // 2}'))}>"
    if is_bfloat16(dtype):
        return "xdev::bfloat16"
    return CPP_NAMES[dtype.kind, dtype.itemsize]


def computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that the scalar function computes in."""
    return np.dtype(np.float32) if is_half(dtype) else dtype
