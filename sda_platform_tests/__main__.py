"""Runs every test: ``python -m sda_platform_tests``.

Pipeline and system tests often wait: for a process that starts, a disk, the daemon's interval. The unit tests run at
the same time with low priority, and so use what the others leave of the processors. They are shown at the end.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

_HERE = Path(__file__).parent
_LOG = _HERE.parent / "build" / "unit-tests.log"
_PYTEST = (sys.executable, "-m", "pytest")
_UNITS = (*_PYTEST, str(_HERE / "unit"), "--numprocesses", "auto", "--maxprocesses", "8")
_OTHERS = (*_PYTEST, str(_HERE / "pipeline"), str(_HERE / "system"), "--numprocesses", "2", "--dist", "loadfile")
_NICENESS = "10"
_LOOK_S = 0.5


def main() -> int:
    """Run all of them; the exit code is 0 if no test failed."""
    _LOG.parent.mkdir(exist_ok=True)
    sys.stdout.write(f"unit tests run beside the others: {_LOG}\n")
    sys.stdout.flush()
    with _LOG.open("wb") as log:
        units = subprocess.Popen(("nice", "-n", _NICENESS, *_UNITS), stdout=log, stderr=log, start_new_session=True)
    # Linux shares the processors among sessions first, and a session has a niceness of its own.
    with contextlib.suppress(OSError):
        Path(f"/proc/{units.pid}/autogroup").write_text(_NICENESS)
    try:
        failed = subprocess.run(_OTHERS, check=False).returncode
        with _LOG.open() as log:
            _show(units, log)
    except KeyboardInterrupt:
        os.killpg(units.pid, signal.SIGKILL)
        return 130
    return failed or units.wait()


def _show(units: subprocess.Popen[bytes], log: IO[str]) -> None:
    """Write what the unit tests have written, and what they write until they end."""
    while True:
        has_ended = units.poll() is not None
        sys.stdout.write(log.read())
        sys.stdout.flush()
        if has_ended:
            return
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
