// Where the elements of operands are: the one parameter of an elementwise kernel, as the
// host packs it. A slot of 16 bytes for each operand holds its address or its value.
#pragma once
#include "elementwise.cuh"

namespace xdev {

constexpr int DIMENSIONS = XDEV_DIMENSIONS;
using Index = XDEV_INDEX;    // unsigned
using Offset = XDEV_OFFSET;  // signed, at least as wide

template <int SLOTS>
struct Parameters {
    Slot slot[SLOTS];
    Index n;
    Index extent[DIMENSIONS];  // of the dimensions from the second on; [0] is unused
    Index magic[DIMENSIONS];   // i / extent == (umulhi(i, magic) + i) >> shift
    Index shift[DIMENSIONS];
    Offset stride[SLOTS][DIMENSIONS];  // bytes
};

__device__ inline unsigned int quotient(
    unsigned int i, unsigned int, unsigned int magic, unsigned int shift)
{
    return (__umulhi(i, magic) + i) >> shift;
}

__device__ inline unsigned long long quotient(
    unsigned long long i, unsigned long long extent, unsigned long long, unsigned long long)
{
    return i / extent;
}

// Take the last dimension's place off an index, which then counts the ones before.
template <int SLOTS>
__device__ inline Index split(Index& i, const Parameters<SLOTS>& p, int d)
{
    const Index q = quotient(i, p.extent[d], p.magic[d], p.shift[d]);
    const Index place = i - q * p.extent[d];
    i = q;
    return place;
}

}  // namespace xdev
