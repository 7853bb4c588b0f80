"""Runs a Python program of the platform: ``python -m sda_platform.runtime.program -m MODULE ARGUMENTS``, or a script.

It differs from ``python -m MODULE`` in the garbage collector. The imports make a million objects that stay as long as
the process. By Python's defaults, the collector visits them again and again: that takes a third of the time of a start,
and a second at exit. Stdlib only.
"""

import atexit
import gc
import runpy
import sys
from typing import Final

_ALLOCATIONS: Final = 50_000
"""Between two collections; Python's default is 700."""


def program_command(*arguments: str) -> list[str]:
    """Return the command line of a program: ``-m``, a module and its arguments, or the path of a script and its
    arguments.
    """
    return [sys.executable, "-m", "sda_platform.runtime.program", *arguments]


def collect_seldom() -> None:
    """Collect garbage after many allocations only, and none at exit: the system then frees the memory at once."""
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(_keep_all)


def _keep_all() -> None:
    if "duckdb" not in sys.modules:  # DuckDB would report what is not freed
        gc.freeze()


def main(arguments: list[str]) -> None:
    """Run the program that ``arguments`` name, as Python would."""
    collect_seldom()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
