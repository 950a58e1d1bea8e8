// What moves elements: lines sorted, each in one block's shared memory; the places of
// marked elements, in order; rows at indices; arrays joined; triangles; cross products.
#include "elementwise.cuh"

namespace xdev {

constexpr int ITEMS = XDEV_ITEMS;  // elements that a thread works on
constexpr int SHARE = WARP * ITEMS;  // neighbours that a warp works on
constexpr int DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS;

struct Order {
    Slot source, target, more, order, inverse;
    Size length;  // of a line, or of all
};

__device__ inline unsigned int lanes_below()
{
    return (1u << threadIdx.x % WARP) - 1;
}

// The sum of the values of a warp's lanes up to a thread's own.
template <class T>
__device__ inline T sum_upto(T value)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const T more = __shfl_up_sync(~0u, value, distance);
        if (int(threadIdx.x % WARP) >= distance) value += more;
    }
    return value;
}

// Unsigned keys in the order of numbers: NaN is last, -0 equals 0.
template <int BYTES> struct unsigned_of;
template <> struct unsigned_of<1> { using type = unsigned char; };
template <> struct unsigned_of<2> { using type = unsigned short; };
template <> struct unsigned_of<4> { using type = unsigned int; };
template <> struct unsigned_of<8> { using type = unsigned long long; };

template <class T> constexpr unsigned long long INFINITE = 0;  // of floats: the bits
template <> constexpr unsigned long long INFINITE<half> = 0x7c00;
template <> constexpr unsigned long long INFINITE<float> = 0x7f800000;
template <> constexpr unsigned long long INFINITE<double> = 0x7ff0000000000000;

template <class T, bool DESCENDING>
struct Key {
    using Bits = typename unsigned_of<sizeof(T)>::type;
    static constexpr Bits LAST = ~Bits(0), SIGN = LAST ^ LAST / 2;
    static constexpr bool floating = INFINITE<T> != 0;

    __device__ static Bits of(Bits x)
    {
        if constexpr (floating) {
            if (Bits(x & ~SIGN) > INFINITE<T>) x = LAST;
            else x = x & SIGN ? ~x : x ^ SIGN;
        } else if constexpr (T(-1) < T(0)) {
            x ^= SIGN;
        }
        return DESCENDING ? ~x : x;
    }
    __device__ static Bits back(Bits key)
    {
        if (DESCENDING) key = ~key;
        if constexpr (floating) return key & SIGN ? key ^ SIGN : ~key;
        else return T(-1) < T(0) ? key ^ SIGN : key;
    }
    __device__ static int digit(Bits key, int shift)
    {
        constexpr Bits zero = DESCENDING ? Bits(~SIGN) : SIGN;
        if (floating && key == Bits(~zero)) key = zero;
        return key >> shift & (DIGITS - 1);
    }
};

// Put each value at its rank, and take those of the thread's own places; values of 8
// bytes by halves, so that a line may have as many of them as of 4.
template <class Part, class T>
__device__ inline void exchange(Part* shared, T* value, const int* rank, int first)
{
    constexpr int parts = sizeof(T) / sizeof(Part);
#pragma unroll
    for (int part = 0; part < parts; ++part) {
        __syncthreads();  // what was there is read
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            shared[rank[i]] = reinterpret_cast<Part*>(value + i)[part];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            reinterpret_cast<Part*>(value + i)[part] = shared[first + i * WARP];
        }
    }
}

