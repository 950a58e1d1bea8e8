"""A call when a module gets loaded, by whoever imports it first."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec


def when_imported(name: str, callback: Callable[[], None]) -> None:
    """Call back once, right after the module ``name`` has been loaded."""
    sys.meta_path.insert(0, _Finder(name, callback))


@final
class _Finder:
    """Finds one module as the other finders do, and wraps its loader; then it goes."""

    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self._name, self._callback = name, callback

    def find_spec(
        self,
        name: str,
        path: object = None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the wrapped specification of the one module, None for others."""
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._callback)  # type: ignore[assignment]
        return spec


@final
class _Loader:
    """Another loader, and a call after it."""

    def __init__(self, loader: Any, callback: Callable[[], None]) -> None:
        self._loader, self._callback = loader, callback

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        """Do as the other loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Load the module, then call."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._callback()
