"""Dagster's code server, whose run workers start in half a second instead of five.

    python -m sda_platform.runtime.code_server -m MODULE -h HOST -p PORT

For every run Dagster starts a new Python that imports the whole platform again (pandera, PySpark, scipy). Here that
new process is forked from one that has done so: a *forkserver*, which holds no threads, sessions or connections, so a
fork of it is as clean as a fresh start. Dagster has no setting for this; its server asks `multiprocessing` for a
"spawn" context, and gets this one. The exact pin of Dagster, and a test, keep that true.
"""

import multiprocessing
import os
import sys
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from typing import Any

from sda_platform.settings import require_known_variables

PRELOADED = ("sda_platform.runtime.preload",)


class _ForkingMultiprocessing:
    """The `multiprocessing` module, except that a context is always the preloaded forkserver's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(multiprocessing, name)

    def get_context(self, _method: str | None = None) -> BaseContext:
        """The forkserver's context, whatever method is asked for."""
        return multiprocessing.get_context("forkserver")


def fork_run_workers() -> None:
    """Make Dagster's server in this process fork its run workers from the preloaded forkserver."""
    from dagster._grpc import server

    from sda_platform.runtime.run_worker import run_worker

    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    setattr(server, "multiprocessing", _ForkingMultiprocessing())  # noqa: B010
    setattr(server, "start_run_in_subprocess", run_worker)  # noqa: B010


def main() -> None:
    """Serve definitions; the arguments are those of `dagster api grpc`."""
    require_known_variables(os.environ)
    fork_run_workers()
    # Now, not at the first run: the imports take their seconds while the engine warms up.
    forkserver.ensure_running()
    from dagster._cli import main as dagster_command

    sys.argv = ["dagster", "api", "grpc", *sys.argv[1:]]
    dagster_command()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
