// The kernel of a function of an index's random words. The LANES values of an index are
// neighbours in the output, so that they are written in accesses of up to 16 bytes. A
// thread computes several indices where there are many: what depends on none of them is
// computed once.
#include "elementwise.cuh"

extern "C" __device__ void XDEV_FUNCTION(XDEV_SIGNATURE);

namespace xdev {

using Index = unsigned long long;
constexpr int LANES = XDEV_LANES;
constexpr int ROUNDS = XDEV_ROUNDS;

// The key, the call, a number for each parameter of the function, and the output's
// address.
template <int SLOTS>
struct Call {
    Slot slot[SLOTS];
    Index n;
    Index turns;  // in which each thread has an index whose values are all there
};

__device__ inline unsigned int high(Index x)
{
    return x >> 32;
}

// A compiler would rather compute a sum anew in each use than keep it.
__device__ inline unsigned int kept(unsigned int x)
{
    asm volatile("mov.b32 %0, %0;" : "+r"(x));
    return x;
}

// What becomes of a counter's words in a round, as in xdev.compile.indexed.
struct Philox {
    unsigned int key[ROUNDS][2];

    __device__ explicit Philox(Index whole)
    {
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            key[round][0] = kept(unsigned(whole) + round * XDEV_WEYL_0);
            key[round][1] = kept(high(whole) + round * XDEV_WEYL_1);
        }
    }

    __device__ static Index product(unsigned int a, unsigned int b)
    {
        Index product;
        asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
        return product;
    }

    __device__ void words(Index index, Index call, Index* word) const
    {
        unsigned int a = index, b = high(index), c = call, d = high(call);
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const Index p = product(a, XDEV_MULTIPLIER_0);
            const Index q = product(c, XDEV_MULTIPLIER_1);
            a = high(q) ^ b ^ key[round][0];
            b = q;
            c = high(p) ^ d ^ key[round][1];
            d = p;
        }
        word[0] = a;
        word[1] = b;
        word[2] = c;
        word[3] = d;
    }
};

template <class Storage, class... Parameter>
__device__ inline void run(
    Storage* out, Index n, Index turns, Index key, Index call, Parameter... parameter)
{
    const Philox philox(key);
    const Index stride = Index(gridDim.x) * BLOCK, count = (n + LANES - 1) / LANES;
    Index index = Index(blockIdx.x) * BLOCK + threadIdx.x;
    const unsigned int own = kept(turns + (index + turns * stride < count));
    const unsigned int wide = kept(chunk<Storage, LANES>::aligned(out) ? turns : 0);
    Storage* place = out + index * LANES;
    for (unsigned int turn = 0; turn < own; ++turn) {
        Index word[4];
        philox.words(index, call, word);
        chunk<Storage, LANES> block;
        with_numbers<LANES>([&]<int... K>(numbers<K...>) {
            XDEV_FUNCTION(word, word + 1, word + 2, word + 3, &parameter...,
                          (block.value + K)...);
        });
        if (turn < wide) {
            block.store(place);
        } else {
#pragma unroll
            for (int lane = 0; lane < LANES; ++lane) {
                const Index i = index * LANES + lane;
                if (i < n) out[i] = block.value[lane];
            }
        }
        index += stride;
        place += stride * LANES;
    }
}

template <class Storage, class... Parameter>
__global__ void __launch_bounds__(BLOCK, 8)
    indexed(const __grid_constant__ Call<3 + sizeof...(Parameter)> p)
{
    with_numbers<sizeof...(Parameter)>([&]<int... K>(numbers<K...>) {
        run(p.slot[2 + sizeof...(Parameter)].template get<Storage*>(), p.n, p.turns,
            p.slot[0].template get<Index>(), p.slot[1].template get<Index>(),
            p.slot[2 + K].template get<Parameter>()...);
    });
}

}  // namespace xdev
