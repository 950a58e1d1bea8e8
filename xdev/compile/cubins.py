"""CUDA kernels: a template and a function make a cubin, which is kept on disk."""

from __future__ import annotations

import importlib
import re
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xdev import _optional
from xdev.compile import digests
from xdev.compile.formulas import Dtypes, is_bfloat16, is_half
from xdev.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Protocol

    class Template(Protocol):
        """What makes a kernel of a template; of the same kernel it is equal."""

        @property
        def template(self) -> str:
            """The file's name."""

        @property
        def entry(self) -> str:
            """The kernel's C++ name, template arguments included."""

        def macros(self) -> Macros:
            """Return the macros that fill the template in."""


Macros = list[tuple[str, str]]
FUNCTION = "xdev_function"
FOLDER = Path(__file__).parent / "templates"
BLOCK = 256
ITEMS = 4  # elements a thread of the strided kernel computes
ACCESS = 16  # bytes of the widest access to memory
MOVED = ("Linear", "Output")  # kinds with an element in memory for each
TEMPLATES = 64  # of so many, what NVRTC made is kept: functions come and go
WORD = 4  # bytes of the least access that may be shifted
SPREAD = 32  # bytes of one operand that a thread may take, where itemsizes differ
WARP = 32
WARPS = BLOCK // WARP
REDUCED = 32  # bytes that a thread folds of each chunk
STATISTICS = ("fold", "count", "norm", "mean", "var", "std", "argmax", "argmin")
MARK = 8  # bytes
PLACED = 16  # bytes of a value and where it is
SCANNED = 15  # elements that a thread scans at once, at most; odd, as scan.cu needs it
SCANNED_BYTES = 96
INTEGERS = {1: "char", 2: "short", 4: "int", 8: "long long"}  # by their bytes
FLOATS = {2: "xdev::half", 4: "float", 8: "double"}


class Operand(NamedTuple):
    """How a kernel reads or writes one operand.

    It is ``"Linear"`` (contiguous along rows), ``"Uniform"`` (one element in memory for
    each row), ``"Constant"`` (a number by value), ``"Strided"``, or ``"Output"``.
    """

    kind: str
    storage: np.dtype[Any]  # in memory; a number's is that of the loop
    loop: np.dtype[Any]  # what the ufunc's loop takes or gives

    @property
    def cpp(self) -> str:
        """Return the operand's type in the template."""
        loop = cpp_name(self.loop)
        if self.kind == "Constant":
            return f"xdev::Constant<{loop}>"
        return f"xdev::{self.kind}<{cpp_name(self.storage)},{loop}>"


