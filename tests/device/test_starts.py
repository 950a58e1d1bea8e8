"""What runs when a type of device is first used."""

import threading
import time

import pytest

from xdev.device import registry


def test_first_uses_by_several_threads_all_wait_for_what_it_starts():
    done, seen = [], []
    began = threading.Event()

    def slow():
        began.set()
        time.sleep(0.05)
        done.append(True)

    def use():
        registry.start("slow")
        seen.append(list(done))

    registry.when_started("slow", slow)
    first = threading.Thread(target=use)
    first.start()
    began.wait()
    use()
    first.join()
    assert seen == [[True], [True]]


def test_each_callback_runs_once_and_what_an_interrupt_left_at_the_next_use():
    ran, interrupts = [], [KeyboardInterrupt]

    def interrupted():
        if interrupts:
            raise interrupts.pop()
        ran.append("second")
        registry.start("interrupted")  # a callback may use the device itself

    registry.when_started("interrupted", lambda: ran.append("first"))
    registry.when_started("interrupted", interrupted)

    with pytest.raises(KeyboardInterrupt):
        registry.start("interrupted")
    for _ in range(2):
        registry.start("interrupted")
    registry.when_started("interrupted", lambda: ran.append("late"))
    assert ran == ["first", "second", "late"]
