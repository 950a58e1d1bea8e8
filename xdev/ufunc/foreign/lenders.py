"""Arrays that lend their memory by NumPy's protocol, as Warp's: arguments and outputs.

Results beside them are NumPy's. On CUDA ``__cuda_array_interface__`` says all.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np


def is_array_type(kind: type) -> bool:
    """Say whether a type's objects do no more than to lend their memory.

    Examples
    --------
    >>> is_array_type(np.ndarray)
    False
    """
    more = hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_namespace__")
    return hasattr(kind, "__array_interface__") and not more


@final
class LenderAdapter:
    """Arrays of any such library."""

    mutable = True

    def on_cuda(self, x: Any) -> bool:
        """Ask for the protocol of CUDA."""
        return hasattr(x, "__cuda_array_interface__")

    def native(self, x: Any, name: str) -> Any:  # noqa: ARG002 - nothing is refused
        """Return a view; of what is read-only one that cannot be written."""
        return np.asarray(x)

    def stream(self, x: Any) -> int | None:  # noqa: ARG002
        """Return None: host memory has none."""
        return None

    def claim(self, x: Any, name: str, label: str = "out") -> None:
        """Refuse nothing: NumPy's flag says what is read-only."""

    def note(self, x: Any) -> None:
        """Tell nobody."""

    def lift(self, made: Any, like: Any) -> Any:  # noqa: ARG002
        """Return it as it is."""
        return made
