// Elementwise functions as the standard (C99 Annex G) has them, over CuPy's own.
// CuPy puts its headers (thrust's complex<T>) and CUDA's mathematics in front.

template <typename T>
__device__ complex<T> xdev_log(complex<T> z) {
    complex<T> w = log(z);
    if (isinf(z)) w.real(hypot(z.real(), z.imag()));  // infinite, also beside NaN
    return w;
}

template <typename T>
__device__ complex<T> xdev_log2(complex<T> z) {
    complex<T> w = xdev_log(z);
    T unit = log(T(2));  // part by part: a complex quotient makes NaN of infinities
    return complex<T>(w.real() / unit, w.imag() / unit);
}

template <typename T>
__device__ complex<T> xdev_log10(complex<T> z) {
    complex<T> w = xdev_log(z);
    T unit = log(T(10));
    return complex<T>(w.real() / unit, w.imag() / unit);
}

template <typename T>
__device__ complex<T> xdev_log1p(complex<T> z) {
    T x = z.real(), y = z.imag();
    complex<T> w = xdev_log(complex<T>(1 + x, y));  // y keeps the sign of its zero
    if (fabs(x) < T(0.5) && fabs(y) < T(0.5)) w.real(log1p(x * (2 + x) + y * y) / 2);
    return w;
}

template <typename T>
__device__ complex<T> xdev_expm1(complex<T> z) {
    T x = z.real(), y = z.imag();
    complex<T> w = exp(z);
    if (fabs(x) < 1 && isfinite(y) && (x != 0 || y != 0)) {
        T half = sin(y / 2);  // cos(y) - 1 = -2 sin(y / 2)^2, without cancellation
        return complex<T>(expm1(x) * cos(y) - 2 * half * half, w.imag());
    }
    return complex<T>(w.real() - 1, w.imag());
}

template <typename T>
__device__ complex<T> xdev_tanh(complex<T> z) {
    T x = z.real(), y = z.imag();
    complex<T> w = tanh(z);
    if (x == 0 && !isfinite(y)) w.real(x);
    if (isinf(x) && isfinite(y)) w.imag(copysign(T(0), y));
    return w;
}

template <typename T>
__device__ complex<T> xdev_tan(complex<T> z) {
    complex<T> w = tan(z);
    if (z.imag() == 0 && !isfinite(z.real())) w.imag(z.imag());
    return w;
}

template <typename T>
__device__ complex<T> xdev_acosh(complex<T> z) {
    complex<T> w = acosh(z);
    if (z.real() == 0 && isnan(z.imag())) w.imag(T(1.5707963267948966));
    return w;
}

template <typename T>
__device__ T xdev_remainder(T x, T y) {
    T rest = fmod(x, y);
    if (rest == 0) return copysign(T(0), y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}
