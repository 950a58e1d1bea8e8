"""The documentation's commands for a cluster, run as they stand there."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import xdev
from xdev import distributed

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
CLUSTER = PAGE.partition("\n## A cluster\n")[2].partition("\n## ")[0]
SHELL = re.findall(r"```sh\n(.*?)```", CLUSTER, re.DOTALL)
COMMANDS = [line for block in SHELL for line in block.splitlines()]
(PROGRAM,) = re.findall(r"```python\n(.*?)```", CLUSTER, re.DOTALL)
EACH = 2  # workers of each command, which name more


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def running(command, folder):
    """Run a command of the shell's until the test ends; its files are in a folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path, "TMPDIR": str(folder)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        kill(process.pid)  # to end in order takes ten seconds
        process.wait()


def kill(group):
    """End the processes of a group but those that remove what the others leave."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError, FileNotFoundError):
            words = (process / "cmdline").read_bytes()
            if os.getpgid(int(process.name)) == group and b"tracker" not in words:
                os.kill(int(process.name), signal.SIGKILL)


def test_they_start_workers_that_the_plug_in_sets_up(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # where a command says nothing
    port = free_port()

    def here(text):
        text = text.replace("scheduler:8786", f"127.0.0.1:{port}")
        text = text.replace("--port 8786", f"--port {port}")
        return re.sub(r"--nworkers \d+", f"--nworkers {EACH}", text)

    def seen(dask_worker):
        where = xdev.default_device()
        limited = xdev.memory.get_limit(where) is not None
        return dask_worker.name, os.environ["CUDA_VISIBLE_DEVICES"], limited

    with ExitStack() as stack:
        for command in COMMANDS:
            stack.enter_context(running(here(command), tmp_path))
        program = {}
        exec(here(PROGRAM), program)  # noqa: S102 - as its readers run it
        client = stack.enter_context(program["client"])
        client.wait_for_workers(EACH * (len(COMMANDS) - 1), timeout=120)
        found = client.run(seen)
        status = distributed.memory_status(client)
        total = float(xdev.sum(xdev.arange(1000.0, device="cpu", chunks=10)))

    assert len(COMMANDS) == 3
    assert total == 999 * 500
    assert found.keys() == status.keys()
    assert all(limited for *_, limited in found.values())
    gpus = {name: visible for name, visible, _ in found.values() if visible}
    assert gpus == {f"gpu-{i}": f"{i}" for i in range(EACH)}
