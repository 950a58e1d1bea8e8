// Reductions along lines. Threads of a group (a warp, or a block) fold one segment that
// is contiguous, in accesses of 16 bytes; or each thread folds some of neighbour lines,
// alone or with its like in the block's other warps. A line is
// one segment or is split into several, whose folds meet in scratch memory: the last
// blocks of the grid wait for them, line by line. (Blocks begin in their order, as
// decoupled look-back needs it too: Merrill & Garland 2016, NVR-2016-002.)
#include "fold.cuh"

namespace xdev {

constexpr int LANES = XDEV_LANES;
constexpr int GROUP = XDEV_GROUP;  // threads that fold a segment: 1, 32, BLOCK,
constexpr bool TALL = GROUP == WARPS;  // or one of each warp
constexpr int UNROLL = 4;          // chunks under way at once
constexpr int WIDE = XDEV_WIDE;    // neighbour lines that one thread folds
constexpr bool MASKED = XDEV_MASKED;
constexpr bool SEGMENTED = XDEV_SEGMENTED;  // segments begin where an array says
constexpr int JOINING = XDEV_JOINING;  // threads that join a line's segments; 0: nobody

enum Statistic { FOLD, COUNT, NORM, MEAN, VARIANCE, DEVIATION, LARGEST, SMALLEST };
constexpr Statistic STATISTIC = Statistic(XDEV_STATISTIC);
constexpr bool MOMENTS = STATISTIC == VARIANCE || STATISTIC == DEVIATION;
constexpr bool PLACED = STATISTIC == LARGEST || STATISTIC == SMALLEST;
constexpr bool COMMUTES = STATISTIC != FOLD;

using Mark = unsigned long long;

struct Reduction {
    Slot source, target, scratch, mask, initial;
    int has_initial, folding;  // blocks that fold: the others join
    Mark ready;  // what no memory holds by chance; even
    double freedom;  // what the sum of a mean or a variance is divided by
    Lines at;
};

// How many values there are, their mean, and the sum of the squares of their distances
// from it. Those of neighbours are of two passes; they are joined as by Chan, Golub and
// LeVeque (1979, STAN-CS-79-773), so that no large mean spoils a small variance.
template <class R>
struct Moments {
    R count, mean, squares;
};

template <class R>
__device__ inline Moments<R> apply(Moments<R> a, Moments<R> b)
{
    const R count = a.count + b.count, part = b.count / count, step = b.mean - a.mean;
    return {count, a.mean + step * part, a.squares + b.squares + step * step * a.count * part};
}

// A value and where it is; of equal ones the first, and a NaN before all others.
template <class R>
struct Placed {
    R value;
    Size place;
};

template <class R>
__device__ inline Placed<R> apply(Placed<R> a, Placed<R> b)
{
    const bool nan = a.value != a.value, other = b.value != b.value;
    const bool beats = STATISTIC == LARGEST ? b.value > a.value : b.value < a.value;
    const bool same = nan ? other : b.value == a.value;
    return same ? b.place < a.place ? b : a : !nan && (other || beats) ? b : a;
}

// The fold of what a thread met first with what it met then: of equal values the first
// stays, without a look at the places.
template <class T>
__device__ inline T follow(T a, T b)
{
    return apply(a, b);
}

template <class R>
__device__ inline Placed<R> follow(Placed<R> a, Placed<R> b)
{
    const bool stays = STATISTIC == LARGEST ? b.value <= a.value : b.value >= a.value;
    return stays || a.value != a.value ? a : b;
}

template <class T>
__device__ inline Part<T> follow(Part<T> a, Part<T> b)
{
    if (!a.any) return b;
    return b.any ? Part<T>{follow(a.value, b.value), true} : a;
}

// What is folded of a value: the value, or more.
template <class R>
__device__ inline auto begun(R x, Size place)
{
    if constexpr (MOMENTS) return Moments<R>{R(1), x, x - x};  // of an infinity NaN
    else if constexpr (PLACED) return Placed<R>{x, place};
    else return x;
}

template <class Storage, class Loop>
struct Reader {
    using R = typename computed<Loop>::type;
    using T = decltype(begun(R(), Size()));
    const char* data;
    const char* mask;
    Size step, mask_step;

    __device__ R value(const Storage* address) const
    {
        if constexpr (STATISTIC == COUNT) {
            return convert<R>(convert<bool>(*address));
        } else if constexpr (STATISTIC == NORM) {
            const R x = read<Storage, Loop>(address);
            return x * x;
        } else {
            return read<Storage, Loop>(address);
        }
    }