// A radix sort, stable; a block a line. The target has the values, or their places.
template <class T, bool DESCENDING, bool PLACES>
__global__ void __launch_bounds__(BLOCK) sort_lines(const __grid_constant__ Order p)
{
    using Keys = Key<T, DESCENDING>;
    using Bits = typename Keys::Bits;
    using Count = unsigned short;
    using Part = typename unsigned_of<(sizeof(Bits) < 4 ? sizeof(Bits) : 4)>::type;
    __shared__ union {
        Part keys[BLOCK * ITEMS];
        Count places[BLOCK * ITEMS];
        Count counts[WARPS + 1][DIGITS];  // of each warp, and those of all
    } shared;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int first = warp * SHARE + lane;
    const Size line = blockIdx.x * p.length;
    const Bits* source = p.source.get<const Bits*>() + line;
    Bits key[ITEMS];
    Count place[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        place[i] = first + i * WARP;
        key[i] = place[i] < p.length ? Keys::of(source[place[i]]) : Keys::LAST;
    }
    Count* own = shared.counts[warp];
    Count* totals = shared.counts[WARPS];
    for (int shift = 0; shift < int(8 * sizeof(T)); shift += DIGIT_BITS) {
        int rank[ITEMS];
        __syncthreads();
        for (int k = threadIdx.x; k < WARPS * DIGITS; k += BLOCK) shared.counts[0][k] = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {  // among equal digits of the warp
            const int digit = Keys::digit(key[i], shift);
            unsigned int peers = ~0u;
#pragma unroll
            for (int bit = 0; bit < DIGIT_BITS; ++bit) {
                const bool one = digit >> bit & 1;
                const unsigned int ones = __ballot_sync(~0u, one);
                peers &= one ? ones : ~ones;
            }
            const int before = __popc(peers & lanes_below());
            rank[i] = own[digit] + before;
            __syncwarp();
            if (before == 0) own[digit] += __popc(peers);
            __syncwarp();
        }
        __syncthreads();
        for (int digit = threadIdx.x; digit < DIGITS; digit += BLOCK) {
            int sum = 0;
            for (int k = 0; k < WARPS; ++k) {
                const int count = shared.counts[k][digit];
                shared.counts[k][digit] = sum;
                sum += count;
            }
            totals[digit] = sum;
        }
        __syncthreads();
        if (warp == 0) {  // how many digits are less
            constexpr int each = DIGITS / WARP;
            int sum = 0;
            for (int k = 0; k < each; ++k) sum += totals[lane * each + k];
            int below = sum_upto(sum) - sum;
            for (int k = 0; k < each; ++k) {
                const int count = totals[lane * each + k];
                totals[lane * each + k] = below;
                below += count;
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const int digit = Keys::digit(key[i], shift);
            rank[i] += totals[digit] + own[digit];
        }
        exchange(shared.keys, key, rank, first);
        if constexpr (PLACES) exchange(shared.places, place, rank, first);
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int at = first + i * WARP;
        if (at >= p.length) break;
        if constexpr (PLACES) p.target.get<Size*>()[line + at] = place[i];
        else p.target.get<Bits*>()[line + at] = Keys::back(key[i]);
    }
}

// Whether an element is not zero, or differs from the one before it.
template <class T, bool DIFFERS>
__device__ inline bool is_marked(const T* x, Size i)
{
    if constexpr (DIFFERS) {
        return i == 0 || read<T, T>(x + i) != read<T, T>(x + i - 1);
    } else {
        return convert<bool>(x[i]);
    }
}

// The marks of a thread's elements, and in every thread how many its warp has.
template <class T, bool DIFFERS>
__device__ inline int vote(const Order& p, Size first, unsigned int* votes)
{
    const T* source = p.source.get<const T*>();
    int count = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const Size at = first + i * WARP;
        votes[i] = __ballot_sync(~0u, at < p.length && is_marked<T, DIFFERS>(source, at));
        count += __popc(votes[i]);
    }
    return count;
}

// What warps leave, summed over those before a thread's own.
__device__ inline Size sum_before(Size* parts, Size own, Size* all)
{
    if (threadIdx.x % WARP == WARP - 1) parts[threadIdx.x / WARP] = own;
    __syncthreads();
    Size before = 0, total = 0;
    for (int k = 0; k < WARPS; ++k) {
        if (k < int(threadIdx.x / WARP)) before += parts[k];
        total += parts[k];
    }
    *all = total;
    return before;
}

