"""System tests run in any order of modules, so a module leaves no process: a fixture looks for what it started."""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sda_platform_tests.support.running_platform import eventually

_MODULE = "SYSTEM_TEST_MODULE"
# Helpers of this process's own pools end with it.
_OWN = ("multiprocessing.forkserver", "multiprocessing.resource_tracker")
_PATIENCE_S = 20.0


@pytest.fixture(scope="module", autouse=True)
def _classic_sessions_stay_possible() -> Iterator[None]:
    """PySpark marks a process that had a remote session, by a variable that its children inherit."""
    yield
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


@pytest.fixture(scope="module", autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """What a module started, directly or not, ends with it; a process that does not is killed and named."""
    if not Path("/proc/self/environ").exists():
        yield
        return
    mark = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_MODULE, mark)  # processes inherit it
        yield
    eventually(lambda: not _marked(mark), _PATIENCE_S)
    left = _marked(mark)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert left == {}, "processes outlive the tests that started them"


def _marked(mark: str) -> dict[int, str]:
    """The running processes with this mark in their environment: process id and command."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{_MODULE}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(entry.name)] = command
            except OSError:  # it has ended, or belongs to another user
                continue
    return {pid: command for pid, command in found.items() if not any(own in command for own in _OWN)}
