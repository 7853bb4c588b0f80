"""How a landing zone appears in Dagster: an asset that partners fill, and that a sensor watches."""

from collections.abc import Iterable

import dagster as dg

from sda_platform.lake.table import Table
from sda_platform.orchestration.jobs import Job


def zone_key(feed: str) -> dg.AssetKey:
    """The asset key under which a zone's arrivals and clearings are reported."""
    return dg.AssetKey(["landing", feed])


def landing_sensor_name(job: Job) -> str:
    """The sensor that starts ``job`` when segments wait in the zones of its tables."""
    return f"{job.name}_landing"


def zone_asset(
    feed: str, table: Table, job: Job, contents: str, *, deps: Iterable[dg.AssetKey] = (), **promises: object
) -> dg.AssetSpec:
    """The zone of ``feed``, whose segments ``table`` consumes in a run of ``job``.

    ``contents`` describes the landed files in whole sentences; ``promises`` are those of the source.
    ``deps`` are the external assets that send it.
    """
    return dg.AssetSpec(
        zone_key(feed),
        deps=deps,
        group_name=table.group,
        description=f"{contents} They wait for {table.name}; the sensor {landing_sensor_name(job)} starts its run.",
        kinds={"file"},
        metadata=promises,
    )
