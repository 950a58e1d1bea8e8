# cython: language_level=3, boundscheck=False, wraparound=False
# cython: freethreading_compatible=True
# cython: unraisable_tracebacks=False
# distutils: extra_compile_args = -fexceptions
"""The pool's class hit: free lists by stream and size class, for C clients.

A chunk that a C client asked for is *held* here: to the pool's heap it is in use, here
it is in use or free. A free one is handed out again without Python. The heap has the
free ones back when it needs memory (`FreeLists.drain`), so nothing is kept from anybody.
The ledger counts a chunk when it comes and when it leaves; how often it was handed out
between is counted here.

One lock guards all cores, but for single words: pointers that are set before a library
knows of them, `Core.miss`, and what reports read. It is held for integers and links
only: not while Python is called, nor while a reference is dropped. So the functions may
be called with the interpreter's lock and without, by any thread, on a free-threaded
Python too. A fork waits until nobody holds it.

Cores, and what libraries know of them, are never freed: a library may call until the
process is gone. C++'s exceptions and the end of a thread pass through these functions:
hence `-fexceptions`.
"""

from cpython.exc cimport PyErr_SetInterrupt
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t, intptr_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from posix.mman cimport MADV_DONTNEED, madvise
cimport numpy as cnp

import threading

cnp.import_array()

cdef extern from *:
    """
    #include <pthread.h>
    static pthread_mutex_t xdev_pool_lock = PTHREAD_MUTEX_INITIALIZER;
    static void xdev_pool_acquire(void) { pthread_mutex_lock(&xdev_pool_lock); }
    static void xdev_pool_release(void) { pthread_mutex_unlock(&xdev_pool_lock); }
    """
    void acquire "xdev_pool_acquire"() nogil
    void release "xdev_pool_release"() nogil
    int pthread_atfork(void (*)() nogil, void (*)() nogil, void (*)() nogil)

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyDataMemAllocator:
        void* ctx
        void* (*malloc)(void*, size_t) noexcept nogil
        void* (*calloc)(void*, size_t, size_t) noexcept nogil
        void* (*realloc)(void*, void*, size_t) noexcept nogil
        void (*free)(void*, void*, size_t) noexcept nogil
    ctypedef struct PyDataMem_Handler:
        PyDataMemAllocator allocator
    PyObject* PyDataMem_DefaultHandler

cdef enum:
    SLOTS = 1 << 16  # of the table of blocks
    LISTS = 1 << 12  # of free blocks by stream and class
    PAGE = 4096
    LAZY = 32 << 20  # from here on the system makes the zeros, where they are touched
    ALIGNED = 63  # the bits that are 0 in the address of every block
    LIVE = 1, FREE = 2, INHERITED = 3  # from the parent process: not to be used
    REFUSED = 0, NOT_SERVED = -1  # answers in the place of an address

cdef struct Block:
    int64_t address, nbytes, stream
    int64_t hits  # how often it was handed out from here
    int state
    bint fits  # whether it serves its class; else it needs a look when it comes back
    Block* next  # in its free list
    Block* chain  # in its slot of the table
    PyObject* chunk

cdef struct Core:
    bint barred  # whether nothing is handed out; giving back always works
    bint eighths
    int64_t quantum
    int64_t idle  # free bytes here [B]
    int64_t least_idle  # since it was asked for [B]
    Block* table[SLOTS]  # by address
    Block* lists[LISTS + 1]  # last in, first out; the last list: what needs a look
    PyObject* miss
    Core* next

cdef Core* cores = NULL
pthread_atfork(&acquire, &release, &release)


cdef void* zeroed(size_t nbytes) except NULL:
    cdef void* made = calloc(1, nbytes)
    if made == NULL:
        raise MemoryError
    return made


# -- under the lock -----------------------------------------------------------------------


cdef inline int64_t granted(Core* core, int64_t nbytes) noexcept nogil:
    """Return the class of a request, as the pool's policy rounds it."""
    cdef int64_t step = core.quantum
    cdef int64_t size = (max(nbytes, 1) + step - 1) // step * step
    if core.eighths:
        while step * 16 < size:
            step *= 2
        size = (size + step - 1) // step * step
    return size


cdef inline Block** slot_of(Core* core, int64_t address) noexcept nogil:
    return &core.table[<uint64_t>(address >> 6 ^ address >> 21) % SLOTS]


