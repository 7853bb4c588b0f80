"""Passes of objects that are on almost the same orbit."""

from functools import cache

import numpy as np
import pyarrow as pa

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform_tests.support.scenes import SECOND_NS, catalogue, observe, passes
from sda_platform_tests.support.windows import as_rows

RADAR = "radar-3"
APART = 8
TWINS, NEIGHBOURS = (7, 8), (0, 9)
TOLD_APART = set(range(10)) - {*TWINS}
# In the catalogue, some 850 km up; the radar sees it twice, 105 minutes apart.
PARENT = 763
AREAS_M2_KG = (0.013, 0.02)


@cache
def meetings() -> tuple[int, int]:
    """Middles of the radar's first two passes of the parent."""
    (_, _, first_ns), (_, _, second_ns), *_ = passes(np.array([PARENT]), [sensor_registry()[RADAR]], 3, 3)
    return first_ns, second_ns


@cache
def starts() -> tuple[FloatArray, int]:
    """States (10, 6), TEME, and their time: eight that fly apart at 45 m/s, a twin that leaves one at 5 mm/s, and a
    neighbour at 3 m/s.
    """
    direction = np.random.default_rng(21).normal(size=(APART, 3))
    apart = 0.045 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    speed_km_s = np.vstack([apart, apart[TWINS[0]] + [5e-6, 0.0, 0.0], apart[NEIGHBOURS[0]] + [3e-3, 0.0, 0.0]])
    start_ns = meetings()[0] - 60 * SECOND_NS
    _, r, v = catalogue().at([PARENT], [start_ns])
    return np.hstack([np.repeat(r, len(speed_km_s), axis=0), v + speed_km_s]), start_ns


def true_states(time_ns: IntArray) -> FloatArray:
    """States (10, n, 6), TEME, of all pieces at times after their start."""
    start, start_ns = starts()
    epoch_ns, count = np.full(len(start), start_ns), len(start)
    areas = np.tile(AREAS_M2_KG, (count, 1))
    gcrf = gcrf_of_teme(start, epoch_ns)
    moved = CONSTANT_DYNAMICS.states(gcrf, areas, epoch_ns, np.tile(time_ns, (count, 1)))
    return np.array([teme_of_gcrf(states, time_ns) for states in moved])


def seen(meeting: int, seconds: int = 100) -> pa.Table:
    """The radar's observations of all pieces, every two seconds from a minute before the middle of a pass."""
    rng = np.random.default_rng(meeting)
    time_ns = meetings()[meeting] + np.arange(-50, seconds - 50, 2) * SECOND_NS
    parts = []
    for piece, states in enumerate(true_states(time_ns)):
        made = observe(np.full(len(time_ns), RADAR), time_ns, states[:, :3], states[:, 3:], rng)
        rows = as_rows(made).drop_columns("observation_id")
        ids, track = [f"{piece}-{time}" for time in time_ns.tolist()], [f"{meeting}-{piece}"] * len(time_ns)
        rows = rows.append_column("observation_id", pa.array(ids)).append_column("native_track_id", pa.array(track))
        parts.append(rows.select(OBSERVATION_COLUMNS))
    return pa.concat_tables(parts)
