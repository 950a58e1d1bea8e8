// The elementwise kernel of operands that are contiguous along rows, or one element for
// each row, over collapsed dimensions: whole arrays are one row.
//
// A thread computes LANES neighbours, so that each operand is read and written in
// accesses of up to 16 bytes. Threads are placed so that what they write is aligned;
// what they read from elsewhere than a multiple of 16 is the two words around, shifted.
// The ends of rows go element by element. One such group a thread, and as many blocks
// as it takes, was the fastest of all shapes tried on an H200, from 1e5 to 2^28
// elements: more groups a thread (2, 4, 8) or a persistent grid lose 1 to 7 %.
#include "layout.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

constexpr int LANES = XDEV_LANES;
constexpr int FEW = LANES < 4 ? LANES : 4;  // at the ends of rows

// What an operand does that has nothing to do.
struct Idle {
    __device__ Index lead(Index other) const { return other; }
    __device__ bool aligned(Index) const { return true; }
    __device__ bool can_store(Index) const { return true; }
    template <bool ALIGNED>
    __device__ void load(Index) {}
    __device__ void load_one(int, Index) {}
    __device__ void store(Index) const {}
    __device__ void store_one(int, Index) const {}
};

template <class Storage, class Loop>
struct Linear : Idle {
    using parameter = const char*;
    const Storage* data;
    typename computed<Loop>::type value[LANES];

    __device__ Linear(parameter address, Offset row)
        : data(reinterpret_cast<const Storage*>(address + row))
    {
    }
    __device__ bool aligned(Index start) const
    {
        return chunk<Storage, LANES>::aligned(data + start);
    }
    template <bool ALIGNED>
    __device__ void load(Index start)
    {
        chunk<Storage, LANES> block;
        if constexpr (ALIGNED) block.load(data + start);
        else block.load_any(data + start);
#pragma unroll
        for (int i = 0; i < LANES; ++i) value[i] = read<Storage, Loop>(block.value + i);
    }
    __device__ void load_one(int lane, Index i) { value[lane] = read<Storage, Loop>(data + i); }
    __device__ auto at(int lane) const { return value + lane; }
};

template <class Storage, class Loop>
struct Output : Idle {
    using parameter = char*;
    Storage* data;
    typename computed<Loop>::type value[LANES];

    __device__ Output(parameter address, Offset row)
        : data(reinterpret_cast<Storage*>(address + row))
    {
    }
    // How many elements before the row the first thread begins, so that all are aligned.
    __device__ Index lead(Index) const
    {
        const unsigned int over = chunk<Storage, LANES>::misfit(data);
        return over % sizeof(Storage) ? 0 : over / sizeof(Storage);
    }
    __device__ bool can_store(Index start) const
    {
        return chunk<Storage, LANES>::aligned(data + start);
    }
    __device__ auto at(int lane) { return value + lane; }
    __device__ void store(Index start) const
    {
        chunk<Storage, LANES> block;
#pragma unroll
        for (int i = 0; i < LANES; ++i) write<Storage, Loop>(block.value + i, value[i]);
        block.store(data + start);
    }
    __device__ void store_one(int lane, Index i) const { write<Storage, Loop>(data + i, value[lane]); }
};

// One element for all of a row: by value, or in memory.
template <class Loop>
struct Constant : Idle, Value<Loop> {
    using parameter = Loop;
    __device__ Constant(parameter x, Offset) : Value<Loop>(x) {}
};

template <class Storage, class Loop>
struct Uniform : Constant<Loop> {
    using parameter = const char*;
    __device__ Uniform(parameter address, Offset row)
        : Constant<Loop>(
              convert<Loop>(*reinterpret_cast<const Storage*>(address + row)), 0)
    {
    }
};

// Few at a time: registers for all lanes would keep threads off the processor.
template <class... Operand>
__device__ inline void by_few(Index n, Index start, Operand... operand)
{
#pragma unroll 1
    for (int first = 0; first < LANES; first += FEW) {
#pragma unroll
        for (int lane = 0; lane < FEW; ++lane) {
            const Index i = start + first + lane;
            // Beyond the row it is the first element again: a valid argument.
            (operand.load_one(lane, i < n ? i : 0), ...);
        }
#pragma unroll
        for (int lane = 0; lane < FEW; ++lane) XDEV_FUNCTION(operand.at(lane)...);
#pragma unroll
        for (int lane = 0; lane < FEW; ++lane) {
            const Index i = start + first + lane;
            if (i < n) (operand.store_one(lane, i), ...);
        }
    }
}

template <class... Operand>
__device__ inline void run(Index n, Index group, Operand... operand)
{
    Index lead = 0;
    ((lead = operand.lead(lead)), ...);
    if (group * LANES >= n + lead) return;
    const Index start = group * LANES - lead;  // the first one may wrap below 0
    const bool whole = start < n && n - start >= LANES;
    const bool wide = whole && (operand.can_store(start) & ...);
    if (wide) {
        if ((operand.aligned(start) & ...)) {
            (operand.template load<true>(start), ...);
        } else {
            (operand.template load<false>(start), ...);
        }
    } else if constexpr (LANES > FEW) {
        by_few(n, start, operand...);
        return;
    } else {
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) {
            const Index i = start + lane;
            // Beyond the row it is the first element again: a valid argument.
            (operand.load_one(lane, i < n ? i : 0), ...);
        }
    }
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) XDEV_FUNCTION(operand.at(lane)...);
    if (wide) {
        (operand.store(start), ...);
        return;
    }
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) {
        const Index i = start + lane;
        if (i < n) (operand.store_one(lane, i), ...);
    }
}

template <class... Operand>
__global__ void __launch_bounds__(BLOCK)
    rows(const __grid_constant__ Parameters<sizeof...(Operand)> p)
{
    constexpr int SLOTS = sizeof...(Operand);
    Index group = blockIdx.x * Index(BLOCK) + threadIdx.x;
    Offset row[SLOTS] = {};
    if constexpr (DIMENSIONS > 1) {
        Index i = group;
        group = split(i, p, DIMENSIONS - 1);
#pragma unroll
        for (int d = DIMENSIONS - 2; d >= 0; --d) {
            const Index place = d ? split(i, p, d) : i;
#pragma unroll
            for (int k = 0; k < SLOTS; ++k) row[k] += Offset(place) * p.stride[k][d];
        }
        if (i >= p.extent[0]) return;  // blocks beyond the last row
    }
    with_numbers<SLOTS>([&]<int... K>(numbers<K...>) {
        run(p.n, group,
            Operand(p.slot[K].template get<typename Operand::parameter>(), row[K])...);
    });
}

}  // namespace xdev
