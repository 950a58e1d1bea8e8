// What NumPy's elementwise functions compute of one element, where C++ has no operator
// or function that does: wrapping integers, division by zero, special values.
#pragma once
#include "elementwise.cuh"

namespace xdev {

using uint64 = unsigned long long;

template <class T>
constexpr bool is_float = same<T, float> || same<T, double>;
template <class T>
constexpr bool is_signed = T(-1) < T(0);
template <class T>
constexpr int width = int(sizeof(T)) * 8;

// Integers wrap: of unsigned ones, by way of which they are computed, C++ says so.
template <class T>
__device__ inline T absolute(T x)
{
    return x < 0 ? T(-uint64(x)) : x;
}

template <class T>
__device__ inline T sign(T x)
{
    if (x != x) return x;
    return x < 0 ? T(-1) : T(x > 0);
}

template <class T>
__device__ inline T reciprocal(T x)
{
    if (x != 0) return T(1) / x;
    return is_signed<T> && sizeof(T) > 2 ? T(uint64(1) << (width<T> - 1)) : T(0);
}

// A quotient that lies between two whole numbers is rounded to neither, nor past one:
// its floor is exact, and saves the slow `fmod`. NumPy's floor is exact below SURE.
template <class T>
constexpr T SURE = sizeof(T) < 8 ? T(1 << 21) : T(1ull << 50);

template <class T>
__device__ inline T floor_divide(T x, T y)
{
    if constexpr (is_float<T>) {
        const T ratio = x / y, below = floor(ratio);
        if (ratio != below && fabs(ratio) < SURE<T>) return below;
        if (y == 0 || isinf(x) || isinf(y)) return below;
        const T rest = fmod(x, y);
        T quotient = (x - rest) / y;
        if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
        if (quotient == 0) return copysign(T(0), ratio);
        const T whole = floor(quotient);
        return quotient - whole > T(0.5) ? whole + 1 : whole;
    } else {
        if (y == 0) return 0;
        if (is_signed<T> && y == T(-1)) return T(-uint64(x));  // the smallest one wraps
        const T quotient = x / y;
        return T(quotient - ((x < 0) != (y < 0) && quotient * y != x));
    }
}

template <class T>
__device__ inline T remainder(T x, T y)
{
    if constexpr (is_float<T>) {
        const T ratio = x / y, below = floor(ratio);
        if (ratio != below) return fma(-below, y, x);
        const T rest = fmod(x, y);
        if (y == 0) return rest;
        if (rest == 0) return copysign(T(0), y);
        return (rest < 0) != (y < 0) ? rest + y : rest;
    } else {
        if (y == 0 || (is_signed<T> && y == T(-1))) return 0;
        const T rest = x % y;
        return rest != 0 && (rest < 0) != (y < 0) ? T(rest + y) : rest;
    }
}

// Of integers NumPy refuses negative exponents, which a kernel cannot: they are rounded
// towards 0.
template <class T>
__device__ inline T power(T x, T y)
{
    if (y < 0) return x == 1 ? T(1) : x == T(-1) ? (y % 2 ? x : T(1)) : T(0);
    uint64 result = 1, factor = uint64(x);
    for (uint64 left = uint64(y); left; left >>= 1) {
        if (left & 1) result *= factor;
        factor *= factor;
    }
    return T(result);
}

template <class T>
__device__ inline T maximum(T x, T y)
{
    return x >= y || x != x ? x : y;  // NaN wins
}

template <class T>
__device__ inline T minimum(T x, T y)
{
    return x <= y || x != x ? x : y;
}

template <class T>
__device__ inline T log_add_exp(T x, T y)
{
    if (x == y) return x + T(0.693147180559945309417232121458176568);
    const T less = x - y;
    return (less > 0 ? x : y) + log1p(exp(-fabs(less)));
}

// A shift by the width or more, which a negative one is, leaves zeros or signs.
template <class T>
__device__ inline T shift_left(T x, T y)
{
    return uint64(y) < width<T> ? T(uint64(x) << uint64(y)) : T(0);
}

template <class T>
__device__ inline T shift_right(T x, T y)
{
    if (uint64(y) < width<T>) return T(x >> y);
    return is_signed<T> && x < 0 ? T(-1) : T(0);
}

// Of a signed integer and an unsigned one, too.
template <class T, class U>
__device__ inline bool less(T x, U y)
{
    if constexpr (is_signed<T> && !is_signed<U>) return x < 0 || uint64(x) < y;
    else if constexpr (!is_signed<T> && is_signed<U>) return y > 0 && x < uint64(y);
    else return x < y;
}

template <class T, class U>
__device__ inline bool equal(T x, U y)
{
    if constexpr (is_signed<T> != is_signed<U>) return x >= 0 && y >= 0 && uint64(x) == uint64(y);
    else return x == y;
}

// Of float16, which comes and goes as a float.
__device__ inline float next_half(float x, float y)
{
    if (x != x || y != y) return x + y;
    if (x == y) return y;
    const unsigned short sign = signbit(x) ? 0x8000 : 0;
    if (x == 0) return widen(half{(unsigned short)(signbit(y) ? 0x8001 : 1)});
    unsigned short bits = narrow<half>(x).bits;
    bits += (x < y) != (sign != 0) ? 1 : -1;
    return widen(half{bits});
}

#ifdef XDEV_COMPLEX

// Numbers as complex.cuh has them (CuPy's header), in front of this file.
template <class T>
using number = ::complex<T>;

template <class T>
__device__ inline number<T> load(const complex<T>* x)
{
    return number<T>(x->re, x->im);
}

template <class T>
__device__ inline complex<T> stored(number<T> x)
{
    return {x.real(), x.imag()};
}

template <class T>
__device__ inline bool truth(number<T> x)
{
    return x.real() != 0 || x.imag() != 0;
}

template <class T>
__device__ inline number<T> multiply(number<T> x, number<T> y)
{
    return number<T>(x.real() * y.real() - x.imag() * y.imag(),
                     x.real() * y.imag() + x.imag() * y.real());
}

// Smith's method, as NumPy has it.
template <class T>
__device__ inline number<T> divide(number<T> x, number<T> y)
{
    const T a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    if (fabs(c) >= fabs(d)) {
        if (c == 0 && d == 0) return number<T>(a / fabs(c), b / fabs(c));
        const T ratio = d / c, scale = T(1) / (c + d * ratio);
        return number<T>((a + b * ratio) * scale, (b - a * ratio) * scale);
    }
    const T ratio = c / d, scale = T(1) / (d + c * ratio);
    return number<T>((a * ratio + b) * scale, (b * ratio - a) * scale);
}

template <class T>
__device__ inline number<T> reciprocal(number<T> x)
{
    const T a = x.real(), b = x.imag();
    if (fabs(a) <= fabs(b)) {
        const T ratio = a / b, scale = b + a * ratio;
        return number<T>(ratio / scale, -1 / scale);
    }
    const T ratio = b / a, scale = a + b * ratio;
    return number<T>(1 / scale, -ratio / scale);
}

template <class T>
__device__ inline number<T> sign(number<T> x)
{
    const T a = x.real(), b = x.imag(), size = hypot(a, b);
    if (size == 0) return number<T>(0, 0);
    if (!isinf(size)) return number<T>(a / size, b / size);
    if (isinf(a) && isinf(b)) return number<T>(a - a, a - a);
    return isinf(a) ? number<T>(copysign(T(1), a), 0) : number<T>(0, copysign(T(1), b));
}

// Complex numbers are ordered by their real parts, then by the imaginary ones.
template <class T>
__device__ inline bool less(number<T> x, number<T> y)
{
    const T a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    return (a < c && b == b && d == d) || (a == c && b < d);
}

template <class T>
__device__ inline bool less_equal(number<T> x, number<T> y)
{
    return less(x, y) || x == y;
}

template <class T>
__device__ inline bool is_nan(number<T> x)
{
    return isnan(x.real()) || isnan(x.imag());
}

template <class T>
__device__ inline number<T> maximum(number<T> x, number<T> y)
{
    return is_nan(x) || less_equal(y, x) ? x : y;
}

template <class T>
__device__ inline number<T> minimum(number<T> x, number<T> y)
{
    return is_nan(x) || less_equal(x, y) ? x : y;
}

// From here on the standard's (C99 Annex G) special values, over CuPy's functions.
template <class T>
__device__ inline number<T> logarithm(number<T> z)
{
    number<T> w = log(z);
    if (isinf(z.real()) || isinf(z.imag())) {
        w.real(hypot(z.real(), z.imag()));  // infinite, also beside NaN
    }
    return w;
}

// Part by part: a complex quotient makes NaN of infinities.
template <class T>
__device__ inline number<T> logarithm(number<T> z, T base)
{
    const number<T> w = logarithm(z);
    const T unit = log(base);
    return number<T>(w.real() / unit, w.imag() / unit);
}

template <class T>
__device__ inline number<T> log_1p(number<T> z)
{
    const T x = z.real(), y = z.imag();
    number<T> w = logarithm(number<T>(1 + x, y));  // y keeps the sign of its zero
    if (fabs(x) < T(0.5) && fabs(y) < T(0.5)) w.real(log1p(x * (2 + x) + y * y) / 2);
    return w;
}

template <class T>
__device__ inline number<T> exp_m1(number<T> z)
{
    const T x = z.real(), y = z.imag();
    const number<T> w = exp(z);
    if (fabs(x) < 1 && isfinite(y) && (x != 0 || y != 0)) {
        const T half = sin(y / 2);  // cos(y) - 1 = -2 sin(y / 2)^2, without cancellation
        return number<T>(expm1(x) * cos(y) - 2 * half * half, w.imag());
    }
    return number<T>(w.real() - 1, w.imag());
}

template <class T>
__device__ inline number<T> tangent(number<T> z)
{
    number<T> w = tan(z);
    if (z.imag() == 0 && !isfinite(z.real())) w.imag(z.imag());
    return w;
}

template <class T>
__device__ inline number<T> hyperbolic_tangent(number<T> z)
{
    const T x = z.real(), y = z.imag();
    number<T> w = tanh(z);
    if (x == 0 && !isfinite(y)) w.real(x);
    if (isinf(x) && isfinite(y)) w.imag(copysign(T(0), y));
    return w;
}

template <class T>
__device__ inline number<T> inverse_cosh(number<T> z)
{
    number<T> w = acosh(z);
    if (z.real() == 0 && isnan(z.imag())) w.imag(T(1.5707963267948966));
    return w;
}

#endif

template <class T>
__device__ inline T load(const T* x)
{
    return *x;
}

template <class T>
__device__ inline T stored(T x)
{
    return x;
}

}  // namespace xdev