// One block turns counts into those of all before; behind them comes that of all.
__global__ void __launch_bounds__(BLOCK) sum_marks(const __grid_constant__ Order p)
{
    __shared__ Size parts[WARPS];
    Size* counts = p.target.get<Size*>();
    Size carry = 0;
    for (Size tile = 0; tile < p.length; tile += BLOCK * ITEMS) {
        const Size first = tile + threadIdx.x * ITEMS;
        Size own[ITEMS], sum = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            own[i] = first + i < p.length ? counts[first + i] : 0;
            sum += own[i];
        }
        const Size upto = sum_upto(sum);
        Size total;
        Size before = carry + sum_before(parts, upto, &total) + upto - sum;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (first + i < p.length) counts[first + i] = before;
            before += own[i];
        }
        carry += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) counts[p.length] = carry;
}

// Count each block's marks; or put their places, or the elements there, behind those of
// the blocks before, and also number the run that each unsorted element is of.
enum Marks { COUNT, PLACE, VALUE, NUMBER };

template <class T, bool DIFFERS, Marks WHAT>
__global__ void __launch_bounds__(BLOCK) marks(const __grid_constant__ Order p)
{
    __shared__ Size parts[WARPS];
    unsigned int votes[ITEMS];
    const Size warp = blockIdx.x * Size(WARPS) + threadIdx.x / WARP;
    const Size first = warp * SHARE + threadIdx.x % WARP;
    const int count = vote<T, DIFFERS>(p, first, votes);
    Size total;
    Size run = sum_before(parts, count, &total);
    if constexpr (WHAT == COUNT) {
        if (threadIdx.x == 0) p.target.get<Size*>()[blockIdx.x] = total;
        return;
    }
    run += p.more.get<const Size*>()[blockIdx.x];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const Size at = first + i * WARP;
        const unsigned int own = 1u << threadIdx.x % WARP;
        const Size upto = run + __popc(votes[i] & (lanes_below() | own)) - 1;
        if (votes[i] & own) {
            if (WHAT == VALUE) p.target.get<T*>()[upto] = p.source.get<const T*>()[at];
            else p.target.get<Size*>()[upto] = at;
        }
        if (WHAT == NUMBER && at < p.length) {
            const Size place = p.order.get<const Size*>()[at];
            p.inverse.get<Size*>()[place] = upto;
        }
        run += __popc(votes[i]);
    }
}

// Write a thread's words of a result: ``word(at)`` is each, by its place.
template <class Word, class Function>
__device__ inline void fill(Slot target, Size count, Function word)
{
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const Size at = (blockIdx.x * Size(ITEMS) + i) * BLOCK + threadIdx.x;
        if (at >= count) return;
        target.get<Word*>()[at] = word(unsigned(at));
    }
}

// Rows of words, of matrices one after the other; or each word by an index of its own.
// Indices count from the end too.
struct Take {
    Slot source, indices, target;
    Size words, rows, taken, count;  // of a row, of a matrix, of the indices, of all
};

__device__ inline Size wrapped(Size place, Size rows)
{
    if (place >= 0 && place < rows) return place;
    place %= rows;
    return place < 0 ? place + rows : place;
}

template <class Word, class Index, bool EACH>
__global__ void __launch_bounds__(BLOCK) take(const __grid_constant__ Take p)
{
    const Word* source = p.source.get<const Word*>();
    const Index* indices = p.indices.get<const Index*>();
    const unsigned int words = p.words, taken = p.taken;
    fill<Word>(p.target, p.count, [&](unsigned int at) {
        const unsigned int row = at / words, word = at % words;
        const Size place = wrapped(indices[EACH ? at : row % taken], p.rows);
        return source[(row / taken * p.rows + place) * words + word];
    });
}

