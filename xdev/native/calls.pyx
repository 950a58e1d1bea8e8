# cython: language_level=3, boundscheck=False, wraparound=False
# cython: freethreading_compatible=True
"""The compiled tier: calls like one before, on NumPy's arrays and by CUDA launches.

What threads share is either never changed once it is made (a plan's key, a launch), or is
a dict or a set, or is read and written in a critical section of its owner (a table's
plans): on a free-threaded Python that is a lock, elsewhere it costs nothing. No
Python is called inside of one. What `connect` is told is there before the first plan,
and for ever. A plan's limits are single words, of which any that ever held is right:
they choose the way alone.
"""

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_AsString
from cpython.float cimport PyFloat_AsDouble
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, intptr_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from numpy import dtype, generic, uint8


cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef struct Array "PyArrayObject":
        pass
    bint is_array "PyArray_CheckExact"(PyObject*)
    bint is_descr "PyArray_DescrCheck"(PyObject*)
    bint is_straight "PyArray_IS_C_CONTIGUOUS"(Array*)
    bint is_aligned "PyArray_ISALIGNED"(Array*)
    bint same_shape "PyArray_SAMESHAPE"(Array*, Array*)
    bint equivalent "PyArray_EquivTypes"(void*, void*)
    void* descr_of "PyArray_DESCR"(Array*)
    cnp.npy_intp size_of "PyArray_SIZE"(Array*)

cdef extern from "Python.h":
    void* type_of "Py_TYPE"(PyObject*)
    object apply "PyObject_Vectorcall"(object, PyObject**, size_t, PyObject*)
    PyObject** items_of "PySequence_Fast_ITEMS"(tuple)
    PyObject* item "PyTuple_GET_ITEM"(tuple, Py_ssize_t)
    Py_ssize_t count_of "PyTuple_GET_SIZE"(tuple)
    Py_ssize_t count_in "PyVectorcall_NARGS"(size_t)
    object call_of "PyVectorcall_Call"(object, object, object)

cdef enum:
    MOST = 16  # plans of one table: the oldest goes


@cython.final
cdef class Plan:
    """As `xdev._plain_calls.Plan`."""

    cdef readonly tuple kinds
    cdef readonly object ufunc, call
    cdef readonly Py_ssize_t nin
    cdef public double limit, strided

    def __init__(
        self, tuple kinds, Py_ssize_t nin, ufunc, call, double limit=0, double strided=0
    ):
        self.kinds, self.nin, self.ufunc, self.call = kinds, nin, ufunc, call
        self.limit, self.strided = limit, strided

    cdef inline bint fits(self, PyObject** operands, Py_ssize_t count, bint unpickled):
        """Say whether it is for these operands; data types alike may be unpickled."""
        cdef PyObject* x
        cdef PyObject* own
        cdef void* kind
        if count_of(self.kinds) != count:
            return False
        for i in range(count):
            x, own = operands[i], item(self.kinds, i)
            kind = descr_of(<Array*>x) if is_array(x) else type_of(x)
            if kind != own and not (
                unpickled and is_array(x) and is_descr(own) and equivalent(kind, own)
            ):
                return False
        return True

    cdef inline bint is_small(self, PyObject** operands, Py_ssize_t count):
        """Say whether NumPy's ufunc is all that the operands need."""
        cdef Array* first = NULL
        cdef Array* x
        cdef double size = 1
        cdef bint straight = True
        for i in range(count):
            x = <Array*>operands[i]
            if not is_array(<PyObject*>x):
                continue
            if not (is_straight(x) and is_aligned(x)):
                straight = False
            if first == NULL:
                first, size = x, size_of(x)
            elif not same_shape(first, x):
                size *= size_of(x)  # no result is larger
                straight = False
        return size < (self.limit if straight else self.strided)


@cython.final
cdef class Plans:
    """As `xdev._plain_calls.Plans`."""

    cdef tuple _plans

    def __init__(self):
        self._plans = ()

    def learn(self, Plan plan):
        known = {(<Plan>x).kinds: x for x in self.all()}
        known.pop(plan.kinds, None)  # as a key: float and float64's data type are equal
        plans = (plan, *known.values())[:MOST]
        with cython.critical_section(self):
            self._plans = plans

    def forget(self):
        with cython.critical_section(self):
            self._plans = ()

    cdef inline tuple all(self):
        cdef tuple plans
        with cython.critical_section(self):
            plans = self._plans
        return plans


