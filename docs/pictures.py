"""Make the pictures of these pages: python docs/pictures.py.

It needs matplotlib and, for the photograph, scikit-image.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import xdev as xp

HERE = Path(__file__).parent
EXAMPLES, IMAGES = HERE / "examples", HERE / "images"


def mandelbrot() -> None:
    """Draw the set in colours, of the steps until a point escapes."""
    from mandelbrot import mandelbrot as steps_of
    from matplotlib import colormaps
    from PIL import Image

    steps = xp.to_numpy(steps_of(1040, 960, limit=200))
    shades = np.log1p(steps) / np.log1p(200)
    pixels = colormaps["magma"](shades, bytes=True)[:, :, :3]
    save(
        Image.fromarray(pixels).resize((520, 480), Image.Resampling.LANCZOS),
        "mandelbrot",
    )


def heat() -> None:
    """Draw a plate with a hot square after 0, 300 and 3,000 steps."""
    from heat import diffused
    from matplotlib import pyplot as plt

    plate = xp.zeros((129, 129), device="cpu")
    plate[40:89, 40:89] = 1.0
    figure, places = plt.subplots(1, 3, figsize=(7.2, 2.6), layout="constrained")
    for place, steps in zip(places, (0, 300, 3000), strict=True):
        shown = place.imshow(diffused(plate, steps), cmap="inferno", vmin=0, vmax=1)
        place.set(title=f"{steps:,} steps", xticks=[], yticks=[])
    figure.colorbar(shown, ax=places, shrink=0.8, label="temperature")
    figure.savefig(IMAGES / "heat.png", dpi=100)


def photo() -> None:
    """Develop the photograph, small."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "photo.png"
        run(str(EXAMPLES / "photo.py"), str(path))
        save(Image.open(path).resize((320, 320)), "photo")


def memory() -> None:
    """Draw the memory of a program over time."""
    plot = IMAGES / "memory.png"
    with tempfile.TemporaryDirectory() as folder:
        program = str(EXAMPLES / "photo.py"), str(Path(folder) / "photo.png")
        run("-m", "xdev", "memory", "--plot", str(plot), *program)


def crossover() -> None:
    """Draw from which size on one of two sums is faster than the other."""

    def sums(n):
        x = np.ones(n)
        return {"built in": lambda: sum(x), "method": x.sum}

    sizes = [2**power for power in range(12)]
    xp.timing.sweep(sums, sizes).plot(IMAGES / "crossover.png")


def run(*arguments: str) -> None:
    """Run a program of Python."""
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)  # noqa: S603 - ours


def save(image, name: str) -> None:
    """Write a picture with few colours, so that it is small."""
    image.quantize(128, dither=0).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    IMAGES.mkdir(exist_ok=True)
    for draw in (mandelbrot, heat, photo, memory, crossover):
        draw()