cdef inline Block* find(Core* core, int64_t address) noexcept nogil:
    cdef Block* block = slot_of(core, address)[0]
    while block != NULL and block.address != address:
        block = block.chain
    return block


cdef inline Block** list_of(Core* core, int64_t stream, int64_t size) noexcept nogil:
    """Return where the free blocks of a class are, and few others."""
    cdef uint64_t mixed = size >> 6 ^ size >> 17 ^ stream >> 4 ^ stream >> 13
    return &core.lists[mixed % LISTS]


cdef inline void put(Core* core, Block* block) noexcept nogil:
    """Make a block free."""
    cdef Block** place = &core.lists[LISTS]
    if block.fits:
        place = list_of(core, block.stream, block.nbytes)
    block.next, block.state, place[0] = place[0], FREE, block
    core.idle += block.nbytes


cdef inline Block* pop(Core* core, Block** place) noexcept nogil:
    """Make a free block one in use."""
    cdef Block* block = place[0]
    place[0], block.state = block.next, LIVE
    core.idle -= block.nbytes
    return block


cdef void remove(Core* core, Block* block) noexcept nogil:
    cdef Block** place = slot_of(core, block.address)
    while place[0] != block:
        place = &place[0].chain
    place[0] = block.chain
    free(block)


# -- what takes the lock ----------------------------------------------------------------


cdef int64_t take(Core* core, int64_t nbytes, int64_t stream) noexcept nogil:
    """Hand out a free block of the very class; return its address, or 0."""
    cdef int64_t size, address = 0
    cdef Block** place
    acquire()
    if not core.barred and 0 <= nbytes <= INT64_MAX // 4:  # to be rounded
        size = granted(core, nbytes)
        place = list_of(core, stream, size)
        while place[0] and (place[0].nbytes != size or place[0].stream != stream):
            place = &place[0].next
        if place[0] != NULL:
            address = place[0].address
            pop(core, place).hits += 1
            core.least_idle = min(core.least_idle, core.idle)
    release()
    return address


cdef bint take_back(Core* core, int64_t address) noexcept nogil:
    """Take a block back; return whether the address is one of the core's."""
    acquire()
    cdef Block* block = find(core, address)
    if block != NULL and block.state == LIVE:
        put(core, block)
    elif block != NULL and block.state == INHERITED:
        remove(core, block)
    release()
    return block != NULL


cdef bint adopt(Core* core, object chunk, int64_t size, bint is_free) except -1:
    """Hold a chunk in use, of class `size` (0: of none), or make it free at once.

    It is the core's in one step: nobody else has it, whatever is raised. Return whether
    it is: of no class it cannot be free here.
    """
    cdef int64_t nbytes = chunk.nbytes, stream = chunk.stream, address = chunk.address
    cdef bint fits = chunk.uses is None and nbytes == size
    if is_free and not fits:
        return False
    cdef Block* block = <Block*>zeroed(sizeof(Block))
    cdef Block** slot = slot_of(core, address)
    block.address, block.nbytes, block.stream = address, nbytes, stream
    block.state, block.fits = LIVE, fits
    Py_INCREF(chunk)
    block.chunk = <PyObject*>chunk
    acquire()
    block.chain, slot[0] = slot[0], block
    if is_free:
        block.hits = -1  # the ledger counted it as handed out
        put(core, block)
    release()
    return True


cdef bint is_of_stream(intptr_t address, intptr_t stream) noexcept nogil:
    """Say whether a block of a core's begins at an address, and is a stream's own."""
    cdef Core* core = cores  # cores come in front, and stay
    cdef Block* block = NULL
    acquire()
    while core != NULL and block == NULL:
        block = find(core, address)
        core = core.next
    cdef bint found = block != NULL and block.state == LIVE and block.stream == stream
    release()
    return found


IS_OF_STREAM = <intptr_t>&is_of_stream  # the address, for calls


# -- Python, for what is no hit ---------------------------------------------------------


cdef object ask(PyObject* act, tuple arguments):
    """Call Python from C, which cannot be told of an interrupt: it comes once C is done.

    Where Python was interrupted it is called once more. What else it raises the caller
    tells `sys.unraisablehook`.
    """
    for interrupted in (False, True):
        try:
            return (<object>act)(*arguments)
        except KeyboardInterrupt:
            if threading.get_ident() != threading.main_thread().ident:
                raise
        finally:
            if interrupted:
                PyErr_SetInterrupt()


