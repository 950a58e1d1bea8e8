"""Calls of SciPy's functions with array API support; ``put`` makes a device's array."""

import numpy as np
from scipy import (
    differentiate,
    fft,
    integrate,
    linalg,
    ndimage,
    optimize,
    signal,
    special,
    stats,
)
from scipy.cluster import vq
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
    "special.softmax": lambda put: special.softmax(put(A), axis=1),
    "special.xlogy": lambda put: special.xlogy(put(V), put(V)),
    "stats.zscore": lambda put: stats.zscore(put(A), axis=0),
    "stats.skew": lambda put: stats.skew(put(A), axis=0),
    "stats.kurtosis": lambda put: stats.kurtosis(put(A), axis=0),
    "stats.moment": lambda put: stats.moment(put(A), 3),
    "stats.describe": lambda put: tuple(stats.describe(put(A))[2:]),
    "stats.gmean": lambda put: stats.gmean(put(V)),
    "stats.iqr": lambda put: stats.iqr(put(A), axis=0),
    "stats.quantile": lambda put: stats.quantile(put(V), put(np.asarray([0.1, 0.5]))),
    "stats.circmean": lambda put: stats.circmean(put(A), axis=0),
    "stats.directional_stats": lambda put: (
        stats.directional_stats(put(A)).mean_direction
    ),
    "stats.differential_entropy": lambda put: stats.differential_entropy(put(V)),
    "stats.false_discovery_control": lambda put: stats.false_discovery_control(put(V)),
    "signal.fftconvolve": lambda put: signal.fftconvolve(put(V), put(W)),
    "signal.hilbert": lambda put: signal.hilbert(put(V)),
    "signal.resample": lambda put: signal.resample(put(V), 16),
    "signal.freqz": lambda put: signal.freqz(put(W))[1],
    "signal.windows.hann": lambda put: put(V[:8]) * signal.windows.hann(8, xp=xdev),
    "linalg.block_diag": lambda put: linalg.block_diag(put(A), put(B)),
    "fft.fft": lambda put: fft.fft(put(V)),
    "fft.irfft2": lambda put: fft.irfft2(fft.rfft2(put(A))),
    "fft.fftfreq": lambda put: put(V[:8]) + fft.fftfreq(8, xp=xdev),
    "fft.fftshift": lambda put: fft.fftshift(put(V)),
    "integrate.trapezoid": lambda put: integrate.trapezoid(put(A)),
    "integrate.cumulative_trapezoid": lambda put: integrate.cumulative_trapezoid(
        put(V)
    ),
    "integrate.tanhsinh": lambda put: (
        integrate.tanhsinh(xdev.exp, put(np.zeros(3)), put(np.arange(1.0, 4))).integral
    ),
    "optimize.rosen": lambda put: optimize.rosen(put(V)),
    "optimize.elementwise.find_root": lambda put: (
        elementwise.find_root(
            lambda x, c: x * x - c, (put(0 * V), put(0 * V + 2)), args=(put(V),)
        ).x
    ),
    "cluster.vq.whiten": lambda put: vq.whiten(put(A)),
    "spatial.transform.Rotation": lambda put: Rotation.from_rotvec(
        put(A[:, :3].copy())
    ).apply(put(B[:, :3].copy())),
}

#: What it gives to code of NumPy's arrays or of CuPy's (SciPy's table says to which).
BY_LIBRARY = {
    "special.erf": lambda put: special.erf(put(A)),
    "special.gammaln": lambda put: special.gammaln(put(V)),
    "special.ndtr": lambda put: special.ndtr(put(A)),
    "stats.pearsonr": lambda put: stats.pearsonr(put(A[0]), put(B[0])).statistic,
    "stats.ttest_ind": lambda put: stats.ttest_ind(put(A), put(B)).pvalue,
    "stats.normaltest": lambda put: stats.normaltest(put(V)).pvalue,
    "signal.convolve": lambda put: signal.convolve(put(V), put(W)),
    "signal.detrend": lambda put: signal.detrend(put(V)),
    "signal.sosfilt": lambda put: signal.sosfilt(put(SECTIONS), put(V)),
    "signal.savgol_filter": lambda put: signal.savgol_filter(put(V), 5, 2),
    "ndimage.gaussian_filter": lambda put: ndimage.gaussian_filter(put(A), 1.0),
    "ndimage.median_filter": lambda put: ndimage.median_filter(put(A), 3),
    "ndimage.zoom": lambda put: ndimage.zoom(put(A), 2),
    "differentiate.derivative": lambda put: (
        differentiate.derivative(xdev.exp, put(V)).df
    ),
}

#: What SciPy gives to NumPy's code alone.
ON_CPU = {
    "stats.rankdata": lambda put: stats.rankdata(put(I)),
    "stats.mode": lambda put: stats.mode(put(I)).mode,
    "stats.spearmanr": lambda put: stats.spearmanr(put(A[0]), put(B[0])).statistic,
    "signal.welch": lambda put: signal.welch(put(V), nperseg=16)[1],
    "linalg.cholesky": lambda put: linalg.cholesky(put(SPD)),
    "linalg.eigh": lambda put: linalg.eigh(put(SPD))[0],
    "linalg.expm": lambda put: linalg.expm(put(SPD / 10)),
    "linalg.solve": lambda put: linalg.solve(put(SPD), put(W)),
}
