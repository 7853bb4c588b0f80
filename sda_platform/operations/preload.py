"""What a run worker needs, imported once in the forkserver. Importing starts no thread, session or connection."""

import dagster._grpc.impl  # noqa: F401
import pyspark.sql.connect.session  # noqa: F401
import sgp4.api  # noqa: F401

import sda_platform.definitions  # noqa: F401
