"""Draw the Mandelbrot set, and measure it: one program, every device.

    XDEV_DEVICE=cpu  python docs/examples/mandelbrot.py
    XDEV_DEVICE=cuda python docs/examples/mandelbrot.py

A loop inside a ufunc, on a row and a column of numbers that broadcast to a grid.
"""

import xdev as xp

LEFT, RIGHT, BOTTOM, TOP = -2.0, 0.6, -1.2, 1.2
SHADES = " .:-=+*#%@"


@xp.vectorize(["int32(float64, float64, int32)"])
def escape(real, imaginary, limit):
    """Count the steps of z → z² + c until z is far away; ``limit`` if it stays."""
    x = y = 0.0
    for step in range(limit):
        if x * x + y * y > 4.0:
            return step
        x, y = x * x - y * y + real, 2.0 * x * y + imaginary
    return limit


def mandelbrot(width, height, limit):
    """Steps until each point of a grid escapes, shape (height, width)."""
    # The middles of the grid's cells; a row and a column, which broadcast.
    real = LEFT + (xp.arange(width) + 0.5) * ((RIGHT - LEFT) / width)
    imaginary = TOP - (xp.arange(height) + 0.5) * ((TOP - BOTTOM) / height)
    steps = xp.empty((height, width), dtype=xp.int32)
    return escape(real, imaginary[:, None], limit, out=steps)


def area(steps, limit):
    """Area of what did not escape, as a share of the grid's."""
    share = xp.mean(xp.astype(steps == limit, xp.float64))
    return float(share) * (RIGHT - LEFT) * (TOP - BOTTOM)


def picture(steps, limit):
    """Draw one character a point, the darker the longer it stayed."""
    shades = xp.log1p(xp.astype(steps, xp.float64)) / xp.log1p(xp.asarray(float(limit)))
    levels = xp.astype(xp.round(shades * (len(SHADES) - 1)), xp.int64)
    rows = xp.to_numpy(levels)
    return "\n".join("".join(SHADES[level] for level in row) for row in rows)


def main():
    """Draw the set small, and measure its area on a large grid."""
    print(picture(mandelbrot(78, 32, limit=50), limit=50))
    steps = mandelbrot(1000, 1000, limit=200)
    print(f"area {area(steps, limit=200):.3f}, on {xp.device_of(steps)}")


if __name__ == "__main__":
    main()
