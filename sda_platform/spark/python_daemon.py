"""The process from which Spark forks its Python workers, with the numeric libraries already loaded.

Spark starts it as ``spark.python.daemon.module``, one per session, and lets an idle worker go after a minute.
A worker forked from here starts in milliseconds, where a plain one would import numpy, pandas, pyarrow, scipy
and sgp4 for seconds. Only imports happen before the fork: no open file, no random state, and no thread but
that of Arrow's allocator, which is made for forking.
"""

import gc
import importlib
import os
import sys
from importlib.machinery import PathFinder

# One thread per worker: Spark already runs a worker per core, and a BLAS thread pool does not survive a fork.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

PRELOADED = (
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pandas",
    "scipy.spatial",
    "sgp4.api",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "pyspark.worker",
)
_ARCHIVES = (".zip", ".jar")


def leave_archives_out() -> None:
    """Import from directories alone, if they hold PySpark.

    Spark puts its own archives on the path of its workers, with a jar of thousands of classes. A worker would read
    their tables of contents anew for each task.
    """
    directories = [entry for entry in sys.path if not entry.endswith(_ARCHIVES)]
    if PathFinder.find_spec("pyspark", directories) is not None:
        sys.path[:] = directories
        sys.path_importer_cache.clear()


def preload() -> list[str]:
    """Import what the workers need; returns the names that are not installed here."""
    missing = []
    gc.disable()
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    # Objects loaded so far exist as long as the daemon: the garbage collectors of its forks must not touch (copy) them.
    gc.collect()
    gc.freeze()
    gc.enable()
    return missing


def main() -> None:
    """Preload, then become PySpark's own daemon."""
    leave_archives_out()
    preload()
    from pyspark import daemon

    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
