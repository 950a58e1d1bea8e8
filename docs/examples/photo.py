"""Develop a photograph: one program, for the CPU and for the GPU.

    XDEV_DEVICE=cpu  python docs/examples/photo.py photo.png
    XDEV_DEVICE=cuda python docs/examples/photo.py photo.png

It needs scikit-image, whose package holds the photograph.
"""

import sys

import xdev as xp
from xdev import memory, timing

try:
    from PIL import Image
    from skimage.data import astronaut
except ImportError as error:
    sys.exit(f"{error}: the photograph is scikit-image's, pip install scikit-image")

GAMMA = 2.2
BINOMIAL = (1, 4, 6, 4, 1)  # near enough a Gaussian of one pixel
AMOUNT = 1.5  # of sharpening
CUT = 0.01  # the share of pixels at either end that the stretch may lose


@xp.vectorize
def luminance(red, green, blue):
    """Brightness of one pixel of linear light (ITU-R BT.709)."""
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def blur(image, axis):
    """Average each pixel with two neighbours on either side; edges repeat."""
    size = image.shape[axis]
    places = xp.arange(size, device=image.device)
    total = xp.zeros_like(image)
    for offset, weight in enumerate(BINOMIAL, start=-2):
        neighbours = xp.clip(places + offset, 0, size - 1)
        total += weight / sum(BINOMIAL) * xp.take(image, neighbours, axis=axis)
    return total


def unsharp_mask(image):
    """Add what a blur takes away."""
    return image + AMOUNT * (image - blur(blur(image, axis=0), axis=1))


def stretch(image):
    """Spread the brightness over 0 to 1, without the darkest and brightest pixels."""
    ordered = xp.sort(xp.reshape(image, (-1,)))
    lost = int(CUT * ordered.shape[0])
    low, high = ordered[lost], ordered[-1 - lost]
    return xp.clip((image - low) / (high - low), 0.0, 1.0)


def main(path):
    """Develop the photograph, write it to a PNG file, and say what it took."""
    device = xp.default_device()
    photo = xp.to_device(astronaut(), device)  # uint8, shape (512, 512, 3)
    linear = xp.pow(xp.astype(photo, xp.float32) / 255, GAMMA)
    channels = (linear[:, :, 0], linear[:, :, 1], linear[:, :, 2])
    grey = xp.empty(linear.shape[:2], dtype=xp.float32, device=device)

    luminance(*channels, out=grey)
    encoded = xp.pow(grey, 1 / GAMMA)
    sharp = unsharp_mask(encoded)
    final = stretch(sharp)

    pixels = xp.to_numpy(xp.astype(xp.round(final * 255), xp.uint8))
    Image.fromarray(pixels).save(path)
    print(f"{path}: {pixels.shape[1]} x {pixels.shape[0]} pixels, made on {device}\n")
    for name, stage in {
        "luminance": lambda: luminance(*channels),
        "luminance, out=": lambda: luminance(*channels, out=grey),
        "gamma": lambda: xp.pow(grey, 1 / GAMMA),
        "unsharp mask": lambda: unsharp_mask(encoded),
        "stretch": lambda: stretch(sharp),
    }.items():
        print(f"{name:<16} {timing.timeit(stage, number=10)}")
    print()
    memory.status()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "photo.png")
