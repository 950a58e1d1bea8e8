// The kernel of a function of an index. A thread computes one index, whose LANES values
// are neighbours in the output, so that they are written in accesses of up to 16 bytes.
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

using Index = unsigned long long;
constexpr int BLOCK = XDEV_BLOCK;
constexpr int LANES = XDEV_LANES;

// The one parameter, as the host packs it: a slot of 16 bytes for the output's address
// and for each parameter of the function.
template <int SLOTS>
struct Call {
    struct alignas(16) {
        unsigned char bytes[16];
    } slot[SLOTS];
    Index n;

    template <class T>
    __device__ T get(int k) const
    {
        return *reinterpret_cast<const T*>(slot[k].bytes);
    }
};

template <class Storage, int... K, class... Parameter>
__device__ inline void run(Storage* out, Index n, numbers<K...>, Parameter... parameter)
{
    const Index index = Index(blockIdx.x) * BLOCK + threadIdx.x;
    const Index start = index * LANES;
    if (start >= n) return;
    chunk<Storage, LANES> block;
    XDEV_FUNCTION(&index, &parameter..., (block.value + K)...);
    if (start + LANES <= n && block.aligned(out)) {
        block.store(out + start);
    } else {
#pragma unroll
        for (int lane = 0; lane < LANES; ++lane) {
            if (start + lane < n) out[start + lane] = block.value[lane];
        }
    }
}

template <class Storage, class... Parameter, int... K>
__device__ inline void unpack(const Call<1 + sizeof...(Parameter)>& p, numbers<K...>)
{
    run(p.template get<Storage*>(0), p.n, typename upto<LANES>::type(),
        p.template get<Parameter>(1 + K)...);
}

template <class Storage, class... Parameter>
__global__ void __launch_bounds__(BLOCK)
    indexed(const __grid_constant__ Call<1 + sizeof...(Parameter)> p)
{
    unpack<Storage, Parameter...>(p, typename upto<sizeof...(Parameter)>::type());
}

}  // namespace xdev
