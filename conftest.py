"""What tests and documents compile stays in the checkout, not in the user's home."""

import os
import sys
from pathlib import Path

#: One folder for all processes of a run, and kept for the next one. By variable, so
#: that subprocesses have it too; one that is set stays.
KEPT = Path(__file__).parent / ".pytest_cache" / "compiled"
for name in ("XDEV_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH"):
    os.environ.setdefault(name, str(KEPT / name.partition("_")[0].lower()))
for name in ("MPLCONFIGDIR", "IPYTHONDIR", "WARP_CACHE_PATH"):
    os.environ.setdefault(name, str(KEPT / name.lower()))
# Some 400 programs import the package: its bytecode is kept, whatever the shell says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