cdef int64_t serve_miss(Core* core, int64_t nbytes, int64_t stream) noexcept with gil:
    answer = ask(core.miss, (nbytes, stream))
    if answer is None:
        return REFUSED
    chunk, size = answer
    adopt(core, chunk, size, False)
    return chunk.address


cdef int64_t serve(Core* core, int64_t nbytes, int64_t stream) noexcept nogil:
    """Return a block's address, REFUSED or NOT_SERVED."""
    cdef int64_t found = take(core, nbytes, stream)
    if found:
        return found
    return NOT_SERVED if core.miss == NULL else serve_miss(core, nbytes, stream)


cdef class FreeLists:
    """One core, as the pool's state and ledger see it.

    Sizes are rounded up to `quantum` bytes; with `eighths` classes are eight per doubling.
    """

    cdef Core* core

    def __cinit__(self, int64_t quantum, *, bint eighths):
        global cores
        self.core = <Core*>zeroed(sizeof(Core))
        self.core.quantum, self.core.eighths = quantum, eighths
        acquire()
        self.core.next, cores = cores, self.core
        release()

    def bar(self, bint on):
        """Hand nothing out, or no longer so."""
        acquire()
        self.core.barred = on
        release()

    def serve(self, miss):
        """Have misses of NumPy and PyTorch served; None: not any longer.

        `miss(nbytes, stream)` returns a chunk in use and its class; or None, which refuses.
        """
        Py_INCREF(miss)  # for ever
        self.core.miss = NULL if miss is None else <PyObject*>miss

    def take(self, int64_t nbytes, int64_t stream):
        """Return the address of a free block of the very class, or 0."""
        return take(self.core, nbytes, stream)

    def take_back(self, int64_t address):
        """Take a block back; return whether the address is one of these."""
        return take_back(self.core, address)

    def adopt(self, chunk, int64_t size, *, bint free=False):
        """Hold a chunk that is in use; return whether it is.

        A chunk of another size than its class is held, but no hit. With `free` it is
        handed out next, in the place of its holder, if it is one.
        """
        return adopt(self.core, chunk, size, free)

    def mark(self, chunk):
        """Have a chunk in use come back by way of the heap, of whichever stream."""
        cdef int64_t address = chunk.address, stream = chunk.stream
        acquire()
        cdef Block* block = find(self.core, address)
        if block != NULL and block.state == LIVE:
            block.fits, block.stream = False, stream
        release()

    def look(self, chunk):
        """Return whether a chunk is here and free, and how often it was handed out."""
        cdef int64_t address = chunk.address, hits = 0
        cdef bint is_free = False
        acquire()
        cdef Block* block = find(self.core, address)
        if block != NULL:
            is_free, hits = block.state == FREE, block.hits
        release()
        return is_free, hits

    def drain(self):
        """Let go of the free chunks and return them; they tell of their reuses."""
        cdef Core* core = self.core
        cdef list found = []
        cdef Block* block
        cdef int k = LISTS  # first what needs a look
        cdef int64_t hits  # no object is made under the lock
        while core.idle and k >= 0:
            if core.lists[k] == NULL:  # what comes there meanwhile stays there
                k -= 1
                continue
            acquire()
            if core.lists[k] == NULL:
                release()
                k -= 1
                continue
            block = pop(core, &core.lists[k])
            core.least_idle -= block.nbytes
            chunk, hits = <object>block.chunk, block.hits
            remove(core, block)
            release()
            Py_DECREF(chunk)  # the block's reference
            chunk.reuses += hits
            found.append(chunk)
        return found

    def inherit(self):
        """In a forked child: nothing is free, and all blocks are the parent's."""
        cdef Block* block
        self.drain()
        self.core.least_idle = 0
        for k in range(SLOTS):
            block = self.core.table[k]
            while block != NULL:
                if block.state == LIVE:
                    Py_DECREF(<object>block.chunk)
                block.state, block = INHERITED, block.chain

    def least_idle(self):
        """Return the least that was free since the last call [B]."""
        acquire()
        cdef int64_t least = self.core.least_idle
        self.core.least_idle = self.core.idle
        release()
        return least

    @property
    def idle(self):
        """Free bytes [B]."""
        return self.core.idle

    @property
    def odd(self):
        """Whether there are free chunks that need a look."""
        return self.core.lists[LISTS] != NULL


