"""The photograph example, run as its readers run it, against plain NumPy."""

from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "photo.py"
data = pytest.importorskip("skimage.data")
image = pytest.importorskip("PIL.Image")


def blurred(x):
    """Return the separable [1, 4, 6, 4, 1] / 16 average; edges repeat."""
    weights = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 2, "edge"), (5, 5))
    return np.einsum("ijkl,kl->ij", windows, weights)


def developed():
    """Return the photograph as the example must make it, in float64."""
    linear = (data.astronaut() / 255.0) ** 2.2
    encoded = (linear @ np.array([0.2126, 0.7152, 0.0722])) ** (1 / 2.2)
    sharp = encoded + 1.5 * (encoded - blurred(encoded))
    ordered = np.sort(sharp, axis=None)
    lost = int(0.01 * ordered.size)
    low, high = ordered[lost], ordered[-1 - lost]
    return 255 * np.clip((sharp - low) / (high - low), 0, 1)


def test_photo_equals_plain_numpy(device, printed, tmp_path):
    path = tmp_path / "photo.png"

    told = printed(PROGRAM, path, XDEV_DEVICE=device)

    pixels = np.asarray(image.open(path))
    assert pixels.dtype == np.uint8
    # Half a level is the rounding to 8 bits; the rest is float32.
    assert np.max(np.abs(pixels - developed())) < 0.51
    assert str(device) in told
    assert told.count("±") == 2 * 5  # the stages' times
    assert "pool" in told.lower()
