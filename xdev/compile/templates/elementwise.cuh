// What an operand of an elementwise kernel is: how its values are read from memory,
// converted, handed to the scalar function, and written back.
//
// Three types a value passes through: Storage (in memory) -> Loop (the dtype that the
// ufunc's loop takes; the conversion rounds as NumPy's cast does) -> working (what the
// function computes in: float for half and bfloat16, else Loop).
#pragma once

namespace xdev {

constexpr int BLOCK = XDEV_BLOCK;
constexpr int WARP = 32, WARPS = BLOCK / WARP;
using Size = long long;

// One value of a kernel's parameter, as the host packs it: an address, or a number.
struct alignas(16) Slot {
    unsigned char bytes[16];

    template <class T>
    __device__ T get() const
    {
        return *reinterpret_cast<const T*>(bytes);
    }
};

struct half {
    unsigned short bits;
};

// The upper half of a float.
struct bfloat16 {
    unsigned short bits;
};

// Not aligned to its size: NumPy's complex numbers are aligned as their parts are.
template <class T>
struct complex {
    T re, im;
};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<complex<T>> = true;

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

__device__ inline float widen(half x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

__device__ inline float widen(bfloat16 x)
{
    return __uint_as_float(unsigned(x.bits) << 16);
}

template <class To>
__device__ To narrow(float x);

template <>
__device__ inline half narrow(float x)
{
    half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

// From double in one rounding: by way of float it is two, which ml_dtypes has.
__device__ inline half narrow(double x)
{
    half y;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
    return y;
}

template <>
__device__ inline bfloat16 narrow(float x)
{
#if __CUDA_ARCH__ >= 800
    bfloat16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
#else
    const unsigned bits = __float_as_uint(x);
    if (x != x) return {(unsigned short)(bits >> 16 | 0x40)};
    return {(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
}

template <class T>
constexpr bool is_half = same<T, half> || same<T, bfloat16>;

template <class To, class From>
__device__ inline To convert(From x)
{
    if constexpr (same<To, From>) {
        return x;
    } else if constexpr (is_half<From>) {
        return convert<To>(widen(x));
    } else if constexpr (is_complex<From> && is_complex<To>) {
        using real = decltype(To::re);
        return To{convert<real>(x.re), convert<real>(x.im)};
    } else if constexpr (is_complex<To>) {
        return To{convert<decltype(To::re)>(x), 0};
    } else if constexpr (is_complex<From> && same<To, bool>) {
        return x.re != 0 || x.im != 0;
    } else if constexpr (is_complex<From>) {
        return convert<To>(x.re);
    } else if constexpr (same<To, half> && same<From, double>) {
        return narrow(x);
    } else if constexpr (is_half<To>) {
        return narrow<To>(static_cast<float>(x));
    } else {
        return static_cast<To>(x);
    }
}

template <class Loop> struct computed { using type = Loop; };
template <> struct computed<half> { using type = float; };
template <> struct computed<bfloat16> { using type = float; };

template <class Storage, class Loop>
__device__ inline typename computed<Loop>::type read(const Storage* address)
{
    return convert<typename computed<Loop>::type>(convert<Loop>(*address));
}

template <class Storage, class Loop>
__device__ inline void write(Storage* address, typename computed<Loop>::type value)
{
    *address = convert<Storage>(convert<Loop>(value));
}

// The widest access to `COUNT` neighbours of a type: at most 16 bytes at a time.
template <int BYTES> struct word;
template <> struct word<1> { using type = unsigned char; };
template <> struct word<2> { using type = unsigned short; };
template <> struct word<4> { using type = unsigned int; };
template <> struct word<8> { using type = uint2; };
template <> struct word<16> { using type = uint4; };

// One access for certain: compilers split an assignment, and rejoin it not always.
__device__ inline void store16(uint4* address, uint4 word)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(word.x),
                 "r"(word.y), "r"(word.z), "r"(word.w)
                 : "memory");
}

template <class Storage, int COUNT>
struct chunk {
    static constexpr int bytes = sizeof(Storage) * COUNT;
    static constexpr int width = bytes < 16 ? bytes : 16;
    using type = typename word<width>::type;
    static constexpr int words = bytes / width;

    union {
        type word[words];
        Storage value[COUNT];
    };

    __device__ chunk() {}

    __device__ void load(const Storage* address)
    {
#pragma unroll
        for (int i = 0; i < words; ++i) {
            word[i] = reinterpret_cast<const type*>(address)[i];
        }
    }

    __device__ void store(Storage* address) const
    {
#pragma unroll
        for (int i = 0; i < words; ++i) {
            if constexpr (width == 16) {
                store16(reinterpret_cast<type*>(address) + i, word[i]);
            } else {
                reinterpret_cast<type*>(address)[i] = word[i];
            }
        }
    }

    // From any address: the aligned words around it, shifted. A word that holds one byte
    // of an array lies in a page of the array's, so that all of it can be read.
    __device__ void load_any(const Storage* address)
    {
        constexpr int parts = width / 4;
        union {
            type word[words + 1];
            unsigned int part[(words + 1) * parts];
        } around;
        const unsigned int over = misfit(address);
        const type* first = reinterpret_cast<const type*>(
            reinterpret_cast<const char*>(address) - over);
#pragma unroll
        for (int i = 0; i < words; ++i) around.word[i] = first[i];
        around.word[words] = first[words - (over == 0)];
#pragma unroll
        for (int step = 1; step < parts; step *= 2) {
#pragma unroll
            for (int i = 0; i + step < (words + 1) * parts; ++i) {
                if (over / 4 & step) around.part[i] = around.part[i + step];
            }
        }
        if constexpr (sizeof(Storage) < 4) {
#pragma unroll
            for (int i = 0; i < words * parts; ++i) {
                around.part[i] =
                    __funnelshift_r(around.part[i], around.part[i + 1], over % 4 * 8);
            }
        }
#pragma unroll
        for (int i = 0; i < words; ++i) word[i] = around.word[i];
    }

    __device__ static unsigned int misfit(const Storage* address)
    {
        return reinterpret_cast<unsigned long long>(address) % width;
    }

    __device__ static bool aligned(const Storage* address) { return misfit(address) == 0; }
};

// Call a function with the numbers below N, which it takes as template arguments.
template <int... K>
struct numbers {
};
template <int N, int... K, class Function>
__device__ inline void with_numbers(Function function)
{
    if constexpr (N == 0) function(numbers<K...>());
    else with_numbers<N - 1, N - 1, K...>(function);
}

// A number passed by value.
template <class Loop>
struct Value {
    using parameter = Loop;
    typename computed<Loop>::type value;

    __device__ explicit Value(parameter x)
        : value(convert<typename computed<Loop>::type>(x))
    {
    }
    __device__ auto at(int) const { return &value; }
};

}  // namespace xdev
