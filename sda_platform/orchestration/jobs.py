"""The jobs and their pools: one run carries a batch through a whole chain, in one process, in topological order.

A pool is what excludes runs from each other and what has a warm Spark session; its name is a run's tag.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from sda_platform.lake.table import Table
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG


@dataclass(frozen=True)
class Job:
    """A job that materializes tables, and the pool in which its runs take turns."""

    name: str
    pool: str
    description: str


OBSERVATIONS_TO_ALERTS = Job(
    "observations_to_alerts",
    Pool.ALERTS,
    "Observations from the landing zones to delivered alerts, in one run.",
)
CATALOG_TO_ALERTS = Job(
    "catalog_to_alerts",
    Pool.CATALOG,
    "Element sets and received CDMs from their landing zones, through screening, to delivered alerts, in one run.",
)
ALERTS_TO_SUBSCRIBER = Job(
    "alerts_to_subscriber",
    Pool.DELIVERY,
    "Alerts that waited for the subscriber, in a run of their own.",
)
ORBIT_DETERMINATION = Job(
    "orbit_determination",
    Pool.PRODUCTS,
    "Element sets of tracked and of uncatalogued objects, time-tag biases of sensors, and the reports.",
)
SENSOR_TASKING = Job(
    "sensor_tasking", Pool.PRODUCTS, "What should be observed, when each sensor can, and the schedule of the sensors."
)
TELEMETRY_TO_FRAMES = Job(
    "telemetry_to_frames", Pool.MAINTENANCE, "Telemetry frames from their landing zone to their table, in one run."
)
GROUND_SEGMENT = Job(
    "ground_segment",
    Pool.MAINTENANCE,
    "Events of ground commands and uplinks, the state of each command, and membership.",
)
PLATFORM_METRICS = Job(
    "platform_metrics", Pool.MAINTENANCE, "Sampled metrics from their landing zone to their table, in one run."
)
CONJUNCTION_REPORT = dg.AssetKey(["reports", "conjunctions"])
"""Drawn in the job of orbit determination, whose package is below that of conjunctions."""
SCHEDULED_JOBS = (ORBIT_DETERMINATION, SENSOR_TASKING)
"""Jobs over inputs that a schedule starts; unconsumed commits start the others."""
JOBS = (
    OBSERVATIONS_TO_ALERTS,
    CATALOG_TO_ALERTS,
    ALERTS_TO_SUBSCRIBER,
    TELEMETRY_TO_FRAMES,
    GROUND_SEGMENT,
    PLATFORM_METRICS,
    *SCHEDULED_JOBS,
)


def job_over(job: Job, tables: Sequence[Table], others: Sequence[dg.AssetsDefinition] = ()) -> Any:
    """Return the Dagster job that materializes ``tables``, and ``others`` after them, with their checks."""
    return dg.define_asset_job(
        job.name,
        selection=dg.AssetSelection.assets(*(table.name for table in tables), *others),
        run_tags={POOL_TAG: job.pool},
        description=job.description,
        executor_def=dg.in_process_executor,
    )


def upkeep_job(name: str, selection: dg.AssetSelection, description: str) -> Any:
    """Return the Dagster job of assets that the pipeline does not need: it runs in the pool of maintenance."""
    return dg.define_asset_job(
        name,
        selection=selection,
        tags={POOL_TAG: Pool.MAINTENANCE},
        description=description,
        executor_def=dg.in_process_executor,
    )
