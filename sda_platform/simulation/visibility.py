"""Tasking of simulated sensors: a seeded choice of visible objects, each pair with its own phase."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from sda_platform.orbits.elements import IntArray
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.orbits.sensing.visibility import LinesOfSight, comes_near, lines_of_sight
from sda_platform.simulation.randomness import keyed_uniform
from sda_platform.simulation.sky import Sky

_COARSE_STEP_NS: Final = 10_000_000_000


def visible_lines_of_sight(
    sky: Sky,
    sensors: Sequence[Sensor],
    *,
    start_time_ns: int,
    stop_time_ns: int,
    interval_ns: int,
    capacity: int,
    seed: int,
) -> LinesOfSight:
    """Lines of sight of every sensor to the objects it observes in [start, stop), one per `interval_ns` and object.

    A sensor with more than `capacity` visible objects observes a seeded choice of them for the span.
    """
    sensor, index = _candidates(sky, sensors, start_time_ns, stop_time_ns, capacity, seed)
    pair, time_ns = _ticks(sky, sensors, sensor, index, start_time_ns, stop_time_ns, interval_ns, seed)
    sensor, index = sensor[pair], index[pair]
    order = np.lexsort((sky.norad_id[index], sensor, time_ns))
    sensor, index, time_ns = sensor[order], index[order], time_ns[order]
    return lines_of_sight(sensors, sensor, index, time_ns, sky.states(index, time_ns))


def _candidates(
    sky: Sky, sensors: Sequence[Sensor], start_time_ns: int, stop_time_ns: int, capacity: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Pairs (sensor, object) that come near each other's horizon on a coarse grid of the span."""
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
