"""What a run worker needs, imported once in the forkserver. Importing starts no thread, session or connection."""

import pyspark.sql.connect.session  # noqa: F401
import sgp4.api  # noqa: F401

import sda_platform.definitions  # noqa: F401
from sda_platform.code_version import code_version
from sda_platform.runtime.run_worker import dagster_command

# Found here once, it is that of the code which the workers forked from this process run.
code_version()
dagster_command()
