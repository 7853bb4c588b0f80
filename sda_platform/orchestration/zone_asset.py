"""How a landing zone appears in Dagster: an asset that partners fill, and that a sensor watches."""

from dataclasses import dataclass
from typing import Any

import dagster as dg

from sda_platform.lake.table import Table
from sda_platform.orchestration.jobs import Job


def zone_key(feed: str) -> dg.AssetKey:
    """Return the asset key under which a zone's arrivals and clearings are reported."""
    return dg.AssetKey(["landing", feed])


def landing_sensor_name(job: Job) -> str:
    """Return the sensor that starts ``job`` when segments wait in the zones of its tables."""
    return f"{job.name}_landing"


@dataclass(frozen=True)
class ZoneContents:
    """What partners land in a zone, and what they promise."""

    text: str
    """Describes the landed files in whole sentences."""
    replayable: str
    ordering: str
    delivery: str = "at least once"
    max_lateness_s: float | None = None
    sources: tuple[dg.AssetKey, ...] = ()
    """The external assets that send it."""


def zone_asset(feed: str, contents: ZoneContents, table: Table, job: Job) -> dg.AssetSpec:
    """Return the zone of ``feed``, whose segments ``table`` consumes in a run of ``job``."""
    promises: dict[str, Any] = {
        "replayable": contents.replayable,
        "ordering": contents.ordering,
        "delivery": contents.delivery,
    }
    if contents.max_lateness_s is not None:
        promises["max_lateness_s"] = contents.max_lateness_s
    return dg.AssetSpec(
        zone_key(feed),
        deps=contents.sources,
        group_name=table.group,
        description=f"{contents.text} They wait for {table.name}; the sensor {landing_sensor_name(job)} starts its "
        "run.",
        kinds={"file"},
        metadata=promises,
    )
