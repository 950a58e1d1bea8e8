"""Functions that hand arrays on to their library, with nothing done before or after.

For arrays that are not NumPy's, all of one type whose arrays are on one device, such a
function is one call of the library's function of the same name: arguments by place are
handed on by place, the others by name. So machine code can make that call instead
(:mod:`xdev.facade.quick`), without the arguments whose defaults are the library's too.
"""

from __future__ import annotations

#: Their names, by how many of the first arguments are arrays; 0: a sequence of them is;
#: -1: all are, however many.
FUNCTIONS = {
    -1: "broadcast_arrays meshgrid result_type",
    0: "concat stack",
    1: (
        "all any argmax argmin argsort broadcast_to count_nonzero cumulative_prod "
        "cumulative_sum diff expand_dims flip matrix_transpose max mean min moveaxis "
        "nonzero permute_dims prod reshape roll sort squeeze std sum tile tril triu "
        "unique_all unique_counts unique_inverse unique_values unstack var "
        "fft.fft fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifftn fft.ifftshift "
        "fft.ihfft fft.irfft fft.irfftn fft.rfft fft.rfftn "
        "linalg.cholesky linalg.det linalg.diagonal linalg.eig linalg.eigh "
        "linalg.eigvals linalg.eigvalsh linalg.inv linalg.matrix_norm "
        "linalg.matrix_power linalg.matrix_rank linalg.pinv linalg.qr linalg.slogdet "
        "linalg.svd linalg.svdvals linalg.trace linalg.vector_norm"
    ),
    2: (
        "isin matmul searchsorted take take_along_axis tensordot vecdot "
        "linalg.cross linalg.outer linalg.solve"
    ),
    3: "where",
}
ARRAYS = {name: k for k, names in FUNCTIONS.items() for name in names.split()}
#: Arguments that are only handed on as they are if a call leaves them out.
TRANSLATED = frozenset({"dtype"})
#: Arguments that are not handed on at all if a call leaves them out.
LEFT_OUT = frozenset({"append", "prepend", "sorter"})
#: What a library may have for a default of theirs: None is that too.
MEANT_BY_NONE = {"norm": "backward"}