class Elementwise(NamedTuple):
    """What decides the machine code of an elementwise kernel, but the function.

    The template ``"rows"`` is of operands that are contiguous, or one element, along
    the last dimension; ``"strided"`` of others, and of masked ones.
    """

    operands: tuple[Operand, ...]  # the inputs, then the outputs
    template: str = "rows"
    dimensions: int = 1  # those that are left once those that can be are merged
    masked: bool = False  # whether a mask says which elements are computed
    wide: bool = False  # whether indices need 64 bits
    far: bool = False  # whether offsets in bytes do
    deep: bool = False  # whether the function gains from more elements at once

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        operands = ",".join(operand.cpp for operand in self.operands)
        return f"xdev::{self.template}<{operands}>"

    @property
    def lanes(self) -> int:
        """Return how many neighbours a thread computes."""
        if self.template == "strided":
            return 1
        sizes = [o.storage.itemsize for o in self.operands if o.kind in MOVED]
        most = min(ACCESS * (1 + self.deep) // min(sizes), SPREAD // max(sizes))
        return max(1, WORD // min(sizes), most)

    @property
    def is_flat(self) -> bool:
        """Say whether it takes one row of any length, with 32 bits."""
        flat = self.template == "rows" and self.dimensions == 1
        return flat and not (self.wide or self.far)

    def macros(self) -> Macros:
        """Return the template's macros."""
        values = {
            "LANES": self.lanes,
            "ITEMS": ITEMS,
            "DIMENSIONS": self.dimensions,
            "MASKED": int(self.masked),
            "INDEX": "unsigned long long" if self.wide else "unsigned int",
            "OFFSET": "long long" if self.wide or self.far else "int",
        }
        outputs = [o.loop for o in self.operands if o.kind == "Output"]
        inputs = [o.loop for o in self.operands if o.kind != "Output"]
        return function_macros(values, inputs, outputs)


class Reduce(NamedTuple):
    """A reduction along lines.

    A segment is folded by a ``group`` of 1, 32 or 256 threads, or of 8, one of each
    warp of a block. ``joining`` threads, 32 or 256, join the segments of a line; 0:
    each has a place in the target.
    """

    source: np.dtype[Any]  # in memory
    loop: np.dtype[Any]  # of the function
    target: np.dtype[Any]  # of the results in memory
    group: int
    dimensions: int = 1  # those that count lines
    masked: bool = False  # whether a mask says which elements take part
    segmented: bool = False  # whether an array says where segments begin
    joining: int = 0
    statistic: str = "fold"  # what becomes of a sum
    wide: int = 1  # of so many lines a thread folds a segment, in groups of 1 or 8
    template: str = "reduce"

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        types = ",".join(map(cpp_name, (self.source, self.loop, self.target)))
        return f"xdev::{self.template}<{types}>"

    @property
    def span(self) -> int:
        """Return how many elements a group folds or scans at once."""
        alone = self.group <= WARPS and self.template == "reduce"
        return 1 if alone else self.group * self.lanes

    @property
    def lanes(self) -> int:
        """Return how many neighbours a thread folds or scans at once."""
        if self.template == "scan":
            return min(SCANNED, SCANNED_BYTES // self.loop.itemsize - 1)
        return REDUCED // self.source.itemsize

    @property
    def partial(self) -> int:
        """Return the bytes of a segment's fold, with the mark that it is there."""
        if self.statistic.startswith("arg"):
            return MARK + PLACED
        parts = 3 if self.statistic in ("var", "std") else 1
        return MARK + parts * self.loop.itemsize

    def macros(self) -> Macros:
        """Return the template's macros."""
        numbers = {
            "GROUP": self.group,
            "LANES": self.lanes,
            "DIMENSIONS": self.dimensions,
            "MASKED": int(self.masked),
            "SEGMENTED": int(self.segmented),
            "JOINING": self.joining,
            "WIDE": self.wide,
            "STATISTIC": STATISTICS.index(self.statistic),
        }
        return function_macros(numbers, (self.loop, self.loop), (self.loop,))


# A running fold along lines: no more than group, dimensions and types is its own.
Scan = partial(Reduce, template="scan")


class Scatter(NamedTuple):
    """A function in place at sorted positions."""

    target: np.dtype[Any]  # of the array that is worked on
    value: np.dtype[Any] | None  # of the second operand in memory, if there is one
    inputs: Dtypes  # what the function takes
    output: np.dtype[Any]  # what it gives
    template: str = "scatter"

    @property
    def entry(self) -> str:
        """Return the kernel's C++ name, template arguments included."""
        value = self.value or self.target
        types = self.target, self.inputs[0], value, self.inputs[-1], self.output
        return f"xdev::scatter<{','.join(map(cpp_name, types))}>"

    def macros(self) -> Macros:
        """Return the template's macros."""
        numbers = {"BINARY": int(self.value is not None)}
        return function_macros(numbers, self.inputs, (self.output,))


def function_macros(
    values: Mapping[str, object],
    inputs: Sequence[np.dtype[Any]],
    outputs: Sequence[np.dtype[Any]],
) -> Macros:
    """Return macros of a template: its own, and those of the function's pointers."""
    reads = [f"const {cpp_name(computed(dtype))}*" for dtype in inputs]
    writes = [f"{cpp_name(computed(dtype))}*" for dtype in outputs]
    signature = ",".join([*reads, *writes])
    own = {"FUNCTION": FUNCTION, "SIGNATURE": signature, "BLOCK": BLOCK}
    return defined({**values, **own})


def defined(values: Mapping[str, object]) -> Macros:
    """Return macros for a template, of names without their prefix."""
    return [(f"XDEV_{name}", str(value)) for name, value in values.items()]


def build(
    template: str,
    entry: str,
    macros: Macros,
    code: bytes,
    capability: tuple[int, int],
    *,
    fastmath: bool,
) -> tuple[bytes, str]:
    """Compile a template, and link it with a function's LTO-IR: a cubin, and a name."""
    arch = "sm_{}{}".format(*capability)
    with explained():
        source = (FOLDER / f"{template}.cu").read_text()
        part, symbol = _compiled(
            source, entry, tuple(macros), arch, "ltoir", fma=fastmath
        )
        return link([part, code], arch, fma=fastmath), symbol


def expressed(
    kernel: Template,
    function: str,
    capability: tuple[int, int],
    folders: Sequence[str],
    *,
    fastmath: bool,
) -> tuple[bytes, str]:
    """Compile a template with a function in C++ that defines :data:`FUNCTION`.

    ``folders`` are where else its headers are; nothing is linked.
    """
    arch, macros = "sm_{}{}".format(*capability), tuple(kernel.macros())
    source = function + (FOLDER / f"{kernel.template}.cu").read_text()
    options = {"fma": fastmath, "folders": tuple(folders)}
    with explained():
        return _compiled(source, kernel.entry, macros, arch, "cubin", **options)


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
        std="c++20",
        device_as_default_execution_space=True,  # of lambdas with template parameters
        fma=fma,
        include_path=[str(FOLDER), *folders],
        define_macro=list(macros),
        **(linked if code == "ltoir" else {}),
    )
    program = core.Program(source, "c++", options)
    result = program.compile(code, name_expressions=(entry,))
    symbol = result.symbol_mapping[entry]
    return bytes(result.code), symbol.decode() if isinstance(symbol, bytes) else symbol


def cpp_name(dtype: np.dtype[Any]) -> str:
    """Return a dtype's type in the templates."""
    if dtype.kind == "c":
        return f"xdev::complex<{cpp_name(np.dtype(f'f{dtype.itemsize // 2}'))}>"
    if is_bfloat16(dtype):
        return "xdev::bfloat16"
    if dtype.kind == "f":
        return FLOATS[dtype.itemsize]
    sign = "unsigned" if dtype.kind == "u" else "signed"
    return "bool" if dtype.kind == "b" else f"{sign} {INTEGERS[dtype.itemsize]}"


def computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that the scalar function computes in."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


# The parts of the CUDA compiler: their versions, and whether they fit together.

# The packages that bring each part, with ``_`` for ``-``.
PACKAGES = {
    "nvrtc": ("nvidia_cuda_nvrtc", "nvidia_cuda_nvrtc_cu12"),
    "nvvm": ("nvidia_nvvm", "nvidia_cuda_nvcc_cu12"),
    "nvjitlink": ("nvidia_nvjitlink", "nvidia_nvjitlink_cu12"),
    "cuda.core": ("cuda_core",),
    "numba-cuda": ("numba_cuda", "numba_cuda_mlir"),
}
CUDA_12 = 12  # whose packages have its number in their names
LIBRARIES = ("nvrtc", "nvjitlink")  # parts that tell which CUDA they are of


@cache
def installed() -> dict[str, str]:
    """Return the version of each part; those without a package of their own load."""
    parts = {}
    distributions = _optional.distributions()
    for part, packages in PACKAGES.items():
        versions = [distributions[name] for name in packages if name in distributions]
        if not versions and part in LIBRARIES:
            versions = [".".join(map(str, _bound(part) or ()))]
        parts[part] = "+".join(versions)
    return parts


def load_or_compile(
    digest: str | None,
    parts: object,
    name: str,
    make: Callable[[], tuple[bytes, str]],
    unchanged: Callable[[], bool] = lambda: True,
) -> tuple[bytes, str]:
    """Return what :func:`xdev.compile.digests.load_or_compile` does of a cubin."""
    every = parts, sorted(installed().items())
    return digests.load_or_compile("cubins", digest, every, name, make, unchanged)


def link(parts: list[bytes], arch: str, *, fma: bool) -> bytes:
    """Link LTO-IR of NVRTC or NVVM to a cubin, optimised as a whole.

    nvJitLink is called itself for ``fma``, whether a product and a sum may become one
    rounding: the option that ``cuda.core`` writes for it is refused.
    """
    linker: Any = importlib.import_module("cuda.bindings.nvjitlink")
    options = [f"-arch={arch}", "-lto", f"-fma={int(fma)}"]
    handle = linker.create(len(options), options)
    try:
        for part in parts:
            linker.add_data(handle, linker.InputType.LTOIR, part, len(part), "part")
        linker.complete(handle)
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
    finally:
        linker.destroy(handle)
    return bytes(cubin)


@contextmanager
def explained() -> Iterator[None]:
    """Turn a failure to compile or link a template into DeviceUnavailableError."""
    check()
    try:
        yield
    except Exception as error:  # each part raises an error type of its own
        listed = ", ".join(f"{k} {v or '-'}" for k, v in installed().items())
        raise DeviceUnavailableError(
            f"cannot link a CUDA kernel: {error}\nThe compiler's parts are "
            f"{listed}. nvJitLink must be no older than NVVM and NVRTC: "
            f"{_update(_bound('nvrtc') or (13, 0))}"
        ) from error


def check() -> None:
    """Refuse an nvJitLink that is older than NVRTC or NVVM: DeviceUnavailableError."""
    linker = _bound("nvjitlink")
    # The library NVVM tells the version of its language, only its package that of CUDA.
    nvvm = tuple(map(int, re.findall(r"\d+", installed()["nvvm"])[:2]))
    for name, compiler in (("NVRTC", _bound("nvrtc")), ("NVVM", nvvm)):
        if linker and compiler and linker[:2] < compiler[:2]:
            message = (
                "nvJitLink {}.{} is older than {} {}.{}, whose code it cannot link: "
            ).format(*linker[:2], name, *compiler[:2])
            raise DeviceUnavailableError(message + _update(compiler))


def _update(compiler: tuple[int, ...]) -> str:
    """Return the command that installs an nvJitLink for a compiler's version."""
    package = "nvidia-nvjitlink" + ("-cu12" if compiler[0] == CUDA_12 else "")
    return f"pip install '{package}>={compiler[0]}.{compiler[1]}'"


@cache
def _bound(name: str) -> tuple[int, ...] | None:
    """Return the version that a library reports, None where it cannot be loaded."""
    _optional.cuda_core()
    try:
        module: Any = importlib.import_module(f"cuda.bindings.{name}")
        report = module.nvrtcVersion if name == "nvrtc" else module.version
        return tuple(report())[-2:]  # after the error, if that is told
    except (ImportError, RuntimeError, AttributeError):
        return None
