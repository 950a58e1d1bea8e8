// The elementwise kernel of operands that are all contiguous, or one element for all.
//
// A thread computes LANES neighbours, so that each operand is read and written in
// accesses of up to 16 bytes; the last block, and arrays that begin at an address that
// is no multiple of 16, go element by element, LANES at a time. One such group a thread, and as many
// blocks as it takes, was the fastest of all shapes tried on an H200, from 1e5 to 2^28
// elements: more groups a thread (2, 4, 8) or a persistent grid lose 1 to 7 %.
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

using Index = XDEV_INDEX;
constexpr int BLOCK = XDEV_BLOCK;
constexpr int LANES = XDEV_LANES;

template <class Storage, class Loop>
struct Linear {
    using parameter = const Storage*;
    parameter data;
    typename computed<Loop>::type value[LANES];

    __device__ explicit Linear(parameter address) : data(address) {}
    __device__ bool aligned() const { return chunk<Storage, LANES>::aligned(data); }
    __device__ void load(Index start)
    {
        chunk<Storage, LANES> block;
        block.load(data + start);
#pragma unroll
        for (int i = 0; i < LANES; ++i) value[i] = read<Storage, Loop>(block.value + i);
    }
    __device__ void load_one(int lane, Index i) { value[lane] = read<Storage, Loop>(data + i); }
    __device__ auto at(int lane) const { return value + lane; }
    __device__ void store(Index) const {}
    __device__ void store_one(int, Index) const {}
};

template <class Storage, class Loop>
struct Output {
    using parameter = Storage*;
    parameter data;
    typename computed<Loop>::type value[LANES];

    __device__ explicit Output(parameter address) : data(address) {}
    __device__ bool aligned() const { return chunk<Storage, LANES>::aligned(data); }
    __device__ void load(Index) {}
    __device__ void load_one(int, Index) {}
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

// One element for all, by value or in memory.
template <class Loop>
struct Constant : Value<Loop> {
    using Value<Loop>::Value;
    __device__ bool aligned() const { return true; }
    __device__ void load(Index) {}
    __device__ void load_one(int, Index) {}
    __device__ void store(Index) const {}
    __device__ void store_one(int, Index) const {}
};

template <class Storage, class Loop>
struct Uniform : Constant<Loop> {
    using parameter = const Storage*;
    __device__ explicit Uniform(parameter address)
        : Constant<Loop>(convert<Loop>(*address))
    {
    }
};

template <class... Operand>
__device__ inline void run(Index n, Operand... operand)
{
    constexpr Index span = BLOCK * LANES;
    const Index first = blockIdx.x * span;
    if (first + span <= n && (operand.aligned() && ...)) {
        const Index start = first + threadIdx.x * LANES;
        (operand.load(start), ...);
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) XDEV_FUNCTION(operand.at(lane)...);
        (operand.store(start), ...);
    } else {
        // All loads before the first store: they are under way together.
        const Index start = first + threadIdx.x;
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) {
            const Index i = start + lane * BLOCK;
            if (i < n) (operand.load_one(lane, i), ...);
        }
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) {
            const Index i = start + lane * BLOCK;
            if (i < n) {
                XDEV_FUNCTION(operand.at(lane)...);
                (operand.store_one(lane, i), ...);
            }
        }
    }
}

template <class... Operand>
__global__ void __launch_bounds__(BLOCK)
    contiguous(typename Operand::parameter... parameter, Index n)
{
    run(n, Operand(parameter)...);
}

}  // namespace xdev
