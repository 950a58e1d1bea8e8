// Running folds along lines. A block scans a segment of a line, tile by tile, and
// begins with the fold of the segments before it, whose results another launch left;
// or each thread scans a segment of its own.
#include "fold.cuh"

namespace xdev {

constexpr int GROUP = XDEV_GROUP;  // threads that scan a segment: 1 or BLOCK
constexpr int ITEMS = XDEV_LANES;  // that a thread scans at once; odd: no banks conflict
constexpr int REACH = WARP * ITEMS;  // elements that a warp scans at once

struct Scan {
    Slot source, target, before;  // before: the folds of all segments, line by line
    Lines at;
};

template <class Storage, class Loop, class Target>
struct Cursor {
    using T = typename computed<Loop>::type;
    const char* source;
    char* target;
    Size source_step, target_step;

    __device__ T get(Size i) const
    {
        return read<Storage, Loop>(reinterpret_cast<const Storage*>(source + i * source_step));
    }
    __device__ void put(Size i, T value) const
    {
        write<Target, Loop>(reinterpret_cast<Target*>(target + i * target_step), value);
    }
    __device__ void advance(Size i)
    {
        source += i * source_step;
        target += i * target_step;
    }
};

// The fold of the segments before a block's own, in every thread.
template <class T>
__device__ inline Part<T> carried(const T* before, Size count, Part<T>* parts)
{
    const Size each = (count + BLOCK - 1) / BLOCK;
    const Size begin = threadIdx.x * each;
    const Size end = begin + each < count ? begin + each : count;
    Part<T> total = {T(), false};
    for (Size i = begin; i < end; ++i) total = join(total, Part<T>{before[i], true});
    total = fold_warp(total);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = total;
    __syncthreads();
    total = parts[0];
#pragma unroll
    for (int k = 1; k < WARPS; ++k) total = join(total, parts[k]);
    return total;
}

// One tile: WITHIN says that no element is behind the end. A warp reads and writes its
// elements side by side; each lane computes neighbours, which they meet in memory.
// Returns the fold of all up to the tile's end.
template <bool WITHIN, class T, class C>
__device__ inline Part<T> scan_tile(
    C from, Size tile, Size end, T* memory, Part<T>* parts, Part<T> carry)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const Size start = tile + warp * REACH;
    const int count = WITHIN || start + REACH <= end ? REACH : start < end ? int(end - start) : 0;
    const int own = count - lane * ITEMS;  // how many elements a lane has, at least
    T* const shared = memory + warp * REACH;
    T* const mine = shared + lane * ITEMS;
    from.advance(start + lane);
    C to = from;
    T value[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i, from.advance(WARP)) {
        if (WITHIN || i * WARP + lane < count) value[i] = from.get(0);
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) shared[i * WARP + lane] = value[i];
    __syncwarp();
    value[0] = mine[0];
#pragma unroll
    for (int i = 1; i < ITEMS; ++i) {
        value[i] = WITHIN || i < own ? apply(value[i - 1], mine[i]) : value[i - 1];
    }
    const Part<T> upto = scan_warp(Part<T>{value[ITEMS - 1], WITHIN || own > 0}, lane);
    Part<T> first = from_lane(upto, -1);
    if (lane == 0) first.any = false;
    if (lane == WARP - 1) parts[warp] = upto;
    __syncthreads();
    Part<T> before = carry;
#pragma unroll
    for (int k = 0; k < WARPS; ++k) {
        if (k < warp) before = join(before, parts[k]);
        carry = join(carry, parts[k]);
    }
    first = join(before, first);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        mine[i] = first.any && (WITHIN || i < own) ? apply(first.value, value[i]) : value[i];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i, to.advance(WARP)) {
        const int place = i * WARP + lane;
        if (WITHIN || place < count) to.put(0, shared[place]);
    }
    __syncwarp();  // they are read
    return carry;
}

template <class Storage, class Loop, class Target>
__global__ void __launch_bounds__(BLOCK, 4) scan(const __grid_constant__ Scan p)
{
    using T = typename computed<Loop>::type;
    const Size number = (Size(blockIdx.x) * BLOCK + threadIdx.x) / GROUP;
    if (number >= p.at.lines * p.at.splits) return;
    // Neighbour threads take neighbour lines; neighbour blocks a line's segments.
    const Size split = GROUP == 1 ? number / p.at.lines : number % p.at.splits;
    const Size which = GROUP == 1 ? number % p.at.lines : number / p.at.splits;
    const Line line(p.at, which);
    const T* before = p.before.get<const T*>() + which * p.at.splits;
    const Cursor<Storage, Loop, Target> cursor = {
        p.source.get<const char*>() + line.source,
        p.target.get<char*>() + line.target,
        p.at.source_step,
        p.at.target_step,
    };
    const Size begin = split * p.at.each;
    const Size end = begin + p.at.each < p.at.length ? begin + p.at.each : p.at.length;

    if constexpr (GROUP == 1) {
        Part<T> total = {T(), false};
        for (Size i = 0; i < split; ++i) total = join(total, Part<T>{before[i], true});
        for (Size i = begin; i < end; ++i) {
            total = join(total, Part<T>{cursor.get(i), true});
            cursor.put(i, total.value);
        }
    } else {
        __shared__ __align__(16) char memory[BLOCK * ITEMS * sizeof(T)];
        __shared__ __align__(16) char folds[WARPS * sizeof(Part<T>)];
        T* values = reinterpret_cast<T*>(memory);
        Part<T>* parts = reinterpret_cast<Part<T>*>(folds);
        Part<T> carry = {T(), false};
        if (split) carry = carried(before, split, parts);
        for (Size tile = begin; tile < end; tile += WARPS * REACH) {
            __syncthreads();  // the parts are read
            carry = tile + WARPS * REACH <= end
                        ? scan_tile<true>(cursor, tile, end, values, parts, carry)
                        : scan_tile<false>(cursor, tile, end, values, parts, carry);
        }
    }
}

}  // namespace xdev
