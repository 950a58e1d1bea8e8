"""The fake devices' arrays as a library of the facade: NumPy's functions, CuPy's rules.

What is mended for NumPy is mended for them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, final

import numpy as np

from xdev.device.fake_arrays import fake, strict
from xdev.facade.cpu import NUMPY, Functions, result_dtype, result_shape
from xdev.facade.dtype_names import to_numpy_dtype
from xdev.ufunc.complaints import misfit, wrong_dtype

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from xdev.facade.protocols import DType, Library


@final
class FakeLibrary:
    """NumPy's data types, ufuncs with ``out=``, two devices."""

    __slots__ = ("functions",)
    namespace: ModuleType = fake
    numpy_dtypes = True
    device_type: str | None = "fake"
    several = True
    chunk: Callable[[Any], tuple[type, object]] | None = None

    def __init__(self) -> None:
        self.functions = Functions(
            lambda name: strict(f"xdev.{name}", NUMPY.bound(name, None))
        )

    def bound(self, name: str, like: Any) -> Callable[..., Any]:  # noqa: ARG002
        """Return NumPy's function, for fake arrays."""
        return self.functions[name]

    def device(self, x: Any) -> int:
        """Return the device's number."""
        return int(x.device.index)

    def dtype(self, dtype: DType) -> DType:
        """Return NumPy's data type for anybody's."""
        return None if dtype is None else to_numpy_dtype(dtype)

    def operand(self, value: Any, like: Any) -> Any:  # noqa: ARG002
        """Return 0-d host arrays as scalars, as for CuPy."""
        return value[()] if type(value) is np.ndarray else value

    def write(
        self,
        name: str,
        function: Callable[..., Any],
        values: list[Any],
        out: Any,
        **keywords: Any,
    ) -> Any:
        """Compute into ``out``; its casting is checked before it computes."""
        shape = result_shape([*values, keywords.get("where")])
        wanted = result_dtype(np, NUMPY.bound(name, None), values)
        if out.shape != shape:
            raise misfit(name, out, shape, wanted)
        if not keywords and not np.can_cast(wanted, out.dtype, "same_kind"):
            raise wrong_dtype(name, out, shape, wanted)
        return function(*values, out=out, **keywords)


@cache
def library() -> Library:
    """Return the one library object of fake arrays."""
    return FakeLibrary()
