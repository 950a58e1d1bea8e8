# cython: language_level=3, boundscheck=False, wraparound=False
# cython: freethreading_compatible=True
"""The compiled tier: calls like one before.

What threads share is either never changed once it is made (a plan's key), or is read and
written in a critical section of its owner (a table's plans): on a free-threaded Python
that is a lock, elsewhere it costs nothing. No Python is called inside of one. A plan's
limits are single words, of which any that ever held is right: they choose the way alone.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

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
    object apply "PyObject_Call"(object, tuple, PyObject*)

cdef enum:
    MOST = 16  # plans of one table: the oldest goes


@cython.final
cdef class Plan:
    """As `xdev.native.plain.Plan`."""

    cdef readonly tuple kinds
    cdef readonly object ufunc, call
    cdef readonly Py_ssize_t nin
    cdef public double limit, strided

    def __init__(
        self, tuple kinds, Py_ssize_t nin, ufunc, call, double limit=0, double strided=0
    ):
        self.kinds, self.nin, self.ufunc, self.call = kinds, nin, ufunc, call
        self.limit, self.strided = limit, strided

    cdef inline bint fits(self, tuple operands, bint unpickled):
        """Say whether it is for these operands; data types alike may be unpickled."""
        cdef Py_ssize_t n = PyTuple_GET_SIZE(operands)
        cdef PyObject* x
        cdef void* own
        cdef void* kind
        if PyTuple_GET_SIZE(self.kinds) != n:
            return False
        for i in range(n):
            x = <PyObject*>PyTuple_GET_ITEM(operands, i)
            own = <void*>PyTuple_GET_ITEM(self.kinds, i)
            kind = descr_of(<Array*>x) if is_array(x) else type_of(x)
            if kind != own and not (
                unpickled
                and is_array(x)
                and is_descr(<PyObject*>own)
                and equivalent(kind, own)
            ):
                return False
        return True

    cdef inline bint is_small(self, tuple operands):
        """Say whether NumPy's ufunc is all that the operands need."""
        cdef Array* first = NULL
        cdef Array* x
        cdef double size = 1
        cdef bint straight = True
        for i in range(PyTuple_GET_SIZE(operands)):
            x = <Array*>PyTuple_GET_ITEM(operands, i)
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
    """As `xdev.native.plain.Plans`."""

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


cdef class Callable:
    """As `xdev.native.plain.Callable`."""

    cdef readonly Plans plans

    def __cinit__(self, *args, **keywords):
        self.plans = Plans()

    def __call__(self, *args, **keywords):
        cdef tuple operands = args
        cdef tuple plans = self.plans.all()
        cdef Plan plan
        if keywords:
            if len(keywords) > 1 or "out" not in keywords:
                return self._call(args, keywords)
            operands = (*args, keywords["out"])
        for unpickled in (False, True):
            for found in plans:
                plan = <Plan>found
                if plan.fits(operands, unpickled):
                    if keywords and len(args) != plan.nin:
                        break
                    if not plan.is_small(operands):
                        return plan.call.large(operands)
                    try:
                        return apply(plan.ufunc, operands, NULL)
                    except (TypeError, ValueError, OverflowError) as error:
                        plan.call.explain(error, operands)
                        raise
        return self._call(args, keywords)
