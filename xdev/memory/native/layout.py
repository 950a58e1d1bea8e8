"""The words of a core: where its one array of int64 keeps what.

Everything is an integer in one array, so that compiled code finds it by one address
and Python by the same indices. Links and places are stored plus one: 0 is none.
"""

from __future__ import annotations

# The header. Python writes OPEN, SHUT, BASE and what is set once; the core the rest.
LOCK = 0  # 1 while somebody changes the core
OPEN = 1  # whether blocks are handed out; giving back always works
EIGHTHS = 2  # whether classes are eight per doubling, or multiples of the quantum
QUANTUM = 3  # what every size is rounded up to [B]
BASE = 4  # the ledger's bytes in use, those that are idle here included [B]
PEAK = 5  # the most of BASE - IDLE since Python set it [B]
IDLE = 6  # free bytes here [B]
USED = 7  # block numbers from here on were never used
VACANT = 8  # the first of the block numbers that are free again
BINS = 9  # how many bins there are
ODD = 10  # the first of the free blocks that no bin takes
MISS = 11  # the address of what serves a miss: f(nbytes, stream, answer, again); or 0
INTERRUPT = 12  # the address of what interrupts Python's main thread
YIELD = 13  # the address of sched_yield, or 0
SHUT = 14  # whether nothing is handed out for another reason: the pool's limit
HEADER = 16

# What the core counts beside the ledger, by the size class of reports (sizes up to
# 1, 2, 4, ... bytes): blocks handed out and given back, and their bytes. A block that
# leaves the core is no longer among those given back: the ledger counts it.
SIZES = 64
TAKEN = HEADER
TAKEN_BYTES = TAKEN + SIZES
GIVEN = TAKEN_BYTES + SIZES
GIVEN_BYTES = GIVEN + SIZES
COUNTERS = GIVEN_BYTES + SIZES

BLOCKS = 1 << 20  # how many blocks a core can know
SLOTS = 1 << 21  # of the table of addresses: a power of two, sparsely filled
LARGEST = 1 << 61  # no block is larger: twice as much is still an int64 [B]
BIN_SLOTS = 1 << 13  # of the table of bins
MOST_BINS = 1 << 12

# The table of addresses, open addressing with linear probing.
KEY = COUNTERS  # address, or 0
NUMBER = KEY + SLOTS  # block number
# Of each block.
ADDRESS = NUMBER + SLOTS
NBYTES = ADDRESS + BLOCKS
NEXT = NBYTES + BLOCKS  # the next block of the same list
HOME = NEXT + BLOCKS  # the bin that takes it; 0: none does, it needs a look
STATE = HOME + BLOCKS
CLASS = STATE + BLOCKS  # the size class of reports
# The table of bins, by stream and class; and the bins in the order they were made.
BIN_STREAM = CLASS + BLOCKS
BIN_NBYTES = BIN_STREAM + BIN_SLOTS  # the class, or 0
BIN_FIRST = BIN_NBYTES + BIN_SLOTS
BIN_LIST = BIN_FIRST + BIN_SLOTS
WORDS = BIN_LIST + MOST_BINS

# States of a block.
LIVE = 1  # in use
FREE = 2  # in a bin, or in the list of the odd ones
INHERITED = 3  # the parent process's: giving it back does nothing

# What Python answers to a call from C is not returned, since ctypes returns whatever
# lies there where Python raises: Python, or the core itself, writes it into words that
# are 0 before. They are an address, whether there is an answer, and what to add to the
# address.
ANSWER, STATE_OF_ANSWER, ADDED = 3, 1, 2
UNANSWERED, ANSWERED, INTERRUPTED = range(3)

# The words of `devices`: how many cores follow; what returns CuPy's current stream;
# PyTorch's function that throws a C++ exception, where that says it is from, its text
# for a refusal, and that for a block which is not served; what records a stream's use,
# and what interrupts Python, as for a core; cores.
STREAM_AT, REFUSAL_AT, RECORD_AT, CORES_AT = 1, 2, 6, 8
TORCH_WORD = "xdev_torch_devices"  # what points to it for PyTorch, in the object file
