"""What stands in for the compiled tier: the same classes in Python.

A table of plans is replaced as a whole, never changed: threads may read and write it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

from numpy import ndarray

if TYPE_CHECKING:
    import collections.abc

MOST = 16  # plans of one table: the oldest goes
STRAIGHT = 0x101  # NumPy's flags: C-contiguous, aligned


@final
class Plan:
    """How to do again what was done before.

    Parameters
    ----------
    kinds : tuple
        The data type of each operand that is a NumPy array, the type of each other one.
    nin : int
        How many of them are inputs.
    ufunc : callable
        Takes small operands.
    call : object
        ``call.large(operands)`` computes all others; ``call.explain(error, operands)``
        may raise an error of the ufunc's in better words.
    limit : float, optional
        Results of so many elements are large.
    strided : float, optional
        The same where arrays differ in shape, or one is not C-contiguous or aligned.
    """

    __slots__ = ("call", "kinds", "limit", "nin", "strided", "ufunc")

    def __init__(
        self,
        kinds: tuple[Any, ...],
        nin: int,
        ufunc: collections.abc.Callable[..., Any],
        call: Any,
        limit: float = 0,
        strided: float = 0,
    ) -> None:
        self.kinds, self.nin, self.ufunc, self.call = kinds, nin, ufunc, call
        self.limit, self.strided = limit, strided


@final
class Plans:
    """The plans of one function, which what computes learns and its calls follow."""

    __slots__ = ("_plans",)

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def learn(self, plan: Plan) -> None:
        """Follow a plan from now on."""
        plans = self._plans.copy()
        plans.pop(plan.kinds, None)  # as a key: float and float64's data type are equal
        self._plans = {plan.kinds: plan, **dict([*plans.items()][: MOST - 1])}

    def forget(self) -> None:
        """Follow none of them any longer."""
        self._plans = {}

    def find(self, kinds: tuple[Any, ...]) -> Plan | None:
        """Return the plan for operands of some kinds."""
        return self._plans.get(kinds)


class Callable:
    """A function whose calls go by a plan, where there is one, else the general way.

    That is the subclass's ``_call(args, keywords)``.
    """

    plans: Plans

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make it with a table of its own, without plans."""
        self = object.__new__(cls)
        object.__setattr__(self, "plans", Plans())
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Compute; inputs go by place, ``out=`` may."""
        operands = args
        if keywords:
            if len(keywords) > 1 or "out" not in keywords:
                return self._call(args, keywords)
            operands = (*args, keywords["out"])
        kinds: list[Any] = []
        shape, size, straight = None, 1, True
        for x in operands:
            if type(x) is not ndarray:
                kinds.append(type(x))
                continue
            kinds.append(x.dtype)
            straight = straight and x.flags.num & STRAIGHT == STRAIGHT
            if shape is None:
                shape, size = x.shape, x.size
            elif x.shape != shape:
                size, straight = size * x.size, False  # no result is larger
        plan = self.plans.find(tuple(kinds))
        if plan is None or (keywords and len(args) != plan.nin):
            return self._call(args, keywords)
        if size >= (plan.limit if straight else plan.strided):
            return plan.call.large(operands)
        try:
            return plan.ufunc(*operands)
        except (TypeError, ValueError, OverflowError) as error:
            plan.call.explain(error, operands)
            raise

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError
