"""Calls of SciPy's functions with array API support; ``put`` makes a device's array."""

import numpy as np
from scipy import differentiate, fft, integrate, linalg, ndimage, signal, special, stats
from scipy.optimize import elementwise
from scipy.spatial.transform import Rotation

import xdev

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 6, 5))
V = RNG.random(32)
W = V[:5].copy()
I = RNG.integers(0, 9, 20)
SECTIONS = signal.butter(2, 0.2, output="sos")
SPD = A.T @ A + np.eye(5)

#: What SciPy computes with the functions of the arrays' own namespace.
CALLS = {
    "special.logsumexp": lambda put: special.logsumexp(put(A), axis=1),
    "stats.zscore": lambda put: stats.zscore(put(A), axis=0),
    "stats.describe": lambda put: tuple(stats.describe(put(A))[2:]),
    "stats.quantile": lambda put: stats.quantile(put(V), put(np.asarray([0.1, 0.5]))),
    "signal.fftconvolve": lambda put: signal.fftconvolve(put(V), put(W)),
    "signal.hilbert": lambda put: signal.hilbert(put(V)),
    "signal.windows.hann": lambda put: put(V[:8]) * signal.windows.hann(8, xp=xdev),
    "fft.fft": lambda put: fft.fft(put(V)),
    "fft.fftfreq": lambda put: put(V[:8]) + fft.fftfreq(8, xp=xdev),
    "integrate.tanhsinh": lambda put: (
        integrate.tanhsinh(xdev.exp, put(np.zeros(3)), put(np.arange(1.0, 4))).integral
    ),
    "optimize.elementwise.find_root": lambda put: (
        elementwise.find_root(
            lambda x, c: x * x - c, (put(0 * V), put(0 * V + 2)), args=(put(V),)
        ).x
    ),
    "spatial.transform.Rotation": lambda put: Rotation.from_rotvec(
        put(A[:, :3].copy())
    ).apply(put(B[:, :3].copy())),
}

#: What it gives to code of NumPy's arrays or of CuPy's (SciPy's table says to which).
BY_LIBRARY = {
    "special.erf": lambda put: special.erf(put(A)),
    "stats.pearsonr": lambda put: stats.pearsonr(put(A[0]), put(B[0])).statistic,
    "signal.sosfilt": lambda put: signal.sosfilt(put(SECTIONS), put(V)),
    "ndimage.gaussian_filter": lambda put: ndimage.gaussian_filter(put(A), 1.0),
    "differentiate.derivative": lambda put: (
        differentiate.derivative(xdev.exp, put(V)).df
    ),
}

#: What SciPy gives to NumPy's code alone.
ON_CPU = {
    "stats.rankdata": lambda put: stats.rankdata(put(I)),
    "signal.welch": lambda put: signal.welch(put(V), nperseg=16)[1],
    "linalg.cholesky": lambda put: linalg.cholesky(put(SPD)),
}
