"""Data types of a call: its arguments', by NEP 50, and those that signatures ask for.

Numba's signatures are ``"float32(float32, float32)"``, NumPy's ``"ff->f"`` or tuples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.compile.formulas import Dtypes, is_bfloat16
from xdev.errors import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdev.compile import cubins
    from xdev.ufunc.ufuncs import Ufunc

WEAK = (int, float, complex)  # Python's numbers, in the order in which they grow
SUPPORTED = frozenset("?bhilqBHILQefdFD")
DIGITS = 128  # the bits of an int that an error spells out
Labels = Sequence[str]


def check(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a dtype that ufuncs do not have; ``name`` is the function's."""
    if dtype.char not in SUPPORTED and not is_bfloat16(dtype):
        raise TypeError(
            f"{name}: dtype {dtype} is not supported; use bool, integers, float16, "
            "bfloat16, float32, float64, complex64 or complex128"
        )


def resolve(args: Sequence[Any], name: str) -> Dtypes:
    """Return each argument's dtype; Python numbers are weak, as in NEP 50.

    Examples
    --------
    >>> resolve((np.zeros(3, "float32"), 2.0), "f")
    (dtype('float32'), dtype('float32'))
    """
    strong = [None if type(x) in WEAK else dtype_of(x) for x in args]
    dtypes = [d for d in strong if d is not None]
    for dtype in dtypes:
        check(dtype, name)
    return tuple(
        _weak(dtypes, x) if d is None else d for d, x in zip(strong, args, strict=True)
    )


def _weak(dtypes: Sequence[np.dtype[Any]], x: complex) -> np.dtype[Any]:
    """Return what a Python number is beside dtypes; bfloat16 takes it as float16 does.

    ml_dtypes makes float64 of bfloat16 and a float. An int is one, however large: NumPy
    would take one alone that int64 does not hold for uint64, or for an object.
    """
    if dtypes and type(x) is not complex:
        others = np.result_type(*dtypes)
        if is_bfloat16(others):
            return others
    return np.result_type(*dtypes, 0 if type(x) is int else x)


def fits(x: Any, dtype: np.dtype[Any]) -> bool:
    """Say whether a signature's dtype takes an argument; Python numbers by kind."""
    if type(x) not in WEAK:
        return np.can_cast(dtype_of(x), dtype)
    return dtype.kind in {int: "iufc", float: "fc", complex: "c"}[type(x)]


def strong(
    args: Sequence[Any], dtypes: Sequence[np.dtype[Any]], name: str, labels: Labels
) -> list[Any]:
    """Return the operands with Python numbers in dtypes, which must hold them."""
    try:
        return [
            dtype.type(x) if type(x) in WEAK else x
            for x, dtype in zip(args, dtypes, strict=True)
        ]
    except OverflowError as error:
        raise misfit(args, dtypes, name, labels) or error from None


def misfit(
    args: Sequence[Any], dtypes: Sequence[np.dtype[Any]], name: str, labels: Labels
) -> OverflowError | None:
    """Return the error for a Python int that its dtype does not hold, if there is one.

    Examples
    --------
    >>> misfit((300,), (np.dtype("uint8"),), "f", ("x",))
    OverflowError('f: x is 300, which uint8 does not hold: pass a number that fits, \
or use another dtype (astype, dtype=)')
    """
    for x, label, dtype in zip(args, labels, dtypes, strict=False):
        if type(x) is not int:
            continue
        try:
            dtype.type(x)
        except OverflowError:
            bits = x.bit_length()
            value = f"an int of {bits:,} bits" if bits > DIGITS else f"{x:,}"
            return OverflowError(
                f"{name}: {label} is {value}, which {dtype} does not hold: "
                "pass a number that fits, or use another dtype (astype, dtype=)"
            )
    return None


