"""Tracklets: readings of one source that match nothing and belong together, with the orbit through them.

What one radar calls one track is one. A telescope names no tracks: of its sightings those are one that follow one
another smoothly across the sky.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.determination.angles_only_arcs import angles_only_arcs
from sda_platform.orbits.determination.differential_correction import Correction, first_orbit
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork, sensor_registry

_LEAST_DETECTIONS = 10
# Twice as many would make an orbit a third better, in twice the time; of a break-up there are thousands.
_MOST_DETECTIONS = 120
# The newest of a telescope, an hour of five objects: each is compared with all of the next half minute, which a cloud
# of debris makes many.
_MOST_SIGHTINGS = 2_000


@dataclass(frozen=True)
class Tracklet:
    """The readings of one track of one source, and the orbit through them."""

    name: str
    readings: pa.Table
    evidence: pa.Table
    """Those that orbits are of: all, or as many as are enough from the whole arc."""
    orbit: Correction
    sensors: SensorNetwork
    """The network that made the observations."""


def uncorrelated(readings: pa.Table, used: pa.ChunkedArray) -> pa.Table:
    """The readings of sensors on the ground that no standing fit uses."""
    from_ground = pc.not_equal(readings["source_kind"], "isl")
    return readings.filter(pc.and_(from_ground, pc.invert(pc.is_in(readings["observation_id"], used.combine_chunks()))))


def tracklets(readings: pa.Table, sensors: SensorNetwork | None = None) -> Iterator[Tracklet]:
    """An orbit for every track with enough observations, in order of name; tracks without an orbit are left out.

    ``sensors``: the network that made the observations; the shipped one if not given.
    """
    sensors = sensor_registry() if sensors is None else sensors
    is_angles_only = pc.equal(readings["source_kind"], "optical")
    tracks = [(name, rows, _spread_evenly(rows)) for name, rows in _tracks(readings.filter(pc.invert(is_angles_only)))]
    # Of sightings all: they are few, and how far away an object is takes every one of them.
    arcs = [(name, rows, rows) for name, rows in _arcs(readings.filter(is_angles_only), sensors)]
    for name, rows, evidence in sorted([*tracks, *arcs], key=lambda part: part[0]):
        try:
            yield Tracklet(name, rows, evidence, first_orbit(observations_of(evidence, sensors)), sensors)
        except NoOrbit:
            continue


def observations_of(rows: pa.Table, sensors: SensorNetwork) -> ObservationArrays:
    """Rows of `observations`, which ``sensors`` made, as arrays."""
    return ObservationArrays.from_columns(arrays(rows), sensors)


def _spread_evenly(rows: pa.Table) -> pa.Table:
    if rows.num_rows <= _MOST_DETECTIONS:
        return rows
    return rows.take(pa.array(np.linspace(0, rows.num_rows - 1, _MOST_DETECTIONS).round().astype(np.int64)))


def _tracks(detections: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """What the sources themselves call a track, long enough, by name."""
    names = pc.binary_join_element_wise(detections["source_id"], pc.fill_null(detections["native_track_id"], ""), "/")
    named = detections.append_column("name", names).sort_by([("name", "ascending"), *_IN_TIME])
    _, first, count = np.unique(named["name"].to_numpy(), return_index=True, return_counts=True)
    for start, length in zip(first.tolist(), count.tolist(), strict=True):
        if length >= _LEAST_DETECTIONS:
            yield named["name"][start].as_py(), named.slice(start, length).drop_columns("name")


def _arcs(sightings: pa.Table, sensors: SensorNetwork) -> Iterator[tuple[str, pa.Table]]:
    """What crosses the sky smoothly, telescope by telescope, by the telescope and the first sighting."""
    ordered = sightings.sort_by(_IN_TIME)
    observations = observations_of(ordered, sensors)
    measured = prepare(observations)
    for source in np.unique(observations.source_id).tolist():
        rows = np.flatnonzero((observations.source_id == source) & measured.usable)[-_MOST_SIGHTINGS:]
        looks = measured.take(rows)
        elapsed_s = (looks.time_ns - looks.time_ns[:1]) / NANOSECONDS_PER_SECOND
        for arc in angles_only_arcs(looks.direction, elapsed_s, np.sqrt(looks.variance[:, 1])):
            found = ordered.take(pa.array(rows[arc]))
            yield f"{source}/{found['observation_id'][0].as_py()}", found


_IN_TIME = [("sensor_time_ns", "ascending"), ("observation_id", "ascending")]
