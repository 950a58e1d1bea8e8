"""Notebooks: ``%load_ext xdev`` gives ``%xtimeit``, to the end of a device's work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, final

from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.utils.timing import clock as processor_time

from xdev.timing.sampling import begin_code

if TYPE_CHECKING:
    from xdev.timing.sampling import Code

__all__ = ["TimingMagics"]
__dir__ = __all__.copy  # what Tab shows

OPTIONS = "n:r:tcp:qov:"  # %timeit's
REPEAT, PRECISION = 7, 3


@final
@magics_class
class TimingMagics(Magics):
    """The magics that ``%load_ext xdev`` registers."""

    @no_var_expand
    @line_cell_magic
    @needs_local_scope
    def xtimeit(
        self,
        line: str = "",
        cell: str | None = None,
        local_ns: dict[str, Any] | None = None,
    ) -> Any:
        """Time a statement to the end of its work, on whatever device it runs.

        In line mode::

            %xtimeit [-n<N> -r<R> [-t|-c] -q -p<P> [-o|-v <V>]] statement

        in cell mode, where the cell is timed and the line is setup that is not::

            %%xtimeit [-n<N> -r<R> [-t|-c] -q -p<P> [-o|-v <V>]] setup
            code
            code...

        It prints the line that ``%timeit`` prints, of wall time from idle device to
        idle device, and below it what a reader must know: whether the device waited
        for the host, or the call for the device. The statement runs once more than
        ``%timeit`` would run it: the first call, which compiles and fills pools, is in
        no figure.

        Options:

        -n<N>: calls in one run; left out, the power of ten that takes 0.2 s.

        -r<R>: runs; 7 unless given.

        -t: measure with ``time.time``.

        -c: measure the time that the process has the processor.

        -p<P>: significant digits; 3 unless given.

        -q: print nothing.

        -o: return the :class:`xdev.timing.Timing`.

        -v <V>: store it in the variable V.

        Examples::

            In [1]: %load_ext xdev
            In [2]: import xdev as xp
            In [3]: x = xp.ones(1_000_000)
            In [4]: %xtimeit xp.sqrt(x)
        """
        options, code = self.parse_options(
            line, OPTIONS, posix=False, strict=False, preserve_non_opts=True
        )
        if code == "" and cell is None:
            return None
        shell: Any = self.shell  # there is one where a magic runs
        namespace = shell.user_ns
        statement, setup = (code, "pass") if cell is None else (cell, code)
        if cell is None and local_ns and local_ns is not namespace:  # in a function
            namespace = {**namespace, **local_ns}
        clock = time.time if "t" in options else time.perf_counter
        clock = processor_time if "c" in options else clock
        number, repeat = int(options.get("n", 0)), int(options.get("r", REPEAT))
        precision = int(options.get("p", PRECISION))
        parsed = self._parsed(statement), self._parsed(setup)
        candidate = begin_code(*parsed, namespace, clock=clock)
        timing = candidate.measure(number or None, repeat, precision, steps=(1,))
        if "q" not in options:
            lines = [timing.warning, str(timing), *timing.notes]
            print(*filter(None, lines), sep="\n")  # noqa: T201 - as %timeit does
        if "v" in options:
            shell.user_ns[options["v"]] = timing
        return timing if "o" in options else None

    def _parsed(self, source: str) -> Code:
        """Parse what the user typed: magics, shell lines and all."""
        shell: Any = self.shell
        tree = shell.compile.ast_parse(shell.transform_cell(source))
        parsed: Code = shell.transform_ast(tree)
        return parsed