    __device__ Part<T> one(Size i) const
    {
        if (MASKED && !mask[i * mask_step]) return {T(), false};
        return {begun(value(reinterpret_cast<const Storage*>(data + i * step)), i), true};
    }

    // The fold of LANES neighbours, or of those below the end.
    __device__ Part<T> few(Size start, Size end) const
    {
        Part<T> part[LANES];
#pragma unroll
        for (int i = 0; i < LANES; ++i) {
            part[i] = {T(), false};
            if (start + i < end) part[i] = one(start + i);
        }
#pragma unroll
        for (int i = 1; i < LANES; ++i) part[0] = join(part[0], part[i]);
        return part[0];
    }

    __device__ T all(const chunk<Storage, LANES>& block, Size start) const
    {
        if constexpr (MOMENTS) {
            R total = value(block.value), squares = 0;
#pragma unroll
            for (int i = 1; i < LANES; ++i) total = apply(total, value(block.value + i));
            const R mean = total / R(LANES);
#pragma unroll
            for (int i = 0; i < LANES; ++i) {
                const R step = value(block.value + i) - mean;
                squares += step * step;
            }
            return {R(LANES), mean, squares};
        } else {
            T total = begun(value(block.value), start);
#pragma unroll
            for (int i = 1; i < LANES; ++i) {
                total = follow(total, begun(value(block.value + i), start + i));
            }
            return total;
        }
    }

    // The fold of a segment by one warp, in lane 0.
    __device__ Part<T> warp(Size begin, Size end, int lane) const
    {
        constexpr Size SPAN = WARP * LANES;
        Part<T> total = {T(), false};
        if (!MASKED && step == sizeof(Storage)) {
            for (; begin + UNROLL * SPAN <= end; begin += UNROLL * SPAN) {
                chunk<Storage, LANES> block[UNROLL];
                const Storage* from =
                    reinterpret_cast<const Storage*>(data) + begin + lane * LANES;
                if (block[0].aligned(from)) {
#pragma unroll
                    for (int k = 0; k < UNROLL; ++k) block[k].load(from + k * SPAN);
                } else {
#pragma unroll
                    for (int k = 0; k < UNROLL; ++k) block[k].load_any(from + k * SPAN);
                }
                T part[UNROLL];
#pragma unroll
                for (int k = 0; k < UNROLL; ++k) {
                    part[k] = in_order(all(block[k], begin + k * SPAN + lane * LANES));
                }
#pragma unroll
                for (int k = 1; k < UNROLL; ++k) part[0] = follow(part[0], part[k]);
                if (total.any) part[0] = follow(total.value, part[0]);
                total = {part[0], true};
            }
        }
        for (; begin < end; begin += SPAN) {
            total = join(total, in_order(few(begin + lane * LANES, end)));
        }
        return COMMUTES ? fold_warp(total) : total;
    }

    // The fold of a warp's neighbours before what follows them, unless any order will do.
    template <class P>
    __device__ static P in_order(P part)
    {
        return COMMUTES ? part : fold_warp(part);
    }

    // The folds of a segment of neighbour lines by one thread.
    __device__ void thread(Size begin, Size end, Part<T>* total) const
    {
        const Storage* first = reinterpret_cast<const Storage*>(data);
        const Storage* next = reinterpret_cast<const Storage*>(data + step);
        using Block = chunk<Storage, WIDE>;
        if (Block::aligned(first) && Block::aligned(next)) rows<true>(begin, end, total);
        else rows<false>(begin, end, total);
    }

    template <bool ALIGNED>
    __device__ void rows(Size begin, Size end, Part<T>* total) const
    {
        for (; begin + UNROLL <= end; begin += UNROLL) {
            row<ALIGNED, UNROLL>(begin, total);
        }
        for (; begin < end; ++begin) row<ALIGNED, 1>(begin, total);
    }

    template <bool ALIGNED, int ROWS>
    __device__ void row(Size i, Part<T>* total) const
    {
        Part<T> part[ROWS][WIDE];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) across<ALIGNED>(i + r, part[r]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) {
#pragma unroll
            for (int r = 1; r < ROWS; ++r) part[0][k] = follow(part[0][k], part[r][k]);
            total[k] = follow(total[k], part[0][k]);
        }
    }