// Put equal upper halves of words in the order of the lower ones, where few are equal:
// the first thread of each run sorts it.
__global__ void __launch_bounds__(BLOCK) order_ties(const __grid_constant__ Order p)
{
    const Size first = blockIdx.x * Size(BLOCK) + threadIdx.x;
    if (first >= p.length) return;
    const unsigned long long* words = p.source.get<const unsigned long long*>();
    Size* order = p.target.get<Size*>();
    const auto upper = [&](Size i) { return words[order[i]] >> 32; };
    const auto own = upper(first);
    if (first > 0 && upper(first - 1) == own) return;
    for (Size i = first + 1; i < p.length && upper(i) == own; ++i) {
        const Size place = order[i];
        Size k = i;
        for (; k > first && words[order[k - 1]] > words[place]; --k) order[k] = order[k - 1];
        order[k] = place;
    }
}

// Arrays side by side: of each row so many words of each part.
struct Join {
    static constexpr int PARTS = 15;
    Slot slot[PARTS + 1];  // of the parts, then of the result
    Size end[PARTS], pitch[PARTS], start[PARTS];  // [words]: in a result's row; of own
    Size width, count, parts;  // words of a result's row, and of all rows
};

template <class Word>
__global__ void __launch_bounds__(BLOCK) join(const __grid_constant__ Join p)
{
    const unsigned int width = p.width;
    fill<Word>(p.slot[p.parts], p.count, [&](unsigned int at) {
        const unsigned int row = at / width, word = at % width;
        int part = 0;
        while (word >= p.end[part]) ++part;
        const Size begin = part ? p.end[part - 1] : 0;
        const Size place = row * p.pitch[part] + p.start[part] + word - begin;
        return p.slot[part].get<const Word*>()[place];
    });
}

// Zero outside the columns that rows begin, or end, with.
struct Triangle {
    Slot source, target;
    Size rows, columns, diagonal, count;
};

template <class Word, bool LOWER>
__global__ void __launch_bounds__(BLOCK) triangle(const __grid_constant__ Triangle p)
{
    const Word* source = p.source.get<const Word*>();
    const unsigned int rows = p.rows, columns = p.columns;
    fill<Word>(p.target, p.count, [&](unsigned int at) {
        const Size row = at / columns % rows, column = at % columns;
        const Size over = column - row - p.diagonal;  // 0 on the diagonal
        return (LOWER ? over <= 0 : over >= 0) ? source[at] : Word{};
    });
}

// Matrices transposed, each tile by a block that reads and writes along rows.
struct Turn {
    Slot source, target;
    Size rows, columns, down, across;  // of a matrix: tiles, too
};

template <class Word>
__global__ void __launch_bounds__(BLOCK) turn(const __grid_constant__ Turn p)
{
    constexpr int SIDE = sizeof(Word) > 4 ? WARP : 2 * WARP, LINES = BLOCK / SIDE;
    __shared__ Word tile[SIDE][SIDE + 1];
    const unsigned int across = p.across, down = p.down, line = blockIdx.x / across;
    const Size column = blockIdx.x % across * SIDE, row = line % down * SIDE;
    const Size lane = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
    const Word* source = p.source.get<const Word*>() + line / down * p.rows * p.columns;
    Word* target = p.target.get<Word*>() + line / down * p.rows * p.columns;
    for (Size i = first; i < SIDE; i += LINES) {
        if (row + i < p.rows && column + lane < p.columns)
            tile[i][lane] = source[(row + i) * p.columns + column + lane];
    }
    __syncthreads();
    for (Size i = first; i < SIDE; i += LINES) {
        if (column + i < p.columns && row + lane < p.rows)
            target[(column + i) * p.rows + row + lane] = tile[lane][i];
    }
}

