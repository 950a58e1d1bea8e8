// Running folds along lines. A block scans a line, tile by tile, or one tile of it, and
// waits for the folds of the tiles before (Merrill & Garland 2016, "Single-pass parallel
// prefix scan with decoupled look-back", NVR-2016-002; but which folds are joined is the
// same in each run). Or each thread scans a segment of a line, and begins with the fold
// of the segments before it, whose results another launch left.
#include "fold.cuh"

namespace xdev {

constexpr int GROUP = XDEV_GROUP;  // threads that scan a segment: 1 or BLOCK
constexpr bool CHAINED = XDEV_JOINING > 0;  // of a line's tiles each has its own block
constexpr int ITEMS = XDEV_LANES;  // that a thread scans at once; odd: no banks conflict
constexpr int REACH = WARP * ITEMS;  // elements that a warp scans at once

struct Scan {
    Slot source, target, before;  // before: the folds of all segments, line by line
    Mark ready;  // what no memory holds by chance; even
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

// What a line's tiles leave for those behind them, in scratch memory: each its fold, and
// the last of BLOCK neighbours the fold of all up to there. A mark says that one is
// there, and then that the tile needs no other any more.
template <class T>
struct Chain {
    const Size tiles, places;
    const Mark ready;
    volatile Mark* mark;
    T* value;

    __device__ Chain(const Scan& p, Size line)
        : tiles(p.at.splits), places(tiles + (tiles + BLOCK - 1) / BLOCK), ready(p.ready)
    {
        Mark* marks = p.before.get<Mark*>();
        mark = marks + line * places;
        value = reinterpret_cast<T*>(marks + p.at.lines * places) + line * places;
    }

    __device__ void put(Size place, T fold)
    {
        value[place] = fold;
        __threadfence();
        mark[place] = ready;
    }

    // Tell a tile's fold; the fold of all tiles before it comes in every thread.
    __device__ Part<T> link(Size tile, Part<T> own, Part<T>* parts)
    {
        if (threadIdx.x == 0) put(tile, own.value);
        // The first thread takes what is before the neighbours, the others one each.
        const Size group = tile / BLOCK;
        const Size place = threadIdx.x ? group * BLOCK + threadIdx.x - 1 : tiles + group - 1;
        const bool takes = threadIdx.x ? place < tile : group > 0;
        bool there = !takes;
        do there = there || (mark[place] & ~Mark(1)) == ready;
        while (!__syncthreads_and(there));
        __threadfence();
        Part<T> total = {T(), takes};
        if (takes) total.value = value[place];
        total = fold_warp(total);
        if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = total;
        __syncthreads();
        total = parts[0];
#pragma unroll
        for (int k = 1; k < WARPS; ++k) total = join(total, parts[k]);
        if (threadIdx.x == 0) {
            if (tile % BLOCK == BLOCK - 1) put(tiles + group, join(total, own).value);
            mark[tile] = ready + 1;
        }
        return total;
    }

    // Take all marks away once nobody needs them: the memory is used again.
    __device__ void clear()
    {
        for (Size k = threadIdx.x; k < tiles; k += BLOCK) {
            while (mark[k] != ready + 1) {}
        }
        __syncthreads();
        for (Size k = threadIdx.x; k < places; k += BLOCK) mark[k] = 0;
    }
};

// One tile: WITHIN says that no element is behind the end. A warp reads and writes its
// elements side by side; each lane computes neighbours, which they meet in memory. Of
// the tile's own fold ``previous`` makes that of all before it.
template <bool WITHIN, class T, class C, class Previous>
__device__ inline void scan_tile(
    C from, Size tile, Size end, T* memory, Part<T>* parts, Previous previous)
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
    Part<T> before = {T(), false}, total = before;
#pragma unroll
    for (int k = 0; k < WARPS; ++k) {
        if (k == warp) before = total;
        total = join(total, parts[k]);
    }
    first = join(join(previous(total), before), first);
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
    const Cursor<Storage, Loop, Target> cursor = {
        p.source.get<const char*>() + line.source,
        p.target.get<char*>() + line.target,
        p.at.source_step,
        p.at.target_step,
    };
    const Size begin = split * p.at.each;
    const Size end = begin + p.at.each < p.at.length ? begin + p.at.each : p.at.length;

    if constexpr (GROUP == 1) {
        const T* before = p.before.get<const T*>() + which * p.at.splits;
        Part<T> total = {T(), false};
        for (Size i = 0; i < split; ++i) total = join(total, Part<T>{before[i], true});
        for (Size i = begin; i < end; ++i) {
            total = join(total, Part<T>{cursor.get(i), true});
            cursor.put(i, total.value);
        }
    } else {
        __shared__ __align__(16) char memory[BLOCK * ITEMS * sizeof(T)];
        __shared__ __align__(16) char folds[2 * WARPS * sizeof(Part<T>)];
        T* values = reinterpret_cast<T*>(memory);
        Part<T>* parts = reinterpret_cast<Part<T>*>(folds);
        Part<T> carry = {T(), false};
        const auto previous = [&](Part<T> own) {
            if constexpr (CHAINED) carry = Chain<T>(p, which).link(split, own, parts + WARPS);
            const Part<T> before = carry;
            carry = join(carry, own);
            return before;
        };
        for (Size tile = begin; tile < end; tile += WARPS * REACH) {
            if (tile + WARPS * REACH <= end) {
                scan_tile<true>(cursor, tile, end, values, parts, previous);
            } else {
                scan_tile<false>(cursor, tile, end, values, parts, previous);
            }
            if (CHAINED) break;
            __syncthreads();  // the parts are read
        }
        if (CHAINED && split == p.at.splits - 1) Chain<T>(p, which).clear();
    }
}

}  // namespace xdev
