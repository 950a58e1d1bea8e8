// ``ufunc.at``: in place at indices, repeated ones too. Positions come sorted, those
// that are equal in the caller's order; the first thread of each run works all of it.
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

struct Scatter {
    Slot target, positions, order, values;
    Size n;
};

template <class Storage, class Loop, class Value, class ValueLoop, class Result>
__global__ void __launch_bounds__(BLOCK) scatter(const __grid_constant__ Scatter p)
{
    const Size first = blockIdx.x * Size(BLOCK) + threadIdx.x;
    const Size* positions = p.positions.get<const Size*>();
    const Size* order = p.order.get<const Size*>();
    if (first >= p.n || (first && positions[first - 1] == positions[first])) return;
    Storage* place = p.target.get<Storage*>() + positions[first];
    for (Size i = first; i < p.n && positions[i] == positions[first]; ++i) {
        auto value = read<Storage, Loop>(place);
        typename computed<Result>::type result;
#if XDEV_BINARY
        auto other = read<Value, ValueLoop>(p.values.get<const Value*>() + order[i]);
        XDEV_FUNCTION(&value, &other, &result);
#else
        XDEV_FUNCTION(&value, &result);
#endif
        write<Storage, Result>(place, result);
    }
}

}  // namespace xdev
