"""Tracklets: uncorrelated observations of one source that belong together, with the orbit through them.

A radar's own track is one tracklet. A telescope names no tracks: its tracklets are smooth sequences across the sky.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.lake.arrow import arrays
from sda_platform.orbits.determination.angles_only_arcs import angles_only_arcs
from sda_platform.orbits.determination.differential_correction import Correction, first_orbit
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork, sensor_registry
from sda_platform.units import SECOND_NS

_MIN_OBSERVATIONS = 10
# Twice as many observations would improve an orbit by a third, in twice the time; a break-up has thousands.
_MAX_FITTED_OBSERVATIONS = 120
# A telescope's newest observations, an hour of five objects. Each is compared with all of the next half minute,
# which are many in a debris cloud.
_MAX_ANGLES_ONLY = 2_000


@dataclass(frozen=True)
class Tracklet:
    """The observations of one track of one source, and the orbit through them."""

    name: str
    observations: pa.Table
    evidence: pa.Table
    """The observations that the orbit is fitted to: all, or a sufficient number from the whole arc."""
    orbit: Correction
    sensors: SensorNetwork
    """The network that made the observations."""


def uncorrelated(observations: pa.Table, used: pa.ChunkedArray) -> pa.Table:
    """Return the observations of ground sensors that no current fit uses."""
    from_ground = pc.not_equal(observations["source_kind"], "isl")
    return observations.filter(
        pc.and_(from_ground, pc.invert(pc.is_in(observations["observation_id"], used.combine_chunks())))
    )


def tracklets(observations: pa.Table, sensors: SensorNetwork | None = None) -> Iterator[Tracklet]:
    """An orbit for every track with enough observations, in order of name; tracks without an orbit are left out.

    ``sensors``: the network that made the observations; the shipped one if not given.
    """
    sensors = sensor_registry() if sensors is None else sensors
    is_angles_only = pc.equal(observations["source_kind"], "optical")
    tracks = [
        (name, rows, _spread_evenly(rows)) for name, rows in _tracks(observations.filter(pc.invert(is_angles_only)))
    ]
    # All angles-only observations are used: they are few, and the distance depends on every one of them.
    arcs = [(name, rows, rows) for name, rows in _arcs(observations.filter(is_angles_only), sensors)]
    for name, rows, evidence in sorted([*tracks, *arcs], key=lambda part: part[0]):
        try:
            yield Tracklet(name, rows, evidence, first_orbit(observations_of(evidence, sensors)), sensors)
        except NoOrbit:
            continue


def observations_of(rows: pa.Table, sensors: SensorNetwork) -> ObservationArrays:
    """Return rows of `observations`, which ``sensors`` made, as arrays."""
    return ObservationArrays.from_columns(arrays(rows), sensors)


def _spread_evenly(rows: pa.Table) -> pa.Table:
    if rows.num_rows <= _MAX_FITTED_OBSERVATIONS:
        return rows
    return rows.take(pa.array(np.linspace(0, rows.num_rows - 1, _MAX_FITTED_OBSERVATIONS).round().astype(np.int64)))


def _tracks(tracked: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the sources' own tracks, if long enough, by name."""
    names = pc.binary_join_element_wise(tracked["source_id"], pc.fill_null(tracked["native_track_id"], ""), "/")
    named = tracked.append_column("name", names).sort_by([("name", "ascending"), *_IN_TIME])
    _, first, count = np.unique(named["name"].to_numpy(), return_index=True, return_counts=True)
    for start, length in zip(first.tolist(), count.tolist(), strict=True):
        if length >= _MIN_OBSERVATIONS:
            yield named["name"][start].as_py(), named.slice(start, length).drop_columns("name")


def _arcs(angles_only: pa.Table, sensors: SensorNetwork) -> Iterator[tuple[str, pa.Table]]:
    """Smooth arcs, telescope by telescope, named after the telescope and the first observation."""
    ordered = angles_only.sort_by(_IN_TIME)
    observations = observations_of(ordered, sensors)
    measured = prepare(observations)
    for source in np.unique(observations.source_id).tolist():
        rows = np.flatnonzero((observations.source_id == source) & measured.usable)[-_MAX_ANGLES_ONLY:]
        measurements = measured.take(rows)
        elapsed_s = (measurements.time_ns - measurements.time_ns[:1]) / SECOND_NS
        for arc in angles_only_arcs(measurements.direction, elapsed_s, np.sqrt(measurements.variance[:, 1])):
            found = ordered.take(pa.array(rows[arc]))
            yield f"{source}/{found['observation_id'][0].as_py()}", found


_IN_TIME = [("sensor_time_ns", "ascending"), ("observation_id", "ascending")]