# -- CuPy -------------------------------------------------------------------------------

ctypedef intptr_t (*current_stream)() noexcept nogil

cdef struct Devices:
    int count
    current_stream stream
    Core** cores


cdef inline Core* core_of(Devices* devices, int index) noexcept nogil:
    return devices.cores[index] if 0 <= index < devices.count else NULL


cdef void* cupy_malloc(void* devices, size_t nbytes, int index) noexcept nogil:
    cdef Core* core = core_of(<Devices*>devices, index)
    cdef int64_t address = 0
    if core != NULL:
        address = take(core, <int64_t>nbytes, (<Devices*>devices).stream())
    return <void*>address


cdef void cupy_free(void* devices, void* address, int index) noexcept nogil:
    take_back(core_of(<Devices*>devices, index), <int64_t>address)


cdef class CupyAllocator:
    """Serves CuPy from the free lists of whichever device and stream are current.

    Of `count` devices each is served from :meth:`open` on; `stream` is the address of a C
    function that returns the current stream's handle.
    """

    cdef Devices* devices

    def __cinit__(self, int count, intptr_t stream):
        self.devices = <Devices*>zeroed(sizeof(Devices))
        self.devices.cores = <Core**>zeroed(max(count, 1) * sizeof(Core*))
        self.devices.count, self.devices.stream = count, <current_stream>stream

    @property
    def functions(self):
        """What CuPy's `CFunctionAllocator` is made of: parameter, malloc and free."""
        return <intptr_t>self.devices, <intptr_t>&cupy_malloc, <intptr_t>&cupy_free

    def open(self, int index, FreeLists lists):
        """Serve a device."""
        self.devices.cores[index] = lists.core


def allocator(hit, rest):
    """Return what CuPy is given: it allocates by `hit`, a `CFunctionAllocator`'s method.

    Or by `rest`: on a miss, and of no bytes, where CuPy asks for no memory, and the pool
    gives some all the same.
    """
    def allocate(nbytes):
        pointer = hit(nbytes)
        return pointer if pointer.ptr else rest(nbytes)

    return allocate


# -- NumPy ------------------------------------------------------------------------------

cdef struct Numpy:
    Core* core
    bint serves  # whether new arrays are
    size_t least  # bytes of an array that is served
    PyDataMemAllocator inner  # the allocator that was there


cdef void clear(char* start, size_t nbytes) noexcept nogil:
    """Fill a block with zeros; whole pages of a large one are given up for fresh ones.

    So an array of zeros of which little is touched takes little memory, whoever had its
    block before.
    """
    cdef char* first = <char*>((<intptr_t>start + PAGE - 1) & -PAGE)
    cdef char* last = <char*>((<intptr_t>start + <intptr_t>nbytes) & -PAGE)
    if nbytes < LAZY or madvise(first, last - first, MADV_DONTNEED):
        memset(start, 0, nbytes)
    else:
        memset(start, 0, first - start)
        memset(last, 0, start + nbytes - last)


cdef void* allocate(
    Numpy* numpy, size_t items, size_t nbytes, bint zeros
) noexcept nogil:
    """Return a new array's memory; the pool serves, or the allocator that was there."""
    cdef int64_t found = NOT_SERVED
    if numpy.serves and items * nbytes >= numpy.least:
        if not nbytes or items <= <size_t>INT64_MAX // nbytes:  # no overflow
            found = serve(numpy.core, <int64_t>(items * nbytes), 0)
    if found == NOT_SERVED and zeros:
        return numpy.inner.calloc(numpy.inner.ctx, items, nbytes)
    if found == NOT_SERVED:
        return numpy.inner.malloc(numpy.inner.ctx, nbytes)
    if zeros and found != REFUSED:
        clear(<char*>found, items * nbytes)
    return <void*>found


cdef void* numpy_malloc(void* context, size_t nbytes) noexcept nogil:
    return allocate(<Numpy*>context, 1, nbytes, False)


cdef void* numpy_calloc(void* context, size_t items, size_t nbytes) noexcept nogil:
    return allocate(<Numpy*>context, items, nbytes, True)


