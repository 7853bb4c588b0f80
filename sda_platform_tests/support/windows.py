"""Builders: what radars report of real objects in consecutive fusion windows, as rows of `observations`."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from sda_platform.arrays import FloatArray
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import REPORTED_COLUMNS, ObservationArrays
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    VisiblePairs,
    catalogue,
    changed,
    displaced,
    link_reports,
    observe,
    prior_draw,
    stack,
    visible,
)

WINDOW_NS = 30 * SECOND_NS


@cache
def some_catalogue() -> Propagator:
    """What the radars see now, and every fiftieth of the others: enough to be mistaken for one another."""
    chosen = np.union1d(visible("radar", START_NS, margin_deg=20.0).index, np.arange(0, len(catalogue()), 50))
    return Propagator(catalogue().elements.take(chosen))


def published(propagator: Propagator) -> list[dict[str, Any]]:
    """Its element sets as rows of `orbital_catalog`, without names."""
    columns = {name: getattr(propagator.elements, name).tolist() for name in ElementSets.__dataclass_fields__}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def observed_windows(objects: int, windows: int, readings: int = 8, seed: int = 11) -> list[pa.Table]:
    """Observations of as many objects in each window, in the columns of `observations` with `window_start_ns`."""
    return tracked_windows(objects, windows, readings, seed)[0]


@cache
def tracked_windows(
    objects: int, windows: int, readings: int = 8, seed: int = 11
) -> tuple[list[pa.Table], VisiblePairs, FloatArray]:
    """The same, each radar calling an object by its number here, with the sightings and how the objects deviate."""
    rng = np.random.default_rng(seed)
    every = visible("radar", START_NS, margin_deg=20.0)
    seen = every.take(rng.choice(len(every.index), objects, replace=False))
    deviation = prior_draw(seen.index, seen.time_ns, rng)
    row = np.repeat(np.arange(objects), readings)
    found = []
    for window in range(windows):
        time_ns = START_NS + window * WINDOW_NS + rng.integers(0, WINDOW_NS, len(row))
        r, v = displaced(seen.index[row], time_ns, deviation[row], seen.time_ns[row])
        rows = as_rows(observe(seen.source_id[row], time_ns, r, v, rng))
        found.append(rows.append_column("native_track_id", pa.array([str(number) for number in row.tolist()])))
    return found, seen, deviation


def beacons(objects: int, windows: int, readings: int = 6, seed: int = 12) -> list[pa.Table]:
    """What as many satellites report of themselves in each window."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(visible("radar", START_NS, margin_deg=20.0).index, objects, replace=False)
    start = np.full(objects, START_NS)
    deviation = prior_draw(chosen, start, rng)
    row = np.repeat(np.arange(objects), readings)
    names = np.array([f"isl-{number}" for number in catalogue().elements.norad_id[chosen].tolist()])
    found = []
    for window in range(windows):
        time_ns = START_NS + window * WINDOW_NS + rng.integers(0, WINDOW_NS, len(row))
        r, v = displaced(chosen[row], time_ns, deviation[row], start[row])
        rows = as_rows(link_reports(names[row], time_ns, r, v, rng))
        found.append(rows.append_column("native_track_id", pa.array(names[row].tolist())))
    return found


def as_rows(observations: ObservationArrays) -> pa.Table:
    """The observations as rows of the table, numbered by their order, each in its window."""
    nothing = np.full(len(observations), None)
    columns = {name: nothing if name in ANGLE_REFERENCES else getattr(observations, name) for name in REPORTED_COLUMNS}
    time_ns = observations.sensor_time_ns
    rows = pa.table(
        {
            name: pa.array(values.tolist(), OBSERVATIONS.arrow_schema.field(name).type)
            for name, values in columns.items()
        }
    )
    ids = [f"{time}-{number}" for number, time in enumerate(time_ns.tolist())]
    return rows.append_column("observation_id", pa.array(ids)).append_column(
        "window_start_ns", pa.array(time_ns - time_ns % WINDOW_NS)
    )


def watched_beacons(
    objects: int, windows: int, ahead_ms: float = 0.0, seed: int = 13, kind: str = "optical", spacing: int = 1
) -> list[pa.Table]:
    """What linked satellites report of themselves, and what sensors with clocks ``ahead_ms`` ahead see of them.

    In every ``spacing``-th window. Telescopes' clocks claim to be good to 10 ms, radars' to 1 us.
    """
    rng = np.random.default_rng(seed)
    every = visible(kind, START_NS, margin_deg=20.0 if kind == "radar" else 15.0)
    chosen = every.take(rng.choice(len(every.index), objects, replace=False))
    row = np.repeat(np.arange(objects), 6)
    names = np.array([f"isl-{number}" for number in catalogue().elements.norad_id[chosen.index].tolist()])
    quality = np.full(len(row), "gps_locked" if kind == "radar" else "ntp_synced")
    found = []
    for window in range(windows):
        time_ns = START_NS + window * spacing * WINDOW_NS + rng.integers(0, WINDOW_NS, len(row))
        _, r, v = catalogue().at(chosen.index[row], time_ns)
        sights = observe(chosen.source_id[row], time_ns, r, v, rng)
        late = changed(sights, sensor_time_ns=time_ns + round(ahead_ms * 1e6), clock_quality=quality)
        rows = as_rows(stack(late, link_reports(names[row], time_ns, r, v, rng)))
        found.append(rows.append_column("native_track_id", pa.array([str(n) for n in range(rows.num_rows)])))
    return found
