"""Puts vectorized functions in the place of the C library's in compiled code."""

from __future__ import annotations

import re
from typing import Any, final

from xdev import _optional
from xdev.compile.cpu_math import definitions
from xdev.compile.cpu_math.lanes import FLOAT32, FLOAT64

SYMBOLS = {
    spelling: (name, kind)
    for name in definitions.FUNCTIONS
    for kind, suffix in ((FLOAT32, "f"), (FLOAT64, ""))
    for spelling in (f"llvm.{name}.{kind.suffix}", f"{name}{suffix}")
}
CALLED = re.compile(r"@([\w.]+)\(")
REMAINDER = r"= frem ((?:\w+ )*){0} ([^,]+), ([^,\n]+)"


@final
class Linkable:
    """A module that Numba links into a library, as it links other libraries.

    Parameters
    ----------
    module : llvmlite's ModuleRef
        Its functions have a linkage under which unused ones vanish.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._reload_init: set[Any] = set()

    def _ensure_finalized(self) -> None:
        """Do nothing: the module is optimised with what it is linked into."""

    def _get_module_for_linking(self) -> Any:
        return self._module


def vectorized(library: Any) -> Any:
    """Return a library to link instead of a compiled function's own.

    Parameters
    ----------
    library : Numba's CodeLibrary
        Of a function and all that it calls.

    Returns
    -------
    CodeLibrary or Linkable
        The library itself, if it calls nothing that is vectorized here, or the CPU
        is too old.
    """
    llvm = _optional.llvm()
    module = library._get_module_for_linking()  # noqa: SLF001
    text = _calling(str(module))
    used = {name for name in CALLED.findall(text) if name in SYMBOLS}
    if not used or not _fuses():
        return library
    text = CALLED.sub(_renamed, text)
    made = llvm.parse_assembly(text)
    for name, kind in {SYMBOLS[spelling] for spelling in used}:
        part = llvm.parse_assembly(definitions.text(name, kind))
        part.triple, part.data_layout = made.triple, made.data_layout
        made.link_in(part)
    return Linkable(made)


def _calling(text: str) -> str:
    """Write remainders as calls, which LLVM makes of them in the end."""
    for kind, name in ("float", "fmodf"), ("double", "fmod"):
        call = rf"= call \1{kind} @{name}({kind} \2, {kind} \3)"
        declared = f"@{name}(" in text
        text, count = re.subn(REMAINDER.format(kind), call, text)
        if count and not declared:
            text += f"declare {kind} @{name}({kind}, {kind})\n"
    return text


def _fuses() -> bool:
    """Say whether Numba compiles for a CPU with fused multiplication and addition."""
    context = _optional.numba().core.registry.cpu_target.target_context
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith("x86") or "+fma," in f"{features},"


def _renamed(call: re.Match[str]) -> str:
    known = SYMBOLS.get(call[1])
    return f"@{definitions.symbol(*known)}(" if known else call[0]
