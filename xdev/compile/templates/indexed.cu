// The kernel of a function of an index. The LANES values of an index are neighbours in the
// output, so that they are written in accesses of up to 16 bytes. A thread computes
// several indices where there are many: what depends on none of them is computed once.
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

using Index = unsigned long long;
constexpr int LANES = XDEV_LANES;

// A number for each parameter of the function, and the output's address.
template <int SLOTS>
struct Call {
    Slot slot[SLOTS];
    Index n;
};

template <class Storage, class... Parameter>
__device__ inline void run(Storage* out, Index n, Parameter... parameter)
{
    const Index stride = Index(gridDim.x) * BLOCK;
    Index index = Index(blockIdx.x) * BLOCK + threadIdx.x;
    for (Index start = index * LANES; start < n; start = index * LANES) {
        chunk<Storage, LANES> block;
        with_numbers<LANES>([&]<int... K>(numbers<K...>) {
            XDEV_FUNCTION(&index, &parameter..., (block.value + K)...);
        });
        if (start + LANES <= n && block.aligned(out)) {
            block.store(out + start);
        } else {
#pragma unroll
            for (int lane = 0; lane < LANES; ++lane) {
                if (start + lane < n) out[start + lane] = block.value[lane];
            }
        }
        index += stride;
    }
}

template <class Storage, class... Parameter>
__global__ void __launch_bounds__(BLOCK)
    indexed(const __grid_constant__ Call<1 + sizeof...(Parameter)> p)
{
    with_numbers<sizeof...(Parameter)>([&]<int... K>(numbers<K...>) {
        run(p.slot[sizeof...(Parameter)].template get<Storage*>(), p.n,
            p.slot[K].template get<Parameter>()...);
    });
}

}  // namespace xdev
