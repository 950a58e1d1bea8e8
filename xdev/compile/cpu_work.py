"""How much work a compiled scalar function is, by its instructions."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from xdev.compile.cpu_math.linking import CALLED, SYMBOLS

LINE = re.compile(r"\s+(%[\w.]+) = (?:tail )?(.*)")
VALUE = re.compile(r"%[\w.]+")
DIVISION = re.compile(r"[fsu](div|rem) ")
ROOT = re.compile(r"sqrtf?|llvm\.sqrt\.f\d+")
# By instructions to which NaN is an invalid value, in SIMD code at least.
COMPARISON = re.compile(r" fcmp (?:\w+ )*?[ou][lg][te] ")
# In simple instructions, of which a processor does several at once.
DIVIDING, ROOTING, CALLING = 8, 16, 100


class Work(NamedTuple):
    """What a function costs.

    Attributes
    ----------
    amount : int
        In simple instructions.
    branches : bool
        Whether there are conditions, or loops, that are no instruction.
    parameters : bool
        Whether there is costly work on the inputs behind the first alone, as in
        ``x * exp(a)``: a loop in which these are numbers does it once.
    compares : bool
        Whether floats are compared by size.
    """

    amount: int = 0
    branches: bool = False
    parameters: bool = False
    compares: bool = False


NONE = Work()


def of(compiled: Any) -> Work:
    """Return the work of a function that Numba compiled (its ``CompileResult``)."""
    module = compiled.library._final_module  # noqa: SLF001
    made = module.get_function(compiled.fndesc.llvm_func_name)
    text = str(made)
    name = f"%arg.{compiled.fndesc.args[0]}"
    arguments = {value for value in VALUE.findall(text) if value.startswith("%arg.")}
    first = {x for x in arguments if x == name or x.startswith(f"{name}.")}
    others = arguments - first
    amount, parameters = 0, False
    for result, operation in LINE.findall(text):
        cost = _cost(operation)
        amount += cost
        used = set(VALUE.findall(operation))
        if used & first:
            first.add(result)
        elif used & others:
            others.add(result)
            parameters = parameters or cost > 1
    compares = COMPARISON.search(text) is not None
    return Work(amount, len(list(made.blocks)) > 1, parameters, compares)


def _cost(operation: str) -> int:
    if DIVISION.match(operation):
        return DIVIDING
    for called in CALLED.findall(operation):
        if ROOT.fullmatch(called):
            return ROOTING
        if called in SYMBOLS or not called.startswith("llvm."):
            return CALLING
    return 1
