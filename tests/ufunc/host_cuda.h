// What CUDA's C++ has and the host's has not, so that the kernels run there: blocks one
// after the other, the threads of one by turns, as fibers that change over where they
// wait for each other.
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <ucontext.h>

#define __device__
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct Place {
    unsigned x;
};
static Place blockIdx, threadIdx;

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned long long)a * b >> 32;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits)
{
    return (((unsigned long long)high << 32) | low) >> (bits & 31);
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

namespace fibers {
constexpr int THREADS = XDEV_BLOCK, WARP = 32, STACK = 1 << 16;
static ucontext_t first[THREADS];
static jmp_buf scheduler, context[THREADS];
static char stack[THREADS][STACK];
static bool begun[THREADS], done[THREADS];
static int turn, left;
static unsigned slot[THREADS];
static void (*body)(void*);
static void* argument;

struct Barrier {
    int members, waiting, generation;
    void leave()
    {
        if (--members && waiting == members) open();
    }
    void open() { waiting = 0, ++generation; }
    void wait();
};
static Barrier block, warp[THREADS / WARP];

static void change()
{
    const unsigned self = threadIdx.x;
    if (!_setjmp(context[self])) _longjmp(scheduler, 1);
    threadIdx.x = self;
}
inline void Barrier::wait()
{
    const int mine = generation;
    if (++waiting == members) return open();
    while (generation == mine) change();
}
static void entry()
{
    body(argument);
    done[threadIdx.x] = true;
    warp[threadIdx.x / WARP].leave();
    block.leave();
    _longjmp(scheduler, 1);
}
static void run(void (*kernel)(void*), void* parameter)
{
    body = kernel, argument = parameter;
    block = {THREADS, 0, 0};
    for (auto& each : warp) each = {WARP, 0, 0};
    for (int t = 0; t < THREADS; ++t) {
        begun[t] = done[t] = false;
        getcontext(&first[t]);
        first[t].uc_stack.ss_sp = stack[t];
        first[t].uc_stack.ss_size = STACK;
        makecontext(&first[t], entry, 0);
    }
    do {
        left = 0;
        for (turn = 0; turn < THREADS; ++turn) {
            if (done[turn]) continue;
            threadIdx.x = turn;
            if (!_setjmp(scheduler)) {
                if (begun[turn]) _longjmp(context[turn], 1);
                begun[turn] = true;
                setcontext(&first[turn]);  // once: it asks the system, a jump does not
            }
            left += !done[turn];
        }
    } while (left);
}
static unsigned exchange(unsigned value, int lane)
{
    const int self = threadIdx.x, first = self / WARP * WARP;
    slot[self] = value;
    warp[self / WARP].wait();
    const unsigned found = lane < 0 || lane >= WARP ? value : slot[first + lane];
    warp[self / WARP].wait();
    return found;
}
}  // namespace fibers

static inline void __syncthreads() { fibers::block.wait(); }
static inline void __syncwarp() { fibers::warp[threadIdx.x / 32].wait(); }
static inline void __threadfence() {}
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
static inline unsigned __ballot_sync(unsigned, int value)
{
    const int self = threadIdx.x, first = self / 32 * 32;
    unsigned votes = 0;
    fibers::slot[self] = value;
    __syncwarp();
    for (int lane = 0; lane < 32; ++lane) votes |= unsigned(fibers::slot[first + lane] != 0) << lane;
    __syncwarp();
    return votes;
}
static inline int __syncthreads_and(int value)
{
    fibers::slot[threadIdx.x] = value;
    __syncthreads();
    for (unsigned each : fibers::slot) value = value && each;
    __syncthreads();
    return value;
}
static inline int __all_sync(unsigned, int value)
{
    for (int distance = 1; distance < 32; distance *= 2) {
        value &= fibers::exchange(value, (threadIdx.x + distance) % 32);
    }
    return value;
}
template <class T>
T __shfl_down_sync(unsigned, T value, int distance)
{
    return fibers::exchange(value, int(threadIdx.x % 32) + distance);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int distance)
{
    return fibers::exchange(value, int(threadIdx.x % 32) - distance);
}
