"""Locks of modules: one kind, which a forked child finds free."""

import ast
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import xdev
from xdev._forks import module_lock

PACKAGE = Path(xdev.__file__).parent
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),  # JAX's, if loaded
]


def in_child(call):
    child = os.fork()
    if not child:
        os._exit(not call())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_lock_that_another_thread_holds_is_free_in_a_child():
    lock, held, done = module_lock(), threading.Event(), threading.Event()

    def hold():
        with lock, lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert not lock.acquire(blocking=False)
    assert in_child(lambda: lock.acquire(timeout=5))
    done.set()
    thread.join()


def test_a_lock_that_the_forking_thread_holds_stays_its_own():
    def leave():
        lock.release()
        with ThreadPoolExecutor() as other:
            return other.submit(lock.acquire, timeout=5).result()

    lock = module_lock()
    with lock:
        assert in_child(leave)


def test_modules_have_no_other_locks():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                text = ast.unparse(node)
                assert "Lock()" not in text, f"{path.name}: {text}"