// In [begin, begin + rest] of sorted elements, where each value of a thread belongs: all
// before is before it.
template <class T, bool RIGHT, class Number>
__device__ inline void bisect(
    const T* sorted, unsigned int length, unsigned int rest, const Number* value,
    unsigned int* begin)
{
    const auto is_less = [](Number a, Number b) { return a < b || (b != b && a == a); };
    while (rest > 0) {
        const unsigned int step = (rest + 1) / 2;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            const unsigned int at = begin[i] + step - 1;
            if (at >= length) continue;
            const Number x = read<T, T>(sorted + at);
            const bool is_before = RIGHT ? !is_less(value[i], x) : is_less(x, value[i]);
            if (is_before) begin[i] += step;
        }
        rest -= step;
    }
}

// Sorted elements behind every eighth of them, behind every eighth of those; the values
// that are looked for, and the target.
struct Search {
    static constexpr int LEVELS = 7;
    Slot slot[LEVELS + 2];
    Size length[LEVELS], levels, count;
};

// Where values belong among sorted ones, NaN behind all others; behind equal ones, or
// before them. First among samples in shared memory, which is quick at any places.
template <class T, bool RIGHT>
__global__ void __launch_bounds__(BLOCK) search(const __grid_constant__ Search p)
{
    using Number = typename computed<T>::type;
    constexpr unsigned int MOST = 2048, EIGHT = 8;
    __shared__ T samples[MOST];
    const T* sorted = p.slot[0].get<const T*>();
    const unsigned int length = p.length[0], stride = (length + MOST - 1) / MOST;
    const unsigned int count = length / stride;
    for (unsigned int k = threadIdx.x; k < count; k += BLOCK) {
        samples[k] = sorted[(k + 1) * stride - 1];
    }
    const T* values = p.slot[p.levels].get<const T*>();
    Number value[ITEMS];
    unsigned int begin[ITEMS];
    const Size first = blockIdx.x * Size(BLOCK * ITEMS) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const Size at = first + i * BLOCK;
        value[i] = read<T, T>(values + (at < p.count ? at : 0));
        begin[i] = 0;
    }
    __syncthreads();
    bisect<T, RIGHT>(samples, count, count, value, begin);
    unsigned int width = stride;
    for (int level = 0; level < p.levels; ++level) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) begin[i] *= width;
        sorted = p.slot[level].get<const T*>();
        bisect<T, RIGHT>(sorted, p.length[level], width - 1, value, begin);
        width = EIGHT;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const Size at = first + i * BLOCK;
        if (at < p.count) p.slot[p.levels + 1].get<Size*>()[at] = begin[i];
    }
}

// Numbers at equal distances, with NumPy's roundings; but some places, so many apart,
// have one of their own, and those from `turn` on count from the end. FILLED: by the
// first two numbers, as ranges are.
struct Ramp {
    Slot start, step, own, target;
    Size place, end, pitch, turn, count;
};

template <class T, class Number, bool FILLED>
__global__ void __launch_bounds__(BLOCK) ramp(const __grid_constant__ Ramp p)
{
    const Number start = p.start.get<Number>(), own = p.own.get<Number>();
    const Number step = FILLED ? own - start : p.step.get<Number>();
    const unsigned int place = p.place, pitch = p.pitch;
    fill<T>(p.target, p.count, [&](unsigned int at) {
        const Number steps = Number(at < p.turn ? int(at) : int(at - p.count)) * step;
        const bool is_own = at >= place && at < p.end && (at - place) % pitch == 0;
        return convert<T>(is_own ? own : FILLED && at == 0 ? start : start + steps);
    });
}

struct Cross {
    Slot first, second, target;
    Size length;
};

template <class T>
__global__ void __launch_bounds__(BLOCK) cross(const __grid_constant__ Cross p)
{
    const Size at = blockIdx.x * Size(BLOCK) + threadIdx.x;
    if (at >= p.length) return;
    const T* a = p.first.get<const T*>() + 3 * at;
    const T* b = p.second.get<const T*>() + 3 * at;
    T* c = p.target.get<T*>() + 3 * at;
    const T x = a[1] * b[2] - a[2] * b[1];
    const T y = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
    c[0] = x, c[1] = y;
}

}  // namespace xdev