cdef void numpy_free(void* context, void* address, size_t nbytes) noexcept nogil:
    cdef Numpy* numpy = <Numpy*>context
    if <intptr_t>address & ALIGNED or not take_back(numpy.core, <int64_t>address):
        numpy.inner.free(numpy.inner.ctx, address, nbytes)


cdef void* numpy_realloc(void* context, void* address, size_t nbytes) noexcept nogil:
    """Keep a block that fits and is at least half used; else move.

    What is not the core's stays with the allocator that was there: only that one knows
    how large it is.
    """
    cdef Numpy* numpy = <Numpy*>context
    cdef size_t held = 0
    cdef Block* block
    if not <intptr_t>address & ALIGNED:
        acquire()
        block = find(numpy.core, <int64_t>address)
        held = 0 if block == NULL else <size_t>block.nbytes
        release()
    if not held:
        return numpy.inner.realloc(numpy.inner.ctx, address, nbytes)
    if held // 2 <= nbytes <= held:
        return address
    cdef void* moved = numpy_malloc(context, nbytes)
    if moved != NULL:
        memcpy(moved, address, min(held, nbytes))
        numpy_free(context, address, held)
    return moved


cdef class NumpyHandler:
    """Functions for NumPy's default handler, which every thread starts with.

    New arrays of `least` bytes are served, smaller ones by the allocator that is there.
    """

    cdef Numpy* numpy

    def __cinit__(self, size_t least):
        self.numpy = <Numpy*>zeroed(sizeof(Numpy))
        self.numpy.least = least
        self.numpy.inner = default_allocator()[0]

    def install(self):
        """Have NumPy call the functions, for ever; they need free lists before."""
        cdef PyDataMemAllocator* handler = default_allocator()
        handler.ctx = self.numpy  # first: those that were there take no notice of it
        handler.free, handler.realloc = numpy_free, numpy_realloc
        handler.malloc, handler.calloc = numpy_malloc, numpy_calloc

    def serve(self, FreeLists lists):
        """Serve new arrays from the host pool's free lists; with None, none."""
        if lists is not None:
            self.numpy.core = lists.core
        self.numpy.serves = lists is not None


cdef PyDataMemAllocator* default_allocator() except NULL:
    found = PyCapsule_GetPointer(<object>PyDataMem_DefaultHandler, "mem_handler")
    return &(<PyDataMem_Handler*>found).allocator


# -- PyTorch ----------------------------------------------------------------------------

ctypedef void (*Throw)(const char*, const char*, unsigned, const char*) noexcept nogil

cdef struct Torch:
    Devices devices
    Throw throw
    PyObject* record

cdef Torch torch
cdef const char* REFUSAL = (
    "out of memory: xdev's pool refused; see xdev.memory.summary('cuda')"
)
cdef const char* NO_SERVICE = "xdev's pool lends no block so large, or Python has ended"


cdef void* torch_malloc(Py_ssize_t nbytes, int index, void* stream) noexcept nogil:
    cdef Core* core = core_of(&torch.devices, index)
    cdef int64_t found = NOT_SERVED
    if core != NULL:
        found = serve(core, nbytes, <int64_t>stream)
    if found > 0:
        return <void*>found
    if torch.throw != NULL:  # an exception of C++: it does not return
        torch.throw("xdev", "xdev", 0, NO_SERVICE if found else REFUSAL)
    return NULL


cdef void torch_free(void* address, Py_ssize_t _, int index, void* __) noexcept nogil:
    cdef Core* core = core_of(&torch.devices, index)
    if core != NULL:
        take_back(core, <int64_t>address)


cdef void torch_record(void* address, void* stream) noexcept with gil:
    ask(torch.record, (<int64_t>address, <int64_t>stream))


def torch_functions(CupyAllocator served, record, intptr_t throw):
    """Return the addresses of PyTorch's malloc, free and record_stream.

    `record(address, stream)` marks a block, again where it was interrupted; `throw` is the
    address of PyTorch's C++ function that throws its error, or 0.
    """
    torch.devices, torch.throw = served.devices[0], <Throw>throw
    Py_INCREF(record)
    torch.record = <PyObject*>record
    return <intptr_t>&torch_malloc, <intptr_t>&torch_free, <intptr_t>&torch_record
