"""Vectorized mathematics on the CPU, in the place of the C library's in compiled code.

``functions`` are expressions of several elements at once, in LLVM's SIMD instructions;
their polynomials are in ``coefficients``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, final

from xdev import _optional
from xdev.compile.cpu_math import functions
from xdev.compile.cpu_math.functions import FLOAT32, FLOAT64, Kind, Lanes, shape

# LLVM functions of the vectorized mathematics: one for each number of lanes.
#
# The function of one lane names those of several as its vector variants, so that LLVM's
# loop vectorizer calls them. Arguments that an implementation does not take, and which
# are rare, go to the C library; their neighbours are then computed one by one, too.

LANES = {FLOAT32: (1, 4, 8, 16), FLOAT64: (1, 2, 4, 8)}


# Of each function of the C library the result, of :class:`Lanes`, and which of them
# are rare: these the C library computes.
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "cos": (functions.cos, functions.huge),
    "erf": (functions.erf, None),
    "exp": (functions.exp, functions.overflows(functions.GREATEST)),
    "exp2": (functions.exp2, functions.overflows(functions.GREATEST_2)),
    "expm1": (functions.expm1, functions.overflows(functions.GREATEST)),
    "fmod": (functions.fmod, functions.not_near),
    "log": (functions.log, functions.not_positive),
    "log10": (functions.log10, functions.not_positive),
    "log1p": (functions.log1p, functions.not_above_minus_one),
    "log2": (functions.log2, functions.not_positive),
    "pow": (functions.power, functions.not_plain),
    "sin": (functions.sin, functions.huge),
    "tan": (functions.tan, functions.huge),
    "tanh": (functions.tanh, None),
}


def _arity(name: str) -> int:
    return int(FUNCTIONS[name][0].__code__.co_argcount)


def symbol(name: str, kind: Kind, lanes: int = 1) -> str:
    """Return the name in LLVM's text of a function of so many lanes."""
    return f"xdev.{name}.f{kind.width}" + (f".{lanes}" if lanes > 1 else "")


@cache
def module_text(name: str, kind: Kind) -> str:
    """Return the LLVM module that defines one function for every number of lanes."""
    module = _optional.llvm_ir().Module(name)
    for lanes in LANES[kind]:
        _define(module, name, kind, lanes)
    return str(module)


def _define(module: Any, name: str, kind: Kind, lanes: int) -> None:
    """Define the function of so many lanes.

    Its linkage keeps it, called or not, and its calling convention, until the
    vectorizer has run.
    """
    value, rare = FUNCTIONS[name]
    defined = _declare(module, symbol(name, kind, lanes), kind, lanes)
    defined.linkage = "weak_odr"
    pure = "noinline", "nounwind", "readnone", "willreturn"
    defined.attributes.update(pure if lanes > 1 else (*pure, _variants(name, kind)))
    builder = _optional.llvm_ir().IRBuilder(defined.append_basic_block())
    x = [Lanes(builder, argument, kind) for argument in defined.args]
    if rare is not None:
        careful = _careful(module, name, kind, lanes)
        with builder.if_then(_any(builder, rare(*x)), likely=False):
            builder.ret(builder.call(careful, defined.args))
    builder.ret(value(*x).value)


def _careful(module: Any, name: str, kind: Kind, lanes: int) -> Any:
    """Define what takes rare arguments: of one lane, the C library's function.

    Of several, each lane by itself. It is not ``readnone``, since the C library sets
    ``errno`` at times, and not optimised: LLVM would make it call those that call it.
    """
    ir = _optional.llvm_ir()
    if lanes == 1:
        return _declare(module, name + ("f" if kind is FLOAT32 else ""), kind)
    defined = _declare(module, f"{symbol(name, kind, lanes)}.careful", kind, lanes)
    defined.linkage = "internal"
    defined.attributes.update(("cold", "noinline", "nounwind", "optnone"))
    b = ir.IRBuilder(defined.append_basic_block())
    scalar = module.get_global(symbol(name, kind))
    result = ir.Constant(defined.ftype.return_type, ir.Undefined)
    for lane in map(ir.IntType(32), range(lanes)):
        values = [b.extract_element(argument, lane) for argument in defined.args]
        result = b.insert_element(result, b.call(scalar, values), lane)
    b.ret(result)
    return defined


def _declare(module: Any, name: str, kind: Kind, lanes: int = 1) -> Any:
    ir = _optional.llvm_ir()
    declared = module.globals.get(name)
    if declared is not None:
        return declared
    llvm_type, arity = shape(kind.type, lanes), _arity(module.name)
    return ir.Function(module, ir.FunctionType(llvm_type, [llvm_type] * arity), name)


def _any(builder: Any, condition: Lanes) -> Any:
    """Return whether a condition holds in any lane."""
    if condition.count == 1:
        return condition.value
    mask = _optional.llvm_ir().IntType(condition.count)
    return builder.icmp_unsigned("!=", builder.bitcast(condition.value, mask), mask(0))


def _variants(name: str, kind: Kind) -> str:
    """Return the attribute that names the vector variants, in LLVM's notation."""
    scalar, arguments = symbol(name, kind), "v" * _arity(name)
    mangled = [
        f"_ZGV_LLVM_N{n}{arguments}_{scalar}({symbol(name, kind, n)})"
        for n in LANES[kind][1:]
    ]
    return f'"vector-function-abi-variant"="{",".join(mangled)}"'


SYMBOLS = {
    spelling: (name, kind)
    for name in FUNCTIONS
    for kind, suffix in ((FLOAT32, "f"), (FLOAT64, ""))
    for spelling in (f"llvm.{name}.f{kind.width}", f"{name}{suffix}")
}
CALLED = re.compile(r"@([\w.]+)\(")


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
    text = str(module)
    used = {name for name in CALLED.findall(text) if name in SYMBOLS}
    if not used or not _has_fma():
        return library
    text = CALLED.sub(_renamed, text)
    module = llvm.parse_assembly(text)
    for name, kind in {SYMBOLS[spelling] for spelling in used}:
        part = llvm.parse_assembly(module_text(name, kind))
        part.triple, part.data_layout = module.triple, module.data_layout
        module.link_in(part)
    return Linkable(module)


def _has_fma() -> bool:
    """Say whether the CPU has fused multiplication and addition."""
    context = _optional.numba().core.registry.cpu_target.target_context
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith("x86") or "+fma," in f"{features},"


def _renamed(call: re.Match[str]) -> str:
    spelled = SYMBOLS.get(call[1])
    return f"@{symbol(*spelled)}(" if spelled else call[0]
