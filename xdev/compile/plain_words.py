"""What compilers say of the usual causes, and what that is in plain words."""

from __future__ import annotations

import re

MOST = 8  # axes whose indices are counted
_CALL = r"No implementation of function .* for signature: *>>> *"
_NEW = r"(?:typeddict_empty|_ol_array_allocate|(?:zeros|ones|empty|full)(?:_like)?)"
_NUMBER = r"(?P<number>bool|(?:u?int|float|complex)\d+)"
_NONE = ": use operators, math and NumPy's functions of numbers"
_READ = "; from outside, compiled code reads numbers, tuples and functions"
_GLOBAL = r"Untyped global name '(\w+)':.* <class "
# Elements of arrays: how Numba shows x[i] and x[i] = y.
_ITEM = r"(?:static_)?[gs]etitem\("
_ARRAY = r"(?:readonly )?array\((?P<dtype>\w+), (?P<axes>\d)d, \w+\)"
_INTEGER = r"u?int\d+|Literal\[int\]\(-?\d+\)"
_PLACE = rf"(?:{_INTEGER}|slice<[^>]*>)"
_ODD = r"(?P<odd>(?:float|complex)\d+|bool|none|unicode_type|Literal\[str\]\(.*?\))"


def _set(place: str) -> str:
    """Return what matches x[i, …] = … of as many indices as axes, up to the value."""
    several = (
        rf"{n}d, \w+\), (?:Uni)?Tuple\({place}(?: x {n}|(?:, {place}){{{n - 1}}})\)"
        for n in range(1, MOST + 1)
    )
    whole = "|".join((rf"1d, \w+\), {place}", *several))
    return rf"(?:static_)?setitem\(array\((?P<dtype>\w+), (?:{whole}), "


