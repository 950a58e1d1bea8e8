"""Builds the compiled tier into a wheel, or beside its source for an editable install.

Where it cannot be built (no C compiler, say) that is told, and the wheel goes without:
Python stands in for it. ``python hatch_build.py`` builds it in a checkout.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # as a program it needs no hatchling
    BuildHookInterface = object

ROOT = Path(__file__).parent


def build(folder: Path) -> list[Path]:
    """Compile the tier; return where its shared libraries lie.

    Parameters
    ----------
    folder : Path
        A folder for what is made: there the libraries are in ``xdev/native``.

    Raises
    ------
    Exception
        Of many kinds: there is no compiler, no header of Python's, no Cython.
    """
    import numpy as np
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    sources = Extension("xdev.native.*", ["xdev/native/*.pyx"])
    sources.include_dirs.append(np.get_include())
    with chdir(ROOT), tempfile.TemporaryDirectory() as work:
        modules = cythonize(sources, build_dir=work, quiet=True, force=True)
        command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder), work
        command.ensure_finalized()
        command.run()
        return [Path(library) for library in command.get_outputs()]


class NativeTier(BuildHookInterface):  # type: ignore[misc] # Any, where it is not
    """The hook that ``pyproject.toml`` names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the tier to a wheel where it can be built."""
        editable = version == "editable"
        self.folder = tempfile.TemporaryDirectory()
        try:
            libraries = build(ROOT if editable else Path(self.folder.name))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - distutils exits, too
            self.app.display_warning(
                f"xdev: its compiled part is left out, and Python stands in for it: "
                f"{type(error).__name__}: {error}"
            )
            return
        if not editable:
            paths = {str(path): f"xdev/native/{path.name}" for path in libraries}
            build_data["force_include"] |= paths
        build_data |= {"pure_python": False, "infer_tag": True}

    def finalize(self, *_: object) -> None:
        """Remove what was made for the wheel."""
        self.folder.cleanup()


if __name__ == "__main__":
    sys.stderr.write("".join(f"{library}\n" for library in build(ROOT)))
