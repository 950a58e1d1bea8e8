// The elementwise kernel of operands of any strides, broadcast ones (stride 0)
// included, over collapsed dimensions, with or without a mask.
#include "layout.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

constexpr int ITEMS = XDEV_ITEMS;  // elements a thread computes, BLOCK apart
constexpr bool MASKED = XDEV_MASKED;

template <class Storage, class Loop>
struct Strided {
    using parameter = const char*;
    parameter data;
    typename computed<Loop>::type value[ITEMS];

    __device__ explicit Strided(parameter address) : data(address) {}
    __device__ void load(int item, Offset offset)
    {
        value[item] = read<Storage, Loop>(reinterpret_cast<const Storage*>(data + offset));
    }
    __device__ auto at(int item) const { return value + item; }
    __device__ void store(int, Offset) const {}
};

template <class Storage, class Loop>
struct Output {
    using parameter = char*;
    parameter data;
    typename computed<Loop>::type value[ITEMS];

    __device__ explicit Output(parameter address) : data(address) {}
    __device__ void load(int, Offset) {}
    __device__ auto at(int item) { return value + item; }
    __device__ void store(int item, Offset offset) const
    {
        write<Storage, Loop>(reinterpret_cast<Storage*>(data + offset), value[item]);
    }
};

template <class Loop>
struct Constant : Value<Loop> {
    using Value<Loop>::Value;
    __device__ void load(int, Offset) {}
    __device__ void store(int, Offset) const {}
};

template <int SLOTS, int... K, class... Operand>
__device__ inline void run(
    const Parameters<SLOTS>& p, numbers<K...>, Operand... operand)
{
    const Index first = blockIdx.x * Index(BLOCK * ITEMS) + threadIdx.x;
    Offset offset[SLOTS][ITEMS] = {};
    bool on[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        Index i = first + item * BLOCK;
        on[item] = i < p.n;
#pragma unroll
        for (int d = DIMENSIONS - 1; d > 0; --d) {
            const Index place = split(i, p, d);
#pragma unroll
            for (int k = 0; k < SLOTS; ++k) {
                offset[k][item] += Offset(place) * p.stride[k][d];
            }
        }
#pragma unroll
        for (int k = 0; k < SLOTS; ++k) offset[k][item] += Offset(i) * p.stride[k][0];
        if constexpr (MASKED) {
            const char* mask = p.slot[SLOTS - 1].template get<const char*>();
            if (on[item]) on[item] = mask[offset[SLOTS - 1][item]] != 0;
        }
    }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        if (on[item]) (operand.load(item, offset[K][item]), ...);
    }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        if (on[item]) {
            XDEV_FUNCTION(operand.at(item)...);
            (operand.store(item, offset[K][item]), ...);
        }
    }
}

template <class... Operand>
__global__ void __launch_bounds__(BLOCK)
    strided(const __grid_constant__ Parameters<sizeof...(Operand) + MASKED> p)
{
    with_numbers<sizeof...(Operand)>([&]<int... K>(numbers<K...> ks) {
        run(p, ks, Operand(p.slot[K].template get<typename Operand::parameter>())...);
    });
}

}  // namespace xdev
