"""Random functions give what Python gives with NumPy's scalars.

Their expressions are of four kinds: of the arguments' dtype, real quotients of these,
and Python's integers and floats. What depends on how Python's types change while it
runs is not made: names keep their kinds. Elements for which NumPy raises (a Python
integer that the dtype beside it does not have) are left out. HYPOTHESIS_PROFILE=deep
makes many more.
"""

import math
import operator
import os
import random
import re
from functools import lru_cache
from textwrap import indent

import numpy as np
import pytest
from running import with_source

import xdev

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SEEDS = range(4000 if DEEP else 20)
DTYPES = "BbHhIilLfd"


class Program:
    """A random function's text: statements and expressions by forms."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 - tests
        self.char = DTYPES[seed % len(DTYPES)]
        more = OF_FLOATS if self.char in "fd" else OF_INTEGERS
        forms = FORMS | {"T": FORMS["T"] + more}
        self.forms = {kind: re.split("; *", text) for kind, text in forms.items()}
        self.outputs = self.random.choice([1, 1, 1, 2])
        self.names = {"T": "xy"}
        self.returned = []  # the kinds of what is returned, by statement

    def text(self, name):
        lines = [self.filled(BEFORE)]
        self.names = {"T": "xyt", "W": "wkn", "F": "f", "R": "r"}
        lines += self.statements(self.random.randint(1, 4), LOOPS + STATEMENTS)
        lines.append(self.filled("return {}"))
        return f"def {name}(x, y):\n{indent(chr(10).join(lines), '    ')}\n"

    def statements(self, count, forms):
        """Return statements, of which those in loops and branches are no loops."""
        found = []
        for _ in range(count):
            whole = self.random.choice(forms)
            form, _, body = whole.partition("*")
            found.append(self.filled(form))
            if body:
                in_loop = whole in LOOPS or forms[-1] == IN_LOOPS[-1]
                inner = self.statements(int(body), STATEMENTS + IN_LOOPS * in_loop)
                found += [indent(line, "    ") for line in inner]
        return found

    def filled(self, form, depth=3):
        if "{}" in form:
            kinds = [self.random.choice("TTTWFRCM") for _ in range(self.outputs)]
            self.returned.append(kinds)
            form = form.format(", ".join(kinds))
        return re.sub(r"\b[A-Z]\b", lambda part: self.part(part[0], depth), form)

    def of(self, kind, depth=3):
        if depth <= 0 or self.random.random() < 0.15:
            return self.leaf(kind)
        return self.filled(self.random.choice(self.forms[kind]), depth)

    def part(self, letter, depth):
        words = WORDS.get(letter)
        return self.random.choice(words) if words else self.of(letter, depth - 1)

    def leaf(self, kind):
        number = self.random.choice([0, 1, 2, 3, 5, 7])
        names = self.names.get(kind)
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        if kind == "W":
            return f"int(x % {number + 3})" if number == 5 else f"{number}"
        if kind in "TF":
            return f"{number / 5}" if kind == "F" else self.random.choice("xy")
        return self.filled(self.forms[kind][0], 0)


# Statements; behind a star, so many stand in it.
BEFORE = "t, w, k, n, f, r = T, W, N, 0, 0.5, R"
LOOPS = [
    *("t = 0\nt += T\nfor k in range(N):\n    t U T*1", "for k in range(1, N):*2"),
    "n = 0\nwhile n < N:\n    n += 1*1",
]
STATEMENTS = [
    *("if C:\n    return {}", "if C:*1", "if C:\n    x = T\nelse:*1"),
    *("x = T", "t = T", "y U T", "w = W", "f = F", "r = R"),
]
IN_LOOPS = ["if C:\n    break", "if C:\n    continue", "w += 1", "t U T"]


# Of the arguments' dtype, Python's integers and floats, quotients, conditions, and what
# is of two kinds; the other letters are operators, functions, comparisons and numbers.
FORMS = {
    "T": "(T O T); (T O W); (W O T); (T O N); (-T); abs(T); E(T, T); E(T, W);"
    "E(N, T, T); (T if C else T); ((W if C else T) + T); (C * T); (T + (C));"
    "helper(T, T); helper(T, N); (T * sign(T)); (T ** 2); pow(T, 2); np.where(C, T, T);"
    "operator.mul(T, T); np.subtract(T, N); np.maximum(T, T)",
    "W": "(W A W); (W D N); (W if C else W); abs(W); max(W, W); min(N, W); int(C);"
    "int(T % 100); (-W); (~W); round(T % 50); (len((x, y)) * W)",
    "F": "(F A F); (F A W); (W / 4); float(T); (F if C else F); abs(F);"
    "(math.sqrt(2.0) * F)",
    "R": "(T / T); (R O T); (W O R); (R / F); (T * 1.25); (R if C else R)",
    "M": "(T if C else W); (W if C else F); (F if C else T); (R if C else T)",
    "C": "(T S T); (T S W); (W S W); (R S T); (T S T < W); (not C); (C and C);"
    "(C or C); bool(T); operator.lt(T, T); np.not_equal(T, T)",
}
OF_INTEGERS = "; (T B T); (T B N); (~T); (T << K); (T >> K)"
OF_FLOATS = "; (T O F); (F O T); (T / T)"
WORDS = {
    "A": ["+", "-", "*"],
    "B": ["&", "|", "^"],
    "D": ["//", "%"],
    "E": ["min", "max"],
    "K": ["1", "2", "3"],
    "N": ["2", "3", "5", "7"],
    "O": ["+", "-", "*", "//", "%"],
    "U": ["+=", "-=", "*="],
    "S": ["<", "<=", ">", ">=", "==", "!="],
}


def helper(x, y):
    if x > y:
        return x - y
    return y * 3


def sign(x):
    return -1 if x < 0 else 1


def extreme(which):
    """Return ``min`` or ``max`` with a result of one dtype."""

    def chosen(*args):
        typed = any(isinstance(each, np.generic) for each in args)
        return np.result_type(*args).type(which(*args)) if typed else which(*args)

    return chosen


def values(char):
    """Return ends of a dtype's range and values between, each with each."""
    dtype = np.dtype(char)
    if dtype.kind == "f":
        ends = np.array([-3.5, 0, 0.25, 1, 2, 7, 100, -1e5, np.inf, np.nan], dtype)
    else:
        info = np.iinfo(dtype)
        far = 2**34 if dtype.itemsize == 8 else 1  # int64 itself may not overflow
        low, high = info.min // far, info.max // far
        ends = np.array([low, low + 1, 0, 1, 2, 7, 100, high // 2, high], dtype)
    return [each.ravel() for each in np.meshgrid(ends, ends)]


def reference(function, x, y):
    """Return each element's results, None where NumPy raises."""
    rows = []
    with np.errstate(all="ignore"):
        for pair in zip(x, y, strict=True):
            try:
                found = function(*pair)
            except (OverflowError, ZeroDivisionError, ValueError):
                rows.append(None)
            else:
                rows.append(found if isinstance(found, tuple) else (found,))
    return rows


def differs(found, expected):
    """Say whether a result is another than NumPy's, or None: neither is defined."""
    if type(expected) is int and found.dtype.kind in "iu":
        info = np.iinfo(found.dtype)
        if not info.min <= expected <= info.max:
            return None
    wide = np.result_type(found.dtype, np.asarray(expected).dtype)
    if found.dtype.kind in "iub":
        return int(found) != int(expected)
    if wide.kind in "iub":
        return float(found) != float(expected)
    one, other = float(found), float(found.dtype.type(expected))
    return not (one == other or (one != one and other != other))  # noqa: PLR0124 - NaN


@lru_cache(24)  # compiled once for all devices
def prepared(seed):
    """Return a random program, its text, arguments, Python's results and its ufunc."""
    program = Program(seed)
    text = program.text("program")
    plain = {"helper": lambda x, y: helper(x, type(x)(y)), "sign": sign}
    plain |= {"min": extreme(min), "max": extreme(max)}
    inner = {"helper": xdev.vectorize(helper), "sign": xdev.vectorize(sign)}
    for names in (plain, inner):
        names.update(np=np, operator=operator, math=math)
    arguments = values(program.char)
    rows = reference(with_source(text, "program", **plain), *arguments)
    ours = xdev.vectorize(with_source(text, "program", **inner))
    return program, text, arguments, rows, ours


def outcome(seed, device):
    program, text, (x, y), rows, ours = prepared(seed)
    there = [xdev.asarray(each, device=device) for each in (x, y)]
    try:
        with np.errstate(all="ignore"):
            found = ours(*there)
    except OverflowError as error:  # a number beside a dtype that does not have it
        assert "out of bounds" in str(error), text  # noqa: PT017 - where it is raised
        return 0
    columns = found if isinstance(found, tuple) else (found,)
    columns = [xdev.to_numpy(column) for column in columns]
    compared = 0
    for k, row in enumerate(rows):
        for column, expected in zip(columns, row or (), strict=row is not None):
            wrong = differs(column[k], expected)
            compared += wrong is not None
            told = f"{x[k]!r}, {y[k]!r}: {column[k]!r} is not {expected!r}\n{text}"
            assert not wrong, told
    plain = len(program.returned) == 1 and "M" not in program.returned[0]
    for j, column in enumerate(columns if plain else ()):
        kinds = {type(row[j]) for row in rows if row and "helper" not in text}
        if len(kinds) == 1 and (number := kinds & {int, float, bool}):
            assert column.dtype == np.dtype(*number), f"{column.dtype}\n{text}"
    return compared


@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions_are_numpys(device, seed):
    outcome(seed, device)


def test_most_results_are_compared():
    assert sum(outcome(seed, xdev.Device("cpu")) for seed in range(8)) > 500