ctypedef int (*LaunchKernel)(
    void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
    void**, void**
) noexcept nogil
ctypedef intptr_t (*CurrentStream)() noexcept
ctypedef int (*GetDevice)(int) except? -1
ctypedef bint (*IsOfStream)(intptr_t, intptr_t) noexcept nogil
ctypedef object (*SetDevice)(int, int)

cdef enum:
    SLOT = 16  # bytes that an operand has in a kernel's parameter
    LIMIT = 4096  # bytes of a kernel's parameter that every driver takes
    OPERANDS = 32  # of a call, at most
    LAUNCHES = 512  # plans of one table: with more layouts it starts afresh

cdef enum:  # how a value gets into its slot, as in `xdev._plain_calls`
    ADDRESS, DOUBLE, FLOAT, SIGNED, UNSIGNED, BYTES

cdef enum:  # what a launch answers, as there; errors of the driver are positive
    STARTED = 0
    NO_VALUE = -1
    OVERLAP = -2
    NEW_STREAM = -3

cdef Py_ssize_t NARROW = 1 << 31  # offsets below this fit 32 bits

cdef struct Value:
    int kind
    bint same
    int64_t low, high, itemsize

# What `connect` was told: the driver's launch, and CuPy's own functions and arrays.
cdef LaunchKernel launch_kernel = NULL
cdef CurrentStream current_stream = NULL
cdef GetDevice get_device = NULL
cdef SetDevice set_device = NULL
cdef IsOfStream is_of_stream = NULL
cdef object array_type = None, new_array = None, mark_uses = None, readers = {}
cdef frozenset NUMBERS = frozenset((bool, int, float, complex, str, type(None)))
cdef tuple SCALARS = (generic, dtype)
cdef dict TAKEN = {dtype(c): dtype(c).type for c in "?bhilBHILefdFD"}
cdef object made_type = None, allocate = None, initialize = None  # of `make_array`
cdef bint makes = False, several_devices = False, several_streams = False
cdef set known_streams = set()


def connect(
    intptr_t launch, intptr_t stream, intptr_t device, intptr_t use, array, new, mark,
    bint several, intptr_t of_stream=0, start=None,
):
    """Do as `xdev._plain_calls.connect`."""
    global launch_kernel, current_stream, get_device, set_device, is_of_stream
    global array_type, new_array, makes, mark_uses, several_devices
    current_stream, get_device = <CurrentStream>stream, <GetDevice>device
    set_device, is_of_stream = <SetDevice>use, <IsOfStream>of_stream
    array_type, new_array, makes = array, new, new is make_array
    mark_uses, several_devices = mark, several
    launch_kernel = <LaunchKernel>launch


def make_arrays_of(kind):
    """Do as `xdev._plain_calls.make_arrays_of`."""
    global made_type, allocate, initialize
    base = kind.__mro__[1]
    made_type, allocate, initialize = kind, base.__new__, base._init
    return make_array


cpdef make_array(shape, dtype, order=None, memory=None):
    array = allocate(made_type)
    initialize(array, shape, dtype, memory, None, order)
    return array


def use_several_streams(bint several=True):
    """Do as `xdev._plain_calls.use_several_streams`."""
    global several_streams
    several_streams = several


def know_stream():
    """Do as `xdev._plain_calls.know_stream`."""
    known_streams.add(current_stream())


def forget_stream(intptr_t stream):
    """Do as `xdev._plain_calls.forget_stream`."""
    known_streams.discard(stream)


def read_by(kind, reader):
    """Do as `xdev._plain_calls.read_by`."""
    readers[kind] = reader


cdef tuple extents(shape):
    return (shape, 1, 1) if isinstance(shape, int) else shape