_ELEMENT = _set(f"(?:{_INTEGER})")
_BEFORE = rf"(?:Tuple\((?:{_PLACE}, )*|UniTuple\()?"  # what stands before an odd index
# Atomics: how Numba shows that one of another number of arguments is not known.
_ATOMIC = r"<function {} at \w+>\)[^>]*>>> (\w+\(.*\))\n(?s:.*)grid/atomics\.py"
# What stands anywhere in a compiler's text: the first holds, before all of PLAIN.
WITHIN = {
    r"TypingError: (xdev\.atomic\..+)": r"\1",
    _ATOMIC.format("(add|max|min)"): (
        r"xdev.atomic.\1(array, index, value) has three arguments: not \2"
    ),
    _ATOMIC.format("cas"): (
        r"xdev.atomic.cas(array, index, expected, value) has four arguments: not \1"
    ),
}
# What its first words are: the first holds.
PLAIN = {
    rf"{_CALL}(?P<all>(?:static_)?setitem\(readonly array.*)": (
        r"an array that may only be read is written there: not \g<all>"
    ),
    rf"{_CALL}(?P<all>{_ITEM}{_ARRAY}, {_BEFORE}{_ODD}.*)": (
        r"an index is an integer, and one there is of type \g<odd>: not \g<all>"
    ),
    rf"{_CALL}(?P<all>{_ELEMENT}(?:readonly )?array\(\w+, (?P<own>\d)d.*)": (
        r"one element is written there, and the value is an array of \g<own> "
        r"dimension(s), as x[i] of a 2-d x is: not \g<all>"
    ),
    rf"{_CALL}(?P<all>{_set(_PLACE)}(?P<value>.+)\))": (
        r"an element of an array of \g<dtype> is written there, and a value of type "
        r"\g<value> does not become one: not \g<all>"
    ),
    rf"{_CALL}(?P<all>{_ITEM}{_ARRAY}.*)": (
        r"an array of \g<axes> dimension(s) has \g<axes> index(es), and one number is "
        r"read or written there: not \g<all>"
    ),
    rf"{_CALL}(?P<all>{_ITEM}{_NUMBER}, .*)": (
        r"one number is there, a \g<number>, which has no index: not \g<all>"
    ),
    rf"{_CALL}(?:exception_match|mark_try_block)\(.*|"
    r"'\w+' object has no attribute '(?:set_try_status|exc_class)'": (
        "compiled code cannot tell errors apart, and on CUDA has no try at all: test "
        "the values first"
    ),
    rf"NRT required but not enabled|{_CALL}{_NEW}\(.*": (
        "new memory is asked for, as lists, dicts, strings, new arrays, x * 2 of an "
        "array and x[:] = y[:] take, which @kernel and @guvectorize do not have: pass "
        "an array, or use a tuple; elements are assigned in a loop"
    ),
    rf"{_CALL}(clip\(.*)": r"compiled code has no \1: use min(max(x, low), high)",
    rf"{_CALL}((sqrt|exp|log|log10|sin|cos|tan|sinh|cosh|tanh)\(complex\d+\))": (
        r"math's functions are of real numbers, and there is \1: use np.\2"
    ),
    rf"{_CALL}(?:npy_|array_|arr_)?(?P<name>\w+)\((?P<all>.*\barray\(.*)\)": (
        r"compiled code has no \g<name> of an array: write a loop over the elements, "
        r"as m = max(m, x[i]) or s += x[i] * y[i], or compute it outside: not "
        r"\g<name>(\g<all>)"
    ),
    rf"{_CALL}(.*)": rf"compiled code has no \1{_NONE}",
    # So it says where a function is known, but not for these types.
    r"Implementation function returned by `@overload` has an unexpected type\..*": (
        "compiled code has no such function of these types, as sorted of a number"
        f"{_NONE}"
    ),
    r"(float128|complex256)": (
        r"compiled code has no \1: the widest are float64 and complex128"
    ),
    r"Unknown attribute '(\w+)' of type Module\(<module '(.+?)'.*": (
        rf"compiled code has no \2.\1{_NONE}"
    ),
    r"Use of unsupported NumPy function 'numpy\.fix'.*": (
        "compiled code has no numpy.fix: use np.trunc"
    ),
    r"Use of unsupported NumPy function '(numpy\.\w+)'.*": (
        rf"compiled code has no \1{_NONE}"
    ),
    rf"Unknown attribute '(\w+)' of type {_NUMBER}": (
        r"one number is there, a \g<number>, which has no '\1' (\g<0>)"
    ),
    rf"(?:Invalid use of getiter with parameters \(|failed to unpack ){_NUMBER}\)?": (
        r"one number is there, a \g<number>, which has no items (\g<0>)"
    ),
    rf"{_GLOBAL}'function'>": (rf"compiled code has no \1{_NONE} (\g<0>)"),
    rf"{_GLOBAL}'type'>": rf"'\1' is a class{_READ} (\g<0>)",
    rf"{_GLOBAL}'(?:__main__\.)?(.+)'>": rf"'\1' is of class \2{_READ} (\g<0>)",
    r"The use of a (?:reflected )?(\w+)\(.*? variable '(\w+)' in globals.*": (
        rf"'\2' is of class \1{_READ} (\g<0>)"
    ),
    # So says numba-cuda, which does not know the name any more.
    r"<.+\.OverloadSelector object at \w+>, \((.+?),?\)": rf"there is a \1{_READ}",
    r"Can't unify return type from the following types: (.+?), (\S+) Return of: .*": (
        r"a value is of one type, and there it is \1 on one path, \2 on another"
    ),
    r"Cannot unify (.+) and (.+) for '.+', defined at .*": (
        r"a value is of one type, and there it is \1 on one path, \2 on another (\g<0>)"
    ),
    r"Cannot infer the type of variable .*, have imprecise type: "
    r"(?:reflected )?(?:DictType|list|set)\b.*": (
        "an empty list, set or dict is there, and nothing tells the type of its items"
    ),
    r"No conversion from none to \w+ for '.*return_value.*|"
    r".*: Cannot convert NoneType to .*": "returns nothing",
    r"No conversion from (.+) to (\w+) for '.*return_value.*": (
        r"returns \1, which is not made a \2"
    ),
    r"The compiler failed to analyze the bytecode.* '(\w+)' is not defined\.": (
        r"'\1' is first assigned below this line, and read in a later round of a loop: "
        "assign it before the loop, too"
    ),
    r"Type of variable '.+' cannot be determined.*": (
        "the type of a value there cannot be told: where an assignment stands inside "
        r"an expression (y := …), write it before, on a line of its own (\g<0>)"
    ),
    r"scipy .* is required for linear algebra.*": (
        "compiled code has no linear algebra, as np.dot, x @ y and np.linalg: write a "
        "loop over the elements, as s += x[i] * y[i], or compute it outside"
    ),
    r"Illegal IR, del found at: .*": "compiled code has no del: leave that line out",
    r"The use of yield in a closure is unsupported.*": (
        "a generator expression is there, as in sum(… for …): write a loop"
    ),
    r"The 'with\b.*|Unsupported context manager in use": "compiled code has no with",
    r"Use of unsupported opcode \(IMPORT_NAME\).*": (
        "compiled code imports nothing: import at the top of the module"
    ),
    r"Use of unsupported opcode \((?:STORE|DELETE)_GLOBAL\).*": (
        "compiled code writes no global: return what it computes"
    ),
    r"Use of unsupported opcode \((\w+)\).*": (
        r"compiled code has no such statement (\1)"
    ),
    # So it ends where it looks a type up that it does not know.
    r"<class '[\w.]+\.(\w+)'>": rf"compiled code has no \1 there{_NONE}",
    r"(?:could not convert string to float|invalid literal for int\(\)).*": (
        f"compiled code makes no number of a text{_NONE}"
    ),
}


def plain(text: str, whole: str = "") -> str:
    """Return what a compiler's words mean, in plain ones where they are known.

    Parameters
    ----------
    text : str
        Its first words, in one line.
    whole : str
        All that it said.

    Examples
    --------
    >>> plain("Unknown attribute 'shape' of type float64")
    "one number is there, a float64, which has no 'shape' (Unknown attribute 'shape' of
    type float64)"
    """
    for words, meaning in WITHIN.items():
        if match := re.search(words, whole):
            return match.expand(meaning)
    for words, meaning in PLAIN.items():
        if match := re.fullmatch(words, text):
            return match.expand(meaning)
    return text
