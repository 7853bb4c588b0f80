"""Ends all processes of a platform when its supervisor ends, also when it is killed.

Two small programs that the supervisor runs as a script. ``leash`` executes another program, which the kernel kills when
its parent ends (Linux). ``guard`` waits until the supervisor closes its pipe or ends. Then it kills every process with
the platform's mark in its environment. These include descendants that a signal to a process group does not reach. The
module uses the standard library only and imports nothing of this package, so it starts in milliseconds.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "SDA_PLATFORM_ID"
"""The environment variable that identifies a platform's processes."""

_PR_SET_PDEATHSIG = 1
_TIMEOUT_S = 5.0


def leash(parent_pid: int, command: list[str]) -> None:
    """Become ``command``, killed when ``parent_pid`` ends; without kernel support, `guard` kills it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it ended before the kernel had the request
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606


def guard(mark: str) -> None:
    """Wait for the end of standard input, then end everything that carries ``mark``."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    sweep(mark)


def sweep(mark: str) -> int:
    """Kill every process that carries ``mark`` but this one, until none is left; returns how many."""
    killed: set[int] = set()
    deadline = time.monotonic() + _TIMEOUT_S
    while (alive := marked(mark) - {os.getpid()}) and time.monotonic() < deadline:
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(0.05)
    return len(killed)


def marked(mark: str) -> set[int]:
    """Return ids of the running processes of this user whose environment carries ``mark``."""
    wanted = f"{MARK}={mark}".encode()
    if not Path("/proc/self/environ").exists():
        return _marked_by_ps(wanted)
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
            except OSError:  # it has ended, or belongs to another user
                continue
    return found


def _marked_by_ps(wanted: bytes) -> set[int]:
    listing = subprocess.run(["ps", "axeww", "-o", "pid=,command="], capture_output=True, check=False).stdout
    found = (re.match(rb"\s*(\d+)", line) for line in listing.splitlines() if wanted in line.split())
    return {int(match[1]) for match in found if match}


if __name__ == "__main__":
    if sys.argv[1] == "leash":
        leash(int(sys.argv[2]), sys.argv[3:])
    else:
        guard(sys.argv[2])
