"""Kernels on CUDA are found again by what makes their code, and compiled once."""

import itertools

import numpy as np

from xdev.compile.elementwise import Elementwise, Operand
from xdev.compile.folds import Reduce, Scan, Scatter

F, D, E = np.dtype("f"), np.dtype("d"), np.dtype("e")


def elementwise(kind="Linear", storage=F, loop=F, **layout):
    """Return a new template, of one input and one output."""
    operands = Operand(kind, storage, loop), Operand("Output", loop, loop)
    return Elementwise(operands, **layout)


TEMPLATES = [
    elementwise,
    lambda: elementwise(storage=D),
    lambda: elementwise(loop=D),
    lambda: elementwise("Constant"),
    lambda: elementwise("Constant", storage=D),
    lambda: elementwise("Uniform"),
    lambda: elementwise(dimensions=2),
    lambda: elementwise(wide=True),
    lambda: elementwise(far=True),
    lambda: elementwise("Strided", template="strided"),
    lambda: elementwise("Strided", template="strided", masked=True),
    lambda: Reduce(F, F, F, 32),
    lambda: Reduce(F, F, F, 256),
    lambda: Reduce(E, F, F, 32),
    lambda: Reduce(F, F, F, 32, masked=True),
    lambda: Reduce(F, F, F, 32, segmented=True),
    lambda: Scan(F, F, F, 32),
    lambda: Scan(F, F, F, 32, dimensions=2),
    lambda: Scatter(F, F, (F, F), F),
    lambda: Scatter(F, None, (F,), F),
]


def test_templates_are_equal_where_their_code_is():
    for pair in itertools.combinations_with_replacement(TEMPLATES, 2):
        one, two = (make() for make in pair)
        code = [(x.template, x.entry, x.macros()) for x in (one, two)]

        assert (one == two) == (code[0] == code[1])
        assert one != two or hash(one) == hash(two)
