// Folding values with the user's function in their order: it need not commute, only
// associate. A part of a line may have no values (a tail, a mask), so parts know that.
#pragma once
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

constexpr int DIMENSIONS = XDEV_DIMENSIONS;

template <class T>
struct Part {
    T value;
    bool any;
};

template <class T>
__device__ inline T apply(T left, T right)
{
    T result;
    XDEV_FUNCTION(&left, &right, &result);
    return result;
}

template <class T>
__device__ inline Part<T> join(Part<T> left, Part<T> right)
{
    if (!right.any) return left;
    if (!left.any) return right;
    return {apply(left.value, right.value), true};
}

// The value of the lane ``distance`` above, or below where it is negative.
template <class T>
__device__ inline T from_lane(T value, int distance)
{
    constexpr int words = (sizeof(T) + 3) / 4;
    union Words {
        T value;
        unsigned int word[words];
        __device__ Words() {}
    } moved;
    moved.word[words - 1] = 0;
    moved.value = value;
#pragma unroll
    for (int i = 0; i < words; ++i) {
        moved.word[i] = distance > 0
                            ? __shfl_down_sync(~0u, moved.word[i], distance)
                            : __shfl_up_sync(~0u, moved.word[i], -distance);
    }
    return moved.value;
}

template <class T>
__device__ inline Part<T> from_lane(Part<T> part, int distance)
{
    return {from_lane(part.value, distance), from_lane(int(part.any), distance) != 0};
}

template <class T>
__device__ inline T join(T left, T right)
{
    return apply(left, right);
}

// Lane 0 gets the fold of all lanes; of values, or of parts.
template <class T>
__device__ inline T fold_warp(T part)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        part = join(part, from_lane(part, distance));
    }
    return part;
}

// Every lane gets the fold of the lanes up to itself.
template <class T>
__device__ inline Part<T> scan_warp(Part<T> part, int lane)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const Part<T> below = from_lane(part, -distance);
        if (lane >= distance) part = join(below, part);
    }
    return part;
}

// Where the lines of an array begin, and how they go on.
struct Lines {
    Size lines, length;  // how many lines, and elements of each
    Size splits, each;   // how many segments of a line, and elements of each segment
    Size extent[DIMENSIONS];  // of the dimensions that count lines
    Size source[DIMENSIONS], target[DIMENSIONS], mask[DIMENSIONS];  // strides [B]
    Size source_step, target_step, mask_step;  // from one element to the next [B]
};

// The offsets of a line.
struct Line {
    Size source = 0, target = 0, mask = 0;
    Size last;  // its place along the last dimension

    __device__ Line(const Lines& p, Size line)
    {
#pragma unroll
        for (int d = DIMENSIONS - 1; d >= 0; --d) {
            const Size place = d ? line % p.extent[d] : line;
            if (d) line /= p.extent[d];
            source += place * p.source[d];
            target += place * p.target[d];
            mask += place * p.mask[d];
            if (d == DIMENSIONS - 1) last = place;
        }
    }
};

}  // namespace xdev
