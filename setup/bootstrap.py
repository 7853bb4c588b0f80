#!/usr/bin/env python3
"""Sets this checkout up: ``python3 setup/bootstrap.py``, or ``make setup``.

This file runs under whatever Python the user has, so it keeps to syntax that old ones read. It only finds a
Python that is new enough and hands over to `steps`, in that Python.
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 13)


def usable_python():
    # type: () -> str
    """Path of a Python from OLDEST to NEWEST: this one, else the newest on PATH; '' if none."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return sys.executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which("python3.%d" % minor)
        # A version manager has stubs on PATH for absent versions: only a run shows which exist.
        if found and subprocess.call([found, "-c", ""], stderr=subprocess.DEVNULL) == 0:
            return found
    return ""


def main():
    # type: () -> int
    """Run the steps; the exit code is theirs."""
    python = usable_python()
    if not python:
        sys.stderr.write(
            "sda-platform needs Python %d.%d to %d.%d; this is %d.%d and PATH has no python3.%d.\n"
            "Install one (Debian, Ubuntu: apt install python3.11 python3.11-venv;\n"
            "Fedora: dnf install python3.12; macOS: brew install python@3.12), or set its path:\n"
            "make setup PYTHON=/path/to/python3\n" % (OLDEST + NEWEST + sys.version_info[:2] + (OLDEST[1],))
        )
        return 1
    steps = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps.py")
    try:
        if python == sys.executable:
            return _steps_here(steps)
        return subprocess.call([python, steps] + sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; `make setup` continues from here\n")
        return 130


def _steps_here(steps):
    # type: (str) -> int
    """The quick way: no second interpreter."""
    import runpy

    return int(runpy.run_path(steps)["main"](sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
