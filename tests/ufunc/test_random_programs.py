"""Random functions give what Python gives with NumPy's scalars.

Their expressions are of four kinds: of the arguments' dtype, real quotients of these,
and Python's integers and floats. What depends on how Python's types change while it
runs is not made: names keep their kinds. Elements for which NumPy raises (a Python
integer that the dtype beside it does not have) are left out. HYPOTHESIS_PROFILE=deep
makes many more.
"""

import linecache
import operator
import os
import random
import re
from functools import lru_cache

import numpy as np
import pytest

import xdev

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SEEDS = range(4000 if DEEP else 20)
DTYPES = "BbHhIilLfd"


class Program:
    """A random function's text."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 - tests
        self.char = DTYPES[seed % len(DTYPES)]
        self.whole = self.char not in "fd"
        self.names = {"T": ["x", "y"], "W": [], "F": [], "R": []}
        self.lines = []
        forms = FORMS | {"T": FORMS["T"] + (OF_INTEGERS if self.whole else OF_FLOATS)}
        self.forms = {kind: re.split("; *", text) for kind, text in forms.items()}
        self.plain = True  # there is one result
        self.outputs = self.random.choice([1, 1, 1, 2])

    def text(self, name):
        self.statements("    ", self.random.randint(1, 4), loop=False)
        self.lines.append(f"    return {self.results()}")
        return "\n".join([f"def {name}(x, y):", *self.lines]) + "\n"

    def results(self):
        kinds = [self.random.choice("TTTWFRC") for _ in range(self.outputs)]
        return ", ".join(self.answer(kind) for kind in kinds)

    def answer(self, kind):
        """Return a result; what is of two kinds is one as it is returned alone."""
        if self.random.random() < 0.15:
            other = self.random.choice("TWF")
            self.plain = False
            return f"{self.of(other)} if {self.of('C')} else {self.of(kind)}"
        return self.of(kind)

    def statements(self, indent, count, *, loop):
        for _ in range(count):
            self.statement(indent, loop=loop)

    def statement(self, indent, *, loop):
        draw = self.random.random()
        add = self.lines.append
        if draw < 0.25:
            add(f"{indent}if {self.of('C')}:")
            if loop and self.random.random() < 0.5:
                add(f"{indent}    {self.random.choice(['break', 'continue'])}")
            elif self.random.random() < 0.6:
                add(f"{indent}    return {self.results()}")
                self.plain = False
            else:
                self.assign(f"{indent}    ", known=True)
                if self.random.random() < 0.5:
                    add(f"{indent}else:")
                    self.assign(f"{indent}    ", known=True)
        elif draw < 0.45 and not loop:
            total, counter = self.new("T"), self.new("W")
            if self.random.random() < 0.5:
                add(f"{indent}{total} = {self.of('T')}")
            else:
                add(f"{indent}{total} = 0")
                add(f"{indent}{total} += {self.of('T')}")
            add(f"{indent}{counter} = {self.random.randint(0, 3)}")
            index = self.new("W")
            start = f"{self.random.randint(0, 2)}, " if draw < 0.35 else ""
            add(f"{indent}for {index} in range({start}{self.random.randint(3, 5)}):")
            self.names["T"].append(total)
            self.names["W"] += [counter, index]
            op = self.random.choice(["+=", "-=", "*="])
            add(f"{indent}    {total} {op} {self.of(self.random.choice('TTW'), 2)}")
            self.statements(f"{indent}    ", self.random.randint(0, 2), loop=True)
            add(f"{indent}    {counter} += 1")
        elif draw < 0.5 and not loop:
            counter = self.new("W")
            add(f"{indent}{counter} = 0")
            add(f"{indent}while {counter} < {self.random.randint(1, 4)}:")
            self.names["W"].append(counter)
            add(f"{indent}    {counter} += 1")
            self.assign(f"{indent}    ", known=True)
        else:
            self.assign(indent, known=loop)

    def assign(self, indent, *, known):
        kind = self.random.choice("TTTWFR")
        value = self.of(kind)
        names = [name for name in self.names[kind] if name not in "xy"]
        if kind == "W":
            names = [name for name in names if name.startswith("free")]
        if known and not names:
            names = ["x"]
            value = self.of("T")
        if names and (known or self.random.random() < 0.3):
            name = self.random.choice(names)
        else:
            name = f"free{self.new(kind)}"
            self.names[kind].append(name)
        self.lines.append(f"{indent}{name} = {value}")

    def new(self, kind):
        self.count = getattr(self, "count", 0) + 1
        return f"{kind.lower()}{self.count}"

    def of(self, kind, depth=3):
        """Return an expression."""
        if depth <= 0 or self.random.random() < 0.15:
            return self.leaf(kind)
        chosen = self.random.choice(self.forms[kind])
        return re.sub(r"\b[A-Z]\b", lambda part: self.part(part[0], depth), chosen)

    def part(self, letter, depth):
        """Return what stands for a letter of a form."""
        words = WORDS.get(letter)
        return self.random.choice(words) if words else self.of(letter, depth - 1)

    def leaf(self, kind):
        number = self.random.choice([0, 1, 2, 3, 5, 7])
        if kind == "C":
            sign = self.random.choice(WORDS["S"])
            return f"({self.leaf('T')} {sign} {self.leaf('T')})"
        if kind == "R":
            return f"({self.leaf('T')} / {self.random.choice([2, 3, 'x'])})"
        names = self.names[kind]
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        if kind == "W":
            return f"int(x % {number + 3})" if number == 5 else f"{number}"
        return f"{number / 5}" if kind == "F" else self.random.choice("xy")


# Of the arguments' dtype, Python's integers and floats, quotients, and conditions; the
# other letters are operators, functions, bits, comparisons and numbers.
FORMS = {
    "T": "(T O T); (T O W); (W O T); (T O N); (-T); abs(T); E(T, T); E(T, W);"
    "E(N, T, T); (T if C else T); ((W if C else T) + T); (C * T); (T + (C));"
    "helper(T, T); helper(T, N); (T * sign(T)); (T ** 2); pow(T, 2); np.where(C, T, T);"
    "operator.mul(T, T); np.subtract(T, N); np.maximum(T, T)",
    "W": "(W A W); (W D N); (W if C else W); abs(W); max(W, W); min(N, W); int(C);"
    "int(T % 100); (-W); round(T % 50); (len((x, y)) * W)",
    "F": "(F A F); (F A W); (W / 4); float(T); (F if C else F); abs(F)",
    "R": "(T / T); (R O T); (W O R); (R / F); (T * 1.25); (R if C else R)",
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


def loaded(text, name, known):
    """Return a function of a text, whose source is found."""
    file = f"<{name} {id(known)}>"
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = len(text), None, lines, file
    exec(compile(text, file, "exec"), known)  # noqa: S102
    return known[name]


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
        names.update(np=np, operator=operator)
    arguments = values(program.char)
    rows = reference(loaded(text, "program", plain), *arguments)
    ours = xdev.vectorize(loaded(text, "program", inner))
    return program, text, arguments, rows, ours


def outcome(seed, device):
    """Return how many results were compared, after they were."""
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
    for j, column in enumerate(columns if program.plain else ()):
        kinds = {type(row[j]) for row in rows if row and "helper" not in text}
        if len(kinds) == 1 and (number := kinds & {int, float, bool}):
            assert column.dtype == np.dtype(*number), f"{column.dtype}\n{text}"
    return compared


@pytest.mark.parametrize("seed", SEEDS)
def test_random_functions_are_numpys(device, seed):
    outcome(seed, device)


def test_most_results_are_compared():
    assert sum(outcome(seed, xdev.Device("cpu")) for seed in range(8)) > 500