def refuse_casts(
    name: str, casts: Iterable[tuple[str, Any, np.dtype[Any]]], casting: str
) -> None:
    """Refuse casts of arguments or results that a rule does not allow."""
    can_cast: Any = np.can_cast  # checks the word itself
    for what, own, to in casts:
        if not can_cast(own, to, casting):
            raise TypeError(
                f"{name}: {what} cannot be cast from {own} to {to} with casting="
                f"{casting!r}: cast it first, pass out= or dtype= of what the function "
                "gives, or another casting"
            )


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of an array or a number."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and isinstance(x, bool | int | float | complex):
        return np.result_type(x)
    if dtype is None and (interface := getattr(x, "__cuda_array_interface__", None)):
        dtype = interface["typestr"]
    listed = isinstance(x, list | tuple)
    try:
        result = np.dtype(dtype) if dtype is not None else np.asarray(x).dtype
    except (TypeError, ValueError):
        if dtype is None and listed:
            raise  # NumPy says what is wrong in it
        result = None
    if result is None or (dtype is None and result.hasobject and not listed):
        raise TypeError(
            f"{type(x).__name__} object has no dtype that NumPy knows: pass an array "
            "(xdev.asarray) or a number"
        )
    return result


# Signatures: explicit ones, as Numba writes them, and a call's, as NumPy does.

#: What a call asks for, of the inputs and of the outputs; None is any.
Signature = tuple[tuple[np.dtype[Any] | None, ...], tuple[np.dtype[Any] | None, ...]]
# NumPy's data types, and what Numba and C call them besides.
TYPES = (
    "bool bool_ boolean b1; int8 i1 char; int16 i2 short; int32 i4; int64 i8 int_; "
    "uint8 u1 byte uchar; uint16 u2 ushort; uint32 u4; uint64 u8 uint; float16 f2 half;"
    "bfloat16; float32 f4 float float_; float64 f8 double; complex64 c8; complex128 c16"
    "; intp ssize_t; uintp size_t; intc; uintc; long long_; ulong; longlong; ulonglong"
)
LOOSE = ("same_kind", "unsafe")  # rules by which no signature is chosen by itself
NAMES = {name: row.split()[0] for row in TYPES.split(";") for name in row.split()}
#: A type's dtype and number of axes; None for a number.
Types = tuple[tuple[np.dtype[Any], int | None], ...]
TYPE = re.compile(r"\s*(\w+)\s*(?:\[([:,\s1]*)\])?\s*")
RETURNED = r"(?:\((?P<several>[^()]+)\)|void|(?P<one>\w+))"
NAME = r"\w+\s*(?:\[[^()\[\]]*\]\s*)?"
BARE = rf"(?P<bare>{NAME}(?:,\s*{NAME})*,?)"
FORM = re.compile(rf"\s*(?:(?:{RETURNED}\s*)?\((?P<taken>[^()]+)\)|{BARE})\s*")


def parse(signature: object) -> tuple[Dtypes, Dtypes]:
    """Turn one signature into the dtypes of its inputs and outputs.

    Parameters
    ----------
    signature : str, Numba signature, type or tuple of types
        ``"float32(float32, float32)"`` or ``numba.float32(numba.float32, …)``. Several
        results are written ``"(float32, bool)(float32)"``. Without what is returned,
        ``"(float32, float32)"``, there are no dtypes of outputs.

    Examples
    --------
    >>> parse("float64(int32, float32)")
    ((dtype('int32'), dtype('float32')), (dtype('float64'),))
    """
    inputs, outputs = parse_types(signature)
    nothing = re.search(r"^\s*void\b|-> none$", str(signature))
    if nothing or any(ndim for _, ndim in inputs + outputs):
        raise TypeError(
            f"{signature} is not a signature of numbers: of arrays have @guvectorize"
        )
    return dtypes_of(inputs), dtypes_of(outputs)


def dtypes_of(types: Types) -> Dtypes:
    """Return the dtypes of types."""
    return tuple(dtype for dtype, _ in types)


