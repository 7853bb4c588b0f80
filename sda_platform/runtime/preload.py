"""What a run worker needs, imported or loaded once in the forkserver. This starts no thread, session or connection."""

import gc


def load() -> None:
    """Import and load it, without garbage collection: what is loaded here stays."""
    gc.disable()
    import pyspark.sql.connect.session  # noqa: F401
    import sgp4.api  # noqa: F401

    import sda_platform.definitions
    import sda_platform.runtime.run_logs
    import sda_platform.runtime.sqlite_storage  # noqa: F401 - with SQLAlchemy, which Dagster imports for any storage
    from sda_platform.code_version import code_version
    from sda_platform.orbits.kernels import compile_all
    from sda_platform.runtime.run_worker import dagster_command

    # Found here once, it is that of the code which the workers forked from this process run.
    code_version()
    dagster_command()
    # Numba loads its compiler and the compiled functions at the first call: half a second in each run.
    compile_all()
    # What is loaded by now lives as long as a worker. Else each worker's first full collection visits all of it, and
    # copies the memory that it shares with this process: 0.15 s in each run.
    gc.collect()
    gc.freeze()
    gc.enable()


load()
