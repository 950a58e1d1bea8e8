// ``ufunc.at``: in place at indices, repeated ones too. Positions come sorted, those
// that are equal in the caller's order; the first thread of each run works all of it.
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

constexpr int BLOCK = XDEV_BLOCK;

struct alignas(16) Slot {
    const void* address;
    const void* unused;
};

struct Scatter {
    Slot target, positions, order, values;
    long long n;
};

template <class Storage, class Loop, class Value, class ValueLoop, class Result>
__global__ void __launch_bounds__(BLOCK) scatter(const __grid_constant__ Scatter p)
{
    const long long first = blockIdx.x * (long long)BLOCK + threadIdx.x;
    const long long* positions = static_cast<const long long*>(p.positions.address);
    const long long* order = static_cast<const long long*>(p.order.address);
    if (first >= p.n || (first && positions[first - 1] == positions[first])) return;
    Storage* place = (Storage*)p.target.address + positions[first];
    for (long long i = first; i < p.n && positions[i] == positions[first]; ++i) {
        auto value = read<Storage, Loop>(place);
        typename computed<Result>::type result;
#if XDEV_BINARY
        auto other =
            read<Value, ValueLoop>(static_cast<const Value*>(p.values.address) + order[i]);
        XDEV_FUNCTION(&value, &other, &result);
#else
        XDEV_FUNCTION(&value, &result);
#endif
        write<Storage, Result>(place, result);
    }
}

}  // namespace xdev
