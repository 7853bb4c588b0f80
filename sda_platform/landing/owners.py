"""Which process wrote a note, and whether it has ended: the note of a running process is no sign of a kill.

A mark has boot id, process id and start time on Linux, and the process id alone elsewhere. A power loss ends all
processes of a boot, so their notes prove nothing.
"""

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_TIME_FIELD = 22
_FIELD_AFTER_NAME = 3


class Owners:
    """The processes of this machine."""

    def own(self) -> str:
        """Return the mark of this process."""
        return f"{_boot()}/{os.getpid()}/{_started(os.getpid())}"

    def has_ended(self, mark: str) -> bool:
        """Return whether what ``mark`` names ended without a restart of the machine.

        This process carries out one run of a table at a time, so an earlier one of its own has ended.
        """
        if mark == self.own():
            return True
        boot, _, process = mark.partition("/")
        pid, _, started = process.partition("/")
        return boot == _boot() and pid.isdigit() and not _is_running(int(pid), started)


def _boot() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


def _started(pid: int) -> str:
    """When the process started, in clock ticks since the boot; empty if the system does not provide it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The name in parentheses may hold anything.
    return text.rpartition(")")[2].split()[_START_TIME_FIELD - _FIELD_AFTER_NAME]


def _is_running(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(pid) == started
