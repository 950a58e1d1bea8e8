// Running folds along lines. A block scans a segment of a line, tile by tile, and
// begins with the fold of the segments before it, whose results another launch left;
// or each thread scans a segment of its own.
#include "fold.cuh"

namespace xdev {

constexpr int LANES = XDEV_LANES;
constexpr int GROUP = XDEV_GROUP;  // threads that scan a segment: 1 or BLOCK

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

    // LANES neighbours, those from the end on without a value.
    __device__ void get(Size start, Size end, Part<T>* part) const
    {
        chunk<Storage, LANES> block;
        const Storage* from = reinterpret_cast<const Storage*>(source) + start;
        if (source_step == sizeof(Storage) && start + LANES <= end && block.aligned(from)) {
            block.load(from);
#pragma unroll
            for (int i = 0; i < LANES; ++i) {
                part[i] = {read<Storage, Loop>(block.value + i), true};
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < LANES; ++i) {
            part[i] = {T(), start + i < end};
            if (part[i].any) part[i].value = get(start + i);
        }
    }
    __device__ void put(Size start, Size end, const Part<T>* part) const
    {
        chunk<Target, LANES> block;
        Target* to = reinterpret_cast<Target*>(target) + start;
        if (target_step == sizeof(Target) && start + LANES <= end && block.aligned(to)) {
#pragma unroll
            for (int i = 0; i < LANES; ++i) write<Target, Loop>(block.value + i, part[i].value);
            block.store(to);
            return;
        }
#pragma unroll
        for (int i = 0; i < LANES; ++i) {
            if (start + i < end) put(start + i, part[i].value);
        }
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

template <class Storage, class Loop, class Target>
__global__ void __launch_bounds__(BLOCK) scan(const __grid_constant__ Scan p)
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
        __shared__ __align__(16) char memory[WARPS * sizeof(Part<T>)];
        Part<T>* parts = reinterpret_cast<Part<T>*>(memory);
        const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        Part<T> carry = {T(), false};
        if (split) carry = carried(before, split, parts);
        for (Size tile = begin; tile < end; tile += BLOCK * LANES) {
            const Size start = tile + threadIdx.x * LANES;
            Part<T> part[LANES];
            cursor.get(start, end, part);
#pragma unroll
            for (int i = 1; i < LANES; ++i) part[i] = join(part[i - 1], part[i]);
            const Part<T> upto = scan_warp(part[LANES - 1], lane);
            Part<T> below = from_lane(upto, -1);
            if (lane == 0) below.any = false;
            __syncthreads();  // the tile before has read the parts
            if (lane == WARP - 1) parts[warp] = upto;
            __syncthreads();
            Part<T> first = carry;
#pragma unroll
            for (int k = 0; k < WARPS; ++k) {
                if (k < warp) first = join(first, parts[k]);
                carry = join(carry, parts[k]);
            }
            first = join(first, below);
#pragma unroll
            for (int i = 0; i < LANES; ++i) part[i] = join(first, part[i]);
            cursor.put(start, end, part);
        }
    }
}

}  // namespace xdev
