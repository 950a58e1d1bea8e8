"""The source of random words: a key, and the number of the next call."""

from __future__ import annotations

import operator
import threading
from typing import Any, final

import numpy as np

from xdev.device.choice import shown

NAME = "Philox4x32"
WORDS = 2**64


@final
class Philox:
    """The state behind a generator: all that a call's values depend on.

    Element i of a call is a function of the key, the call's number and i: the same on
    every device, however a call is divided among threads.

    Parameters
    ----------
    seed : None, int, sequence of int, or numpy.random.SeedSequence
        As :func:`numpy.random.default_rng` takes it; None asks the operating system.

    Attributes
    ----------
    seed_seq : numpy.random.SeedSequence
        What the key was made from.

    Raises
    ------
    TypeError, ValueError
        ``seed`` is none of these, or negative.

    Examples
    --------
    >>> bits = Philox(0)
    >>> bits.take()[1], bits.take()[1], bits.state["state"]["call"]
    (0, 1, 2)
    """

    def __init__(self, seed: Any = None) -> None:
        given = isinstance(seed, np.random.SeedSequence)
        self.seed_seq = seed if given else _seed_sequence(seed)
        self._key = int(self.seed_seq.generate_state(1, np.uint64)[0])
        self._call = 0
        self._lock = threading.Lock()  # guards the two above

    def take(self) -> tuple[int, int]:
        """Return the key and the number of a call that is nobody else's."""
        with self._lock:
            call = self._call
            self._call = (call + 1) % WORDS
            return self._key, call

    @property
    def state(self) -> dict[str, Any]:
        """The key and the number of the next call; may be set.

        Raises
        ------
        ValueError
            What is set is the state of another kind of generator.
        """
        with self._lock:
            state = {"key": self._key, "call": self._call}
            return {"bit_generator": NAME, "state": state}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        try:
            name, state = value["bit_generator"], value["state"]
            key, call = (int(state[word]) % WORDS for word in ("key", "call"))
        except (TypeError, KeyError) as error:
            message = "a state is a dict, as bit_generator.state returns it"
            raise ValueError(message) from error
        if name != NAME:
            message = f"state is of {name}, not of {NAME}"
            raise ValueError(message)
        with self._lock:
            self._key, self._call = key, call

    def spawn(self, n_children: int) -> list[Philox]:
        """Return new independent sources, as :meth:`numpy.random.SeedSequence.spawn`.

        Parameters
        ----------
        n_children : int
            How many.

        Raises
        ------
        ValueError, TypeError
            ``n_children`` is negative, or no integer.
        """
        count = operator.index(n_children)
        if count < 0:
            message = f"n_children is {count}: ask for 0 generators or more"
            raise ValueError(message)
        return [Philox(seed) for seed in self.seed_seq.spawn(count)]

    def __getstate__(self) -> dict[str, Any]:
        return {"seed_seq": self.seed_seq, "state": self.state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self.seed_seq = state["seed_seq"]
        self.state = state["state"]


def _seed_sequence(seed: Any) -> np.random.SeedSequence:
    try:
        return np.random.SeedSequence(seed)
    except (TypeError, ValueError) as error:
        message = (
            f"the seed is {shown(seed)} in xdev.random.default_rng(seed, device): use "
            f"None, whole numbers from 0, or a numpy.random.SeedSequence ({error})"
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(message) from error