def parse_types(signature: object) -> tuple[Types, Types]:
    """Turn one signature into the types of its inputs and outputs, arrays too.

    Examples
    --------
    >>> parse_types("void(float32[:], int64)")
    (((dtype('float32'), 1), (dtype('int64'), None)), ())
    """
    taken: Any = signature
    results: Any = ()
    if (returned := getattr(signature, "return_type", None)) is not None:
        taken = getattr(signature, "args", ())
        results = returned if hasattr(returned, "__iter__") else [returned]
        results = [] if str(returned) == "none" else results
    elif not isinstance(signature, tuple):
        text = str(signature)
        plain = isinstance(signature, str) or text in NAMES  # the name of a type alone
        match = FORM.fullmatch(text) if plain else None
        if match is None:
            raise TypeError(
                f"{quoted(signature)} is not a signature: write it as Numba does, "
                "'float32(float32, float32)', of core arrays 'void(float32[:], int64)'"
            )
        taken = _listed(match["taken"] or match["bare"])
        results = match["several"] or match["one"]
        results = _listed(results) if results else []
    inputs, outputs = (
        tuple(_type(each, signature) for each in types) for types in (taken, results)
    )
    return inputs, outputs


def _listed(text: str) -> list[str]:
    """Return the types in a text; commas in brackets part axes."""
    return re.split(r",(?![^\[]*\])", text.strip().removesuffix(","))


def _type(one: Any, signature: object) -> tuple[np.dtype[Any], int | None]:
    """Return one of Numba's types, or what is written of one, as dtype and axes."""
    if not isinstance(one, str):
        dtype = dtype_of_name(str(getattr(one, "dtype", one)), signature)
        return dtype, getattr(one, "ndim", None) or None
    match = TYPE.fullmatch(one)
    if match is None:
        raise TypeError(f"{signature}: {quoted(one.strip())} is not a type")
    ndim = None if match[2] is None else match[2].count(",") + 1
    return dtype_of_name(match[1], signature), ndim


def dtype_of_name(name: str, signature: object) -> np.dtype[Any]:
    """Return the dtype of a name in a signature, as Numba, NumPy and C write it."""
    try:
        return np.dtype(NAMES[name])
    except KeyError as error:
        message = f"{signature}: no type {error}; ufuncs have {', '.join(NAMES)}"
        raise TypeError(message) from None
    except TypeError as error:  # the only name that NumPy has not from itself
        message = f"{signature}: bfloat16 is ml_dtypes' data type: import ml_dtypes"
        raise TypeError(message) from error


def asked(name: str, nin: int, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return a call's keywords with what it asks to compute in as one ``signature``.

    That is ``dtype`` (of all outputs), ``signature`` or ``sig``; None is none.

    Examples
    --------
    >>> asked("f", 1, {"signature": "f->d", "order": "K"})
    {'order': 'K', 'signature': ((dtype('float32'),), (dtype('float64'),))}
    """
    words = ("dtype", "signature", "sig")
    rest = {key: value for key, value in keywords.items() if key not in words}
    options = [key for key in words if keywords.get(key) is not None]
    if len(options) > 1:
        raise TypeError(
            f"{name}() takes one of {', '.join(options)}, which say the same"
        )
    for key in options:
        value = keywords[key]
        if key == "dtype":
            rest["signature"] = (None,) * nin, (np.dtype(value),)
            break
        parts: Any = value
        if isinstance(value, str):
            read, arrow, written = value.partition("->")
            parts = (*read, *written) if arrow and len(read) == nin else ()
        if not isinstance(parts, tuple) or len(parts) <= nin:
            message = (
                f"{name}() has {nin} inputs, which signature={quoted(value)} does not "
                f"fit: pass type characters, {'f' * nin + '->f'!r}, or a tuple of "
                "dtypes and None, one for each input and output"
            )
            several = isinstance(value, str | tuple) and len(value) != 1
            raise (ValueError if several else TypeError)(message)  # as NumPy's
        dtypes = tuple(None if one is None else np.dtype(one) for one in parts)
        rest["signature"] = dtypes[:nin], dtypes[nin:]
    return rest


def for_cuda(ufunc: Ufunc, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords that CUDA has; its arrays have no subclasses to make."""
    keywords = asked(ufunc.__name__, ufunc.nin, keywords)
    np.asarray((), order=keywords.get("order", "K"))  # which refuses what is none
    return {key: value for key, value in keywords.items() if key != "subok"}


def chosen(
    name: str,
    signatures: Sequence[tuple[Dtypes, Dtypes]],
    inputs: Dtypes,
    dtype: Any = None,
    casting: str = "safe",
) -> tuple[Dtypes, Dtypes]:
    """Return the first signature that takes the inputs safely, as NumPy does.

    Where a dtype of the results is asked for, the first of those that give it will do
    that takes them by ``casting``.
    """
    able, rules = signatures, ["safe" if casting in LOOSE else casting]
    if dtype is not None:
        able = [(i, o) for i, o in signatures if all(own == dtype for own in o)]
        rules.append(casting)
    can_cast: Any = np.can_cast  # checks the word itself
    for rule in rules:
        for taken, results in able:
            pairs = zip(inputs, taken, strict=True)
            if all(can_cast(x, own, rule) for x, own in pairs):
                return taken, results
    listed = ", ".join(
        f"({', '.join(map(str, i))})" + (f" -> {', '.join(map(str, o))}" if o else "")
        for i, o in signatures
    )
    gives = "" if dtype is None else f" and gives {dtype}"
    raise TypeError(
        f"{name}: no signature takes ({', '.join(map(str, inputs))}) with casting="
        f"{rules[-1]!r}{gives}; it has {listed}. Cast the arguments, or add a signature"
    )


@final
@dataclass(eq=False, slots=True)
class Specialisation:
    """One typing of a scalar function: what every device compiles.

    A scalar function makes each once, so it is equal to itself alone. ``inputs`` and
    ``outputs`` are what the inner loop reads and writes, in native byte order.
    """

    name: str
    inputs: Dtypes
    outputs: Dtypes
    digest: str | None  # of the code on disk; None: it is not kept there
    #: ``recipe(kernel, capability, fastmath)`` compiles for CUDA: a cubin and its name.
    recipe: Callable[..., tuple[bytes, str]] | None = None
    make: Callable[[], Callable[..., Any]] | None = None  # returns ``function``
    unchanged: Callable[[], bool] = lambda: True  # whether it still has the digest
    deep: bool = False  # as `xdev.compile.cubins.Elementwise` takes it

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function to compile, which takes float32 for 16 bits."""
        assert self.make is not None  # noqa: S101 - it has no recipe
        return self.make()

    def cubin(
        self, kernel: cubins.Template, capability: tuple[int, int], *, fastmath: bool
    ) -> tuple[bytes, str]:
        """Compile a kernel: its cubin and name."""
        if self.recipe is not None:
            return self.recipe(kernel, capability, fastmath)
        from xdev.compile import compilers  # not where the code is on disk

        types = self.inputs, self.outputs
        return compilers.cubin(
            kernel, self.function, *types, capability, fastmath=fastmath
        )

    @property
    def types(self) -> str:
        """Return the types as NumPy writes them, as in ``"ff->f"``."""
        return types_of(self.inputs, self.outputs)

    def fits(self, signature: Signature) -> bool:
        """Say whether a call asks for it; a single output's dtype is that of all."""
        taken, results = signature
        if len(results) == 1:
            results *= len(self.outputs)
        asked, own = (*taken, *results), (*self.inputs, *self.outputs)
        return len(asked) == len(own) and all(
            one is None or one == other for one, other in zip(asked, own, strict=True)
        )


def types_of(inputs: Dtypes, outputs: Dtypes) -> str:
    """Return dtypes as NumPy writes a typing."""
    return "->".join("".join(d.char for d in each) for each in (inputs, outputs))
