"""Which objects simulated sensors observe: those they are scheduled for, and a seeded choice of the other visible ones.

Each pair of sensor and object has its own phase, the same in every span of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sda_platform.arrays import IntArray
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.orbits.sensing.visibility import LinesOfSight, comes_near, lines_of_sight
from sda_platform.simulation.randomness import keyed_uniform
from sda_platform.simulation.sky import Sky

_COARSE_STEP_NS: Final = 10_000_000_000


@dataclass(frozen=True)
class ScheduledTime:
    """A sensor observes an object from ``start_time_ns`` until before ``end_time_ns``, if it is visible."""

    source_id: str
    norad_id: int
    start_time_ns: int
    end_time_ns: int


def visible_lines_of_sight(
    sky: Sky,
    sensors: Sequence[Sensor],
    *,
    start_time_ns: int,
    stop_time_ns: int,
    interval_ns: int,
    capacity: int,
    seed: int,
    scheduled: Sequence[ScheduledTime] = (),
) -> LinesOfSight:
    """Lines of sight of every sensor to the objects it observes in [start, stop), one per `interval_ns` and object.

    A sensor observes what it is `scheduled` for. With more than `capacity` visible objects it surveys a seeded choice
    of them for the span.
    """
    sensor, index = surveyed_pairs(sky, sensors, start_time_ns, stop_time_ns, capacity, seed)
    surveyed = len(sensor)
    booked = [each for each in scheduled if each.start_time_ns < stop_time_ns and each.end_time_ns > start_time_ns]
    more_sensor, more_index, booked = _scheduled_pairs(sky, sensors, booked)
    sensor, index = np.concatenate([sensor, more_sensor]), np.concatenate([index, more_index])
    pair, time_ns = _ticks(sky, sensors, sensor, index, start_time_ns, stop_time_ns, interval_ns, seed)
    from_ns = np.array([start_time_ns] * surveyed + [each.start_time_ns for each in booked], dtype=np.int64)
    until_ns = np.array([stop_time_ns] * surveyed + [each.end_time_ns for each in booked], dtype=np.int64)
    inside = (time_ns >= from_ns[pair]) & (time_ns < until_ns[pair])
    # What is both scheduled and surveyed is observed once.
    found = np.stack([time_ns[inside], sensor[pair[inside]], index[pair[inside]]])
    time_ns, sensor, index = np.unique(found, axis=1) if booked else found
    order = np.lexsort((sky.norad_id[index], sensor, time_ns))
    sensor, index, time_ns = sensor[order], index[order], time_ns[order]
    return lines_of_sight(sensors, sensor, index, time_ns, sky.states(index, time_ns))


def surveyed_pairs(
    sky: Sky, sensors: Sequence[Sensor], start_time_ns: int, stop_time_ns: int, capacity: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Pairs (sensor, object) that a survey observes: near the horizon or above it on a coarse grid of the span."""
    times = np.arange(start_time_ns, stop_time_ns + _COARSE_STEP_NS, _COARSE_STEP_NS, dtype=np.int64)
    r_teme_km = sky.coarse(times)
    pairs: list[tuple[IntArray, IntArray]] = []
    for number, sensor in enumerate(sensors):
        rows = np.flatnonzero(comes_near(sensor, r_teme_km, times))
        if len(rows) > capacity:
            preference = keyed_uniform(seed, f"tasking {sensor.source_id}", sky.norad_id[rows].tolist())
            rows = np.sort(rows[np.argsort(preference, kind="stable")[:capacity]])
        pairs.append((np.full(len(rows), number, dtype=np.int64), rows.astype(np.int64)))
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def _scheduled_pairs(
    sky: Sky, sensors: Sequence[Sensor], booked: Sequence[ScheduledTime]
) -> tuple[IntArray, IntArray, list[ScheduledTime]]:
    """Return the pairs (sensor, object) of the times whose sensor and object exist here, and these times."""
    numbers = {sensor.source_id: number for number, sensor in enumerate(sensors)}
    rows = {norad_id: row for row, norad_id in enumerate(sky.norad_id.tolist())}
    known = [each for each in booked if each.source_id in numbers and each.norad_id in rows]
    sensor = np.array([numbers[each.source_id] for each in known], dtype=np.int64)
    return sensor, np.array([rows[each.norad_id] for each in known], dtype=np.int64), known


def _ticks(
    sky: Sky,
    sensors: Sequence[Sensor],
    sensor: IntArray,
    index: IntArray,
    start_time_ns: int,
    stop_time_ns: int,
    interval_ns: int,
    seed: int,
) -> tuple[IntArray, IntArray]:
    """Observation times in [start, stop): every pair has its own phase, the same in every span."""
    keys = [
        f"{sensors[s].source_id}|{norad_id}"
        for s, norad_id in zip(sensor.tolist(), sky.norad_id[index].tolist(), strict=True)
    ]
    return tick_times(keys, start_time_ns, stop_time_ns, interval_ns, seed)


def tick_times(
    keys: Sequence[str], start_time_ns: int, stop_time_ns: int, interval_ns: int, seed: int
) -> tuple[IntArray, IntArray]:
    """(position in `keys`, time_ns) of every tick in [start, stop), each key ticking at its own phase."""
    phase_ns = (keyed_uniform(seed, "phase", keys) * interval_ns).astype(np.int64)
    first_ns = start_time_ns + (phase_ns - start_time_ns) % interval_ns
    count = (stop_time_ns - start_time_ns) // interval_ns + 1
    time_ns = first_ns[:, None] + np.arange(count, dtype=np.int64) * interval_ns
    row = np.broadcast_to(np.arange(len(keys), dtype=np.int64)[:, None], time_ns.shape)
    inside = time_ns < stop_time_ns
    return row[inside], time_ns[inside]
