"""PyTorch and JAX on a device, and ufuncs for their arrays."""

import numpy as np
import pytest

import xdev


@xdev.vectorize
def blend(x, y):
    return 0.5 * x + y * y


def library(name, device):
    """Return a library's ``asarray`` on a device, and its array type."""
    if name == "torch":
        torch = pytest.importorskip("torch")
        if device.type == "cuda" and not torch.cuda.is_available():
            pytest.skip("this PyTorch has no CUDA")
        return lambda x: torch.as_tensor(x, device=device.type), torch.Tensor
    jax = pytest.importorskip("jax")
    kind = "gpu" if device.type == "cuda" else "cpu"
    try:
        where = jax.local_devices(backend=kind)[0]
    except RuntimeError:
        pytest.skip("this JAX has no CUDA")
    return lambda x: jax.device_put(x, where), jax.Array


def host(x):
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


@xdev.vectorize
def total(x, y):
    return x + y