    template <bool ALIGNED>
    __device__ void across(Size i, Part<T>* part) const
    {
        if constexpr (WIDE == 1) {
            part[0] = one(i);
        } else {
            chunk<Storage, WIDE> block;
            const Storage* from = reinterpret_cast<const Storage*>(data + i * step);
            if constexpr (ALIGNED) block.load(from);
            else block.load_any(from);
#pragma unroll
            for (int k = 0; k < WIDE; ++k) {
                part[k] = {begun(value(block.value + k), i), true};
            }
        }
    }
};

// The fold of a block in its first thread; each warp's own comes in lane 0.
template <class T>
__device__ Part<T> fold_block(Part<T> total)
{
    __shared__ __align__(16) char memory[WARPS * sizeof(Part<T>)];
    Part<T>* parts = reinterpret_cast<Part<T>*>(memory);
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        total = parts[0];
#pragma unroll
        for (int k = 1; k < WARPS; ++k) total = join(total, parts[k]);
    }
    return total;
}

// The folds of what each warp has of WIDE lines a lane, in the first warp: as many lines
// at once as shared memory holds.
template <class T>
__device__ void fold_columns(Part<T>* total)
{
    constexpr int LINES = 32768 / (BLOCK * sizeof(Part<T>));
    constexpr int ONCE = LINES < WIDE ? LINES : WIDE;
    __shared__ __align__(16) char memory[BLOCK * ONCE * sizeof(Part<T>)];
    Part<T>* parts = reinterpret_cast<Part<T>*>(memory);
#pragma unroll
    for (int first = 0; first < WIDE; first += ONCE) {
        if (first) __syncthreads();  // the lines before are read
#pragma unroll
        for (int k = 0; k < ONCE && first + k < WIDE; ++k) {
            parts[k * BLOCK + threadIdx.x] = total[first + k];
        }
        __syncthreads();
        if (threadIdx.x >= WARP) continue;
#pragma unroll
        for (int k = 0; k < ONCE && first + k < WIDE; ++k) {
#pragma unroll
            for (int warp = 1; warp < WARPS; ++warp) {
                Part<T> part = parts[k * BLOCK + warp * WARP + threadIdx.x];
                total[first + k] = join(total[first + k], part);
            }
        }
    }
}

// A line's folds in scratch memory: a mark says that one is there, and if it has a value.
template <class T>
struct Folds {
    volatile Mark* mark;
    T* value;
    Mark ready;

    __device__ Folds(const Reduction& p, Size line) : ready(p.ready)
    {
        Mark* marks = p.scratch.get<Mark*>();
        mark = marks + line * p.at.splits;
        value = reinterpret_cast<T*>(marks + p.at.lines * p.at.splits) + line * p.at.splits;
    }

    __device__ void put(Size split, Part<T> part) { value[split] = part.value; }
    __device__ void tell(Size split, Part<T> part) { mark[split] = ready + part.any; }

    __device__ bool there(Size begin, Size end) const
    {
        bool all = true;
#pragma unroll 4
        for (Size k = begin; k < end; ++k) all &= (mark[k] & ~Mark(1)) == ready;
        return all;
    }

    // The fold of those of a thread, whose marks are gone then: the memory is used again.
    __device__ Part<T> taken(Size begin, Size end)
    {
        Part<T> total = {T(), false};
#pragma unroll 4
        for (Size k = begin; k < end; ++k) {
            total = join(total, Part<T>{value[k], (mark[k] & 1) != 0});
            mark[k] = 0;
        }
        return total;
    }

    // The fold of all, in the first of the threads that join a line.
    __device__ Part<T> joined(Size splits)
    {
        const Size each = (splits + JOINING - 1) / JOINING;
        const Size begin = threadIdx.x % JOINING * each;
        const Size end = begin + each < splits ? begin + each : splits;
        if constexpr (JOINING == WARP) {
            while (!__all_sync(~0u, there(begin, end))) {}
        } else {
            while (!__syncthreads_and(there(begin, end))) {}
        }
        __threadfence();
        const Part<T> total = fold_warp(taken(begin, end));
        return JOINING == WARP ? total : fold_block(total);
    }
};

// What becomes of a line's fold.
template <class Loop, class T>
__device__ auto outcome(const Reduction& p, Part<T> total)
{
    using R = typename computed<Loop>::type;
    R result;
    if constexpr (MOMENTS) {
        result = total.value.squares / R(p.freedom);
    } else {
        if (p.has_initial) {
            total = join(Part<T>{convert<T>(p.initial.get<Loop>()), true}, total);
        }
        result = total.value;
        if constexpr (STATISTIC == MEAN) result = result / R(p.freedom);
    }
    if constexpr (STATISTIC == NORM || STATISTIC == DEVIATION) result = sqrt(result);
    return result;
}