cdef class Launch:
    """As `xdev._plain_calls.Launch`."""

    cdef readonly object kernel
    cdef readonly tuple values
    cdef readonly Py_ssize_t lanes
    cdef void* function
    cdef unsigned blocks[3]
    cdef unsigned threads[3]
    cdef Py_ssize_t nbytes, first, count, output, size, most
    cdef char* parameter
    cdef Value* slots

    def __cinit__(
        self, kernel, blocks, threads, bytes parameter, tuple values, output=None, *,
        Py_ssize_t first=0, Py_ssize_t lanes=0, Py_ssize_t size=0,
    ):
        cdef Py_ssize_t itemsize = 1
        self.kernel, self.values, self.lanes, self.size = kernel, values, lanes, size
        self.function = <void*><intptr_t>int(kernel.handle)
        self.blocks, self.threads = extents(blocks), extents(threads)
        self.nbytes, self.first, self.count = len(parameter), first, len(values)
        self.output = -1 if output is None else output
        if self.nbytes > LIMIT:
            raise ValueError("a kernel's parameter is too large")
        self.parameter = <char*>calloc(self.nbytes + 1, 1)
        self.slots = <Value*>calloc(self.count + 1, sizeof(Value))
        if self.parameter == NULL or self.slots == NULL:
            raise MemoryError
        memcpy(self.parameter, <char*>parameter, self.nbytes)
        for k, x in enumerate(values):
            self.slots[k] = Value(x.kind, x.same, x.low, x.high, x.itemsize)
            itemsize = max(itemsize, x.itemsize)
        self.most = NARROW // itemsize

    def __dealloc__(self):
        free(self.parameter)
        free(self.slots)

    def start(self, values):
        """Do as `xdev._plain_calls.Launch.start`."""
        cdef char memory[LIMIT]
        cdef Py_ssize_t k
        if len(values) != self.count:
            return NO_VALUE
        memcpy(memory, self.parameter, self.nbytes)
        for k, value in enumerate(values):
            if not self.put(memory, k, value):
                return NO_VALUE
        return self.launch(memory, self.size)

    cdef inline int64_t* slot(self, char* memory, Py_ssize_t k):
        return <int64_t*>(memory + self.first + k * SLOT)

    cdef bint put(self, char* memory, Py_ssize_t k, value):
        """Put a value into its slot; say whether it fits."""
        cdef int64_t* slot = self.slot(memory, k)
        cdef int kind = self.slots[k].kind
        cdef int64_t room = self.slots[k].low
        try:
            if kind == DOUBLE:
                (<double*>slot)[0] = value
            elif kind == FLOAT:
                (<float*>slot)[0] = <float>PyFloat_AsDouble(value)
            elif kind == SIGNED:
                slot[0] = value
                return slot[0] == (slot[0] << room) >> room
            elif kind == BYTES:
                memcpy(slot, PyBytes_AsString(value), SLOT)
            else:
                (<uint64_t*>slot)[0] = value
                if kind == UNSIGNED and room:
                    return (<uint64_t*>slot)[0] >> (64 - room) == 0
        except (OverflowError, TypeError, ValueError):
            return False
        return True

    cdef bint overlaps(self, char* memory, Py_ssize_t size):
        """Say whether an input lies where the output would spoil it."""
        cdef int64_t distance, low, high
        cdef Py_ssize_t k
        cdef Value* x
        for k in range(self.output):
            x = &self.slots[k]
            if x.kind == ADDRESS:
                low, high = x.low, x.high
                if self.lanes:
                    low = -size * x.itemsize
                    high = size * self.slots[self.output].itemsize
                distance = self.slot(memory, k)[0] - self.slot(memory, self.output)[0]
                if low < distance < high and (distance != 0 or not x.same):
                    return True
        return False

    cdef int launch(self, char* memory, Py_ssize_t size):
        """Call the driver, if nothing overlaps and the current stream is known."""
        cdef intptr_t stream = current_stream()
        cdef unsigned blocks = self.blocks[0]
        cdef void* place = memory
        cdef Py_ssize_t groups
        if self.overlaps(memory, size):
            return OVERLAP
        if self.lanes:  # a first group of fewer aligns the others
            (<uint32_t*>self.slot(memory, self.count))[0] = <uint32_t>size
            groups = (size + 2 * self.lanes - 2) // self.lanes
            blocks = <unsigned>((groups + self.threads[0] - 1) // self.threads[0])
        if stream not in known_streams:
            return NEW_STREAM
        with nogil:
            return launch_kernel(
                self.function, blocks, self.blocks[1], self.blocks[2],
                self.threads[0], self.threads[1], self.threads[2], 0, <void*>stream,
                &place, NULL,
            )


@cython.final
cdef class LaunchPlan:
    """As `xdev._plain_calls.LaunchPlan`."""

    cdef readonly Launch run
    cdef readonly object dtype, shape, axes
    cdef readonly tuple encoders
    cdef readonly Py_ssize_t scratch

    def __init__(
        self, Launch run, dtype=None, shape=None, axes=None, tuple encoders=(),
        Py_ssize_t scratch=0,
    ):
        self.run, self.shape, self.axes = run, shape, axes
        self.dtype = TAKEN.get(dtype, dtype)  # a type, which CuPy takes more quickly
        self.encoders, self.scratch = encoders, scratch


cdef struct Operands:  # what a call's key does not say
    intptr_t addresses[OPERANDS]
    Py_ssize_t size  # of straight arrays, C-contiguous ones of one shape, else -1
    int device  # that all arrays are on; -1 where there is one alone
    Py_ssize_t first  # the first of straight arrays


@cython.final
cdef class Launches:
    """As `xdev._plain_calls.Launches`."""

    cdef public Py_ssize_t nin
    cdef bint lanes  # whether a plan is for any number of elements
    cdef dict _plans

    def __init__(self, Py_ssize_t nin=0):
        self.nin, self._plans = nin, {}

    def learn(self, tuple operands, LaunchPlan plan):
        cdef Operands found
        cdef PyObject** items = items_of(operands)
        cdef Py_ssize_t count = len(operands)
        if count > OPERANDS:
            return
        self.lanes = self.lanes or plan.run.lanes > 0
        key = self.straight_key(items, count, &found) if plan.run.lanes else None
        key = key or self.key_of(items, count, &found)
        if key is not None:
            if len(self._plans) >= LAUNCHES:
                self._plans.clear()
            self._plans[key] = plan

    def forget(self):
        self._plans.clear()

    def __call__(self, *operands):
        return self.call(items_of(operands), count_of(operands))

    cdef tuple straight_key(
        self, PyObject** operands, Py_ssize_t count, Operands* found
    ):
        """Return what a plan for C-contiguous arrays of one shape depends on.

        None where they are not, or are of two devices.
        """
        cdef Py_ssize_t k
        cdef tuple key = PyTuple_New(count + 1)
        cdef bint first = True
        cdef int ndim, ndims = 0, device = -1
        cdef Py_ssize_t size
        shape = None
        for k in range(count):
            x = <object>operands[k]
            kind = type(x)
            if kind is array_type:
                data, kind = x.data, x.dtype
                found.addresses[k] = data.ptr
                if several_devices:
                    device = data.device_id
                ndim, size = x.ndim, x.size
                if first:
                    first, found.size, found.device, ndims = False, size, device, ndim
                    found.first = k
                elif size != found.size or device != found.device or ndim != ndims:
                    return None
                if not x._c_contiguous:
                    return None
                if ndims != 1:  # of one dimension the size says all
                    own = x.shape
                    if shape is None:
                        shape = own
                    elif own != shape:
                        return None
            elif kind in readers:
                return None
            Py_INCREF(kind)
            PyTuple_SET_ITEM(key, k, kind)
        last = None if first else device
        Py_INCREF(last)
        PyTuple_SET_ITEM(key, count, last)
        return key

    cdef tuple key_of(self, PyObject** operands, Py_ssize_t count, Operands* found):
        """Return what a plan for other arrays depends on; None as above."""
        cdef list key = []
        cdef Py_ssize_t k
        cdef int device = -1
        found.device, found.size = -1, -1
        for k in range(count):
            x = <object>operands[k]
            kind = type(x)
            if kind is array_type:
                data = x.data
                found.addresses[k] = data.ptr
                if several_devices:
                    device = data.device_id
                aligned = found.addresses[k] & 15 if k >= self.nin else None
                steps = x._c_contiguous or x.strides
                key.append((x.dtype, x.shape, steps, aligned))
            elif kind in readers:
                read = readers[kind](x)
                if read is None:
                    return None
                found.addresses[k], index, *rest = read
                if several_devices:
                    device = index
                key.append((kind, *rest, found.addresses[k] & 15))
            else:
                key.append(kind)
            if found.device != device and found.device >= 0:
                return None
            found.device = device
        return (*key, device)

    cdef object call(self, PyObject** operands, Py_ssize_t count):
        """Launch; return NotImplemented where there is no plan, or it does not fit."""
        cdef Operands found
        cdef LaunchPlan plan
        cdef int current
        if not self._plans or count > OPERANDS:
            return NotImplemented
        plan = self._plans.get(self.straight_key(operands, count, &found)) if self.lanes else None
        if plan is None or not 0 < found.size < plan.run.most:
            plan = self._plans.get(self.key_of(operands, count, &found))
            if plan is None:
                return NotImplemented
        current = -1 if found.device < 0 else get_device(0)
        if current == found.device:
            return self.follow(plan, operands, count, &found)
        set_device(found.device, 0)
        try:
            return self.follow(plan, operands, count, &found)
        finally:
            set_device(current, 0)

    cdef object follow(
        self, LaunchPlan plan, PyObject** operands, Py_ssize_t count, Operands* found
    ):
        cdef char memory[LIMIT]
        cdef Launch run = plan.run
        cdef Py_ssize_t k
        cdef intptr_t stream = current_stream()
        cdef bint straight = found.size >= 0
        result = <object>operands[count - 1]
        memcpy(memory, run.parameter, run.nbytes)
        for k in range(count):
            value = <object>operands[k]
            if run.slots[k].kind == ADDRESS:
                run.slot(memory, k)[0] = found.addresses[k]
                if several_streams and not (
                    is_block(found.addresses[k], stream)
                    or are_own((value,), stream)  # a view of one
                ):
                    mark_uses((value,))
                continue
            if plan.encoders and plan.encoders[k] is not None:
                try:
                    value = plan.encoders[k](value)
                except (OverflowError, TypeError, ValueError):
                    return NotImplemented
            if not run.put(memory, k, value):
                return NotImplemented
        if count < run.count:  # a result that is to be made
            shape = (<object>operands[found.first]).shape if straight else plan.shape
            result = make_array(shape, plan.dtype) if makes else new_array(shape, plan.dtype)
            if plan.axes is not None:
                result = result.transpose(plan.axes)
            run.slot(memory, count)[0] = result.data.ptr
        if plan.scratch:
            held = new_array((plan.scratch,), uint8)
            run.slot(memory, run.count - 1)[0] = held.data.ptr
        if run.launch(memory, found.size if straight else run.size) != STARTED:
            return NotImplemented
        return result


cdef tuple tuple_of(PyObject** operands, Py_ssize_t count):
    cdef tuple made = PyTuple_New(count)
    for k in range(count):
        x = <object>operands[k]
        Py_INCREF(x)
        PyTuple_SET_ITEM(made, k, x)
    return made


cdef bint is_block(intptr_t address, intptr_t stream):
    """Say whether a block of a stream's begins at an address."""
    return is_of_stream != NULL and is_of_stream(address, stream)


def are_of_current_stream(operands):
    """Do as `xdev._plain_calls.are_of_current_stream`."""
    if is_of_stream == NULL:  # nothing is connected
        return False
    cdef intptr_t stream = current_stream()
    return (0 <= stream <= 2 or stream in known_streams) and are_own(operands, stream)


cdef bint are_own(operands, intptr_t stream, bint nested=False):
    """Say whether all arrays lie in blocks of a stream.

    Sequences inside of sequences are not looked into: one may hold itself.
    """
    for x in operands:
        kind = type(x)
        if kind is array_type:
            if not is_block(x.data.mem.ptr, stream):
                return False
        elif kind is tuple or kind is list:
            if nested or not are_own(x, stream, True):
                return False
        elif kind not in NUMBERS and not isinstance(x, SCALARS):
            return False
    return True


cdef bint is_cuda(PyObject** operands, Py_ssize_t count):
    """Say whether one of them is an array that launches know."""
    for k in range(count):
        kind = type(<object>operands[k])
        if kind is array_type or (readers and kind in readers):
            return True
    return False


cdef class Callable:
    """As `xdev._plain_calls.Callable`."""

    cdef readonly Plans plans
    cdef readonly Launches launches
    cdef void* entry

    def __cinit__(self, *args, **keywords):
        self.plans, self.launches, self.entry = Plans(), Launches(), <void*>enter

    def __call__(self, *args, **keywords):  # a class that is not direct
        cdef tuple given = args + tuple(keywords.values())
        names = tuple(keywords)
        return enter(self, items_of(given), len(args), <PyObject*>names)

    cdef object follow(self, Plan plan, PyObject** operands, Py_ssize_t count):
        if not plan.is_small(operands, count):
            return plan.call.large(tuple_of(operands, count))
        try:
            return apply(plan.ufunc, operands, count, NULL)
        except (TypeError, ValueError, OverflowError) as error:
            plan.call.explain(error, tuple_of(operands, count))
            raise


cdef object enter(Callable self, PyObject** given, size_t places, PyObject* names):
    """Call: inputs go by place, then come the values of what goes by name."""
    cdef Py_ssize_t nin = count_in(places), count = nin, k
    cdef bint with_out = names != NULL and count_of(<tuple>names) > 0
    cdef tuple plans
    cdef Plan plan
    if with_out:
        count += 1
        if count_of(<tuple>names) > 1 or (<tuple>names)[0] != "out":
            return general(self, given, nin, names)
    if array_type is not None and is_cuda(given, count):
        if not with_out or nin == self.launches.nin:
            k = nin if with_out and <object>given[nin] is None else count
            result = self.launches.call(given, k)
            if result is not NotImplemented:
                return result
    else:
        plans = self.plans.all()
        for unpickled in range(2):
            for k in range(count_of(plans)):
                plan = <Plan>item(plans, k)
                if plan.fits(given, count, unpickled):
                    if with_out and nin != plan.nin:
                        break
                    return self.follow(plan, given, count)
    return general(self, given, nin, names)


cdef object general(Callable self, PyObject** given, Py_ssize_t nin, PyObject* names):
    cdef Py_ssize_t k, count = 0 if names == NULL else count_of(<tuple>names)
    keywords = {(<tuple>names)[k]: <object>given[nin + k] for k in range(count)}
    return self._call(tuple_of(given, nin), keywords)


cdef extern from *:
    """
    #include <structmember.h>
    """
    ctypedef struct Member "PyMemberDef":
        const char* name
        int type
        Py_ssize_t offset
        int flags
    ctypedef struct Slot "PyType_Slot":
        int slot
        void* pfunc
    ctypedef struct Spec "PyType_Spec":
        const char* name
        unsigned int flags
        Slot* slots
    int T_PYSSIZET, READONLY, Py_tp_members, Py_tp_call
    unsigned int Py_TPFLAGS_DEFAULT, Py_TPFLAGS_BASETYPE, Py_TPFLAGS_HAVE_VECTORCALL
    object class_of "PyType_FromSpecWithBases"(Spec*, tuple)

cdef list class_names = []  # classes refer to them


def direct(kind):
    """Do as `xdev._plain_calls.direct`: calls by CPython's vectorcall make no dict."""
    cdef Callable one = kind.__new__(kind)
    cdef Py_ssize_t offset = <char*>&one.entry - <char*><PyObject*>one
    cdef bytes name = f"{kind.__module__}.{kind.__qualname__}".encode()
    cdef Member[2] members
    cdef Slot[3] slots
    cdef Spec spec
    class_names.append(name)
    members[0] = Member("__vectorcalloffset__", T_PYSSIZET, offset, READONLY)
    members[1].name = NULL
    slots[0] = Slot(Py_tp_members, <void*>members)
    slots[1] = Slot(Py_tp_call, <void*>call_of)
    slots[2].slot = 0
    memset(&spec, 0, sizeof(spec))
    spec.name, spec.slots = name, slots
    spec.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL
    made = class_of(&spec, (kind,))
    made.__module__, made.__qualname__ = kind.__module__, kind.__qualname__
    made.__doc__ = kind.__doc__
    return made
