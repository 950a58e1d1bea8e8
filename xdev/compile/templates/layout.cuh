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
    Index magic[DIMENSIONS];   // of 32 bits: i / extent == (umulhi(i, magic) + i) >> shift
    Index shift[DIMENSIONS];
    Offset stride[SLOTS][DIMENSIONS];  // bytes
};

// Take the last dimension's place off an index, which then counts the ones before.
template <int SLOTS>
__device__ inline Index split(Index& i, const Parameters<SLOTS>& p, int d)
{
    const Index own = i;
    if constexpr (sizeof(Index) > 4) i /= p.extent[d];
    else i = (__umulhi(i, p.magic[d]) + i) >> p.shift[d];
    return own - i * p.extent[d];
}

}  // namespace xdev
