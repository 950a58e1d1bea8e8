// A kernel over a grid: one thread an index, the last one along x. Its one parameter is
// the memory that the function finds its arguments in; the extents come first.
extern "C" __device__ void XDEV_FUNCTION(long long, long long, long long, const void*);

namespace xdev {

struct Memory {
    long long word[XDEV_WORDS];
};

#if XDEV_NARROW

// Each extent fits into 31 bits, and the launch has a thread for each point.
__global__ void grid(const __grid_constant__ Memory memory)
{
    using Index = unsigned int;
    const Index k = blockIdx.x * blockDim.x + threadIdx.x;
    const Index j = XDEV_INDICES > 1 ? blockIdx.y * blockDim.y + threadIdx.y : 0;
    const Index i = XDEV_INDICES > 2 ? blockIdx.z * blockDim.z + threadIdx.z : 0;
    if (k >= Index(memory.word[2])) return;
    if (XDEV_INDICES > 1 && j >= Index(memory.word[1])) return;
    if (XDEV_INDICES > 2 && i >= Index(memory.word[0])) return;
    XDEV_FUNCTION(i, j, k, &memory);
}

#else

__global__ void grid(const __grid_constant__ Memory memory)
{
    using Index = long long;
    const Index k = Index(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k >= memory.word[2]) return;
#if XDEV_INDICES == 1
    XDEV_FUNCTION(0, 0, k, &memory);
#else
    // A launch has at most 65535 blocks along y and z: a thread may take several. Often
    // it is one, which the code of an unrolled loop would only slow down.
#pragma unroll 1
    for (Index i = Index(blockIdx.z) * blockDim.z + threadIdx.z; i < memory.word[0];
         i += Index(gridDim.z) * blockDim.z) {
#pragma unroll 1
        for (Index j = Index(blockIdx.y) * blockDim.y + threadIdx.y; j < memory.word[1];
             j += Index(gridDim.y) * blockDim.y) {
            XDEV_FUNCTION(i, j, k, &memory);
        }
    }
#endif
}

#endif

}  // namespace xdev