template <class Target, class Loop, class T>
__device__ void finish(const Reduction& p, char* place, Part<T> total)
{
    if constexpr (PLACED) {
        *reinterpret_cast<Target*>(place) = total.value.place;
    } else {
        write<Target, Loop>(reinterpret_cast<Target*>(place), outcome<Loop>(p, total));
    }
}

template <class Storage, class Loop, class Target>
__global__ void __launch_bounds__(BLOCK) reduce(const __grid_constant__ Reduction p)
{
    using T = typename Reader<Storage, Loop>::T;
    if constexpr (JOINING > 0) {
        if (blockIdx.x >= p.folding) {
            const Size block = blockIdx.x - p.folding;
            const Size number = (block * BLOCK + threadIdx.x) / JOINING;
            if (number >= p.at.lines) return;
            const Part<T> total = Folds<T>(p, number).joined(p.at.splits);
            char* place = p.target.get<char*>() + Line(p.at, number).target;
            if (threadIdx.x % JOINING == 0) finish<Target, Loop>(p, place, total);
            return;
        }
    }
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const Size lines = p.at.lines / WIDE;
    Size split, which;
    bool first = threadIdx.x % GROUP == 0;  // has the fold at the end
    if constexpr (TALL) {  // neighbour threads take neighbour lines, warps a part each
        const Size tiles = (lines + WARP - 1) / WARP;
        const Size number = blockIdx.x % tiles * WARP + lane;
        first = warp == 0 && number < lines;
        split = blockIdx.x / tiles;
        which = number < lines ? number * WIDE : 0;
    } else {
        const Size number = (Size(blockIdx.x) * BLOCK + threadIdx.x) / GROUP;
        if (number >= lines * p.at.splits) return;
        // Neighbour threads take neighbour lines; neighbour groups a line's segments.
        split = GROUP == 1 ? number / lines : number % p.at.splits;
        which = GROUP == 1 ? number % lines * WIDE : number / p.at.splits;
    }
    const Line line(p.at, which);

    Size begin = split * p.at.each;
    Size end = begin + p.at.each < p.at.length ? begin + p.at.each : p.at.length;
    if constexpr (SEGMENTED) {
        const Size* starts = p.mask.get<const Size*>();
        begin = starts[line.last];
        const bool more = line.last + 1 < p.at.extent[DIMENSIONS - 1];
        end = more ? starts[line.last + 1] : p.at.length;
        if (end <= begin) end = begin + 1;
    }
    const Reader<Storage, Loop> reader = {
        p.source.get<const char*>() + line.source,
        MASKED ? p.mask.get<const char*>() + line.mask : nullptr,
        p.at.source_step,
        p.at.mask_step,
    };
    Part<T> total[WIDE];
#pragma unroll
    for (int k = 0; k < WIDE; ++k) total[k] = {T(), false};
    if constexpr (GROUP == 1) {
        reader.thread(begin, end, total);
    } else if constexpr (GROUP == WARP) {
        total[0] = reader.warp(begin, end, lane);
    } else {
        // Each warp takes a part of the segment.
        constexpr Size SPAN = TALL ? 1 : WARP * LANES;
        const Size each = (end - begin + WARPS * SPAN - 1) / (WARPS * SPAN) * SPAN;
        const Size from = begin + warp * each;
        const Size to = from + each < end ? from + each : end;
        if constexpr (TALL) {
            reader.thread(from, to, total);
            fold_columns(total);
        } else {
            total[0] = fold_block(reader.warp(from, to, lane));
        }
    }
    if (!first) return;
    if constexpr (JOINING > 0) {
#pragma unroll
        for (int k = 0; k < WIDE; ++k) Folds<T>(p, which + k).put(split, total[k]);
        __threadfence();
#pragma unroll
        for (int k = 0; k < WIDE; ++k) Folds<T>(p, which + k).tell(split, total[k]);
    } else {
        char* place = p.target.get<char*>() + line.target + split * p.at.target_step;
#pragma unroll
        for (int k = 0; k < WIDE; ++k) {
            finish<Target, Loop>(p, place + k * p.at.target[DIMENSIONS - 1], total[k]);
        }
    }
}

}  // namespace xdev
