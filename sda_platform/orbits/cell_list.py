"""Pairs that may pass close around an instant: a hashed cell list over all objects, compiled.

Space is cut into cells a little wider than the search radius, and the cells repeat every 64 along each axis, so that
the occupied cells of one (y, z) row are the bits of one machine word and the whole table stays in the first-level
cache. A false match across the repetition costs one look at a distance, nothing more. Positions are single precision
here (half a metre in low orbit, four in geostationary): `SLACK_KM` covers that, and whoever gets the pairs looks again
in double precision.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.orbits.elements import FloatArray, IntArray

SLACK_KM = 0.05

_CELLS_LOG2 = 6
_CELLS = 1 << _CELLS_LOG2
_MASK = _CELLS - 1
_ROWS = _CELLS * _CELLS
_FIRST_PAIRS = 4096
# Bits of a cell and of its two neighbours along x.
_BESIDE = np.array([sum(1 << ((x + shift) % _CELLS) for shift in (-1, 0, 1)) for x in range(_CELLS)], dtype=np.uint64)
# Of slower pairs it is uncertain when they are nearest; they get a little more room.
_SLOW_KM_S = 0.1
_SLOW_ROOM_KM = 1.0

SingleArray = npt.NDArray[np.float32]


def near_pairs(
    primaries: SingleArray,
    secondaries: SingleArray,
    identity: tuple[IntArray, IntArray],
    error_km: tuple[FloatArray, FloatArray],
    basis: tuple[FloatArray, FloatArray],
    *,
    radius_km: float,
    threshold_km: float,
    half_step_s: float,
) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs within ``radius_km`` at a step which, moving straight on, pass within the threshold around that step.

    Args:
        primaries, secondaries: (n, 4, 3) start position, start slope, end position, end slope of one knot interval,
            km; not-finite where SGP4 refused: such an object meets nobody.
        identity: who the rows are. Objects that are in both lists meet once, the lower identity as the primary.
        error_km: by how much each row's positions may be off; a pair may pass farther by both.
        basis: weights (steps, 4) of position (km) and of velocity (km/s).
        half_step_s: how far around a step it answers for.

    Returns:
        primary row, secondary row and step, each (m,), by step, then secondary.
    """
    single = np.float32
    found = _search(
        primaries,
        secondaries,
        identity[0],
        identity[1],
        np.isin(identity[0], identity[1]),
        np.isin(identity[1], identity[0]),
        error_km[0].astype(single),
        error_km[1].astype(single),
        basis[0].astype(single),
        basis[1].astype(single),
        single(radius_km + SLACK_KM),
        single(threshold_km + SLACK_KM),
        single(half_step_s),
    )
    return found[0], found[1], found[2]


@njit(cache=True, nogil=True)
def _search(
    primaries: Any,
    secondaries: Any,
    primary_id: Any,
    secondary_id: Any,
    primary_in_both: Any,
    secondary_in_both: Any,
    primary_error_km: Any,
    secondary_error_km: Any,
    position_basis: Any,
    velocity_basis: Any,
    radius_km: Any,
    threshold_km: Any,
    half_step_s: Any,
) -> Any:
    cells_per_km = np.float32(1.0) / (radius_km * np.float32(1.02))
    occupied = np.zeros(_ROWS, np.uint64)
    first = np.full(_ROWS * _CELLS, -1, np.int32)
    following = np.empty(len(primaries), np.int32)
    targets, target_cells = np.empty((len(primaries), 6), np.float32), np.empty(len(primaries), np.int32)
    points, point_cells = np.empty((len(secondaries), 6), np.float32), np.empty(len(secondaries), np.int32)
    pairs = np.empty((_FIRST_PAIRS, 3), np.int64)
    heads = np.empty(27, np.int32)
    count = 0
    # Of two lists that are one, an object need only meet those before it.
    alike = len(primary_id) == len(secondary_id) and bool(np.all(primary_id == secondary_id))
    for step in range(len(position_basis)):
        _sample(primaries, position_basis[step], velocity_basis[step], cells_per_km, targets, target_cells)
        if alike:
            points, point_cells = targets, target_cells
        else:
            _sample(secondaries, position_basis[step], velocity_basis[step], cells_per_km, points, point_cells)
            for row in range(len(primaries)):
                _enter(row, target_cells[row], first, following, occupied)
        for row in range(len(secondaries)):
            for target in heads[: _heads_around(point_cells[row], first, occupied, heads)]:
                while target >= 0:
                    mine, other = primary_id[target], secondary_id[row]
                    told_once = mine < other or (
                        mine > other and not (primary_in_both[target] and secondary_in_both[row])
                    )
                    reach_km = threshold_km + primary_error_km[target] + secondary_error_km[row]
                    if told_once and _may_pass(targets, target, points, row, radius_km, reach_km, half_step_s):
                        pairs = _with_room(pairs, count)
                        pairs[count, 0], pairs[count, 1], pairs[count, 2] = target, row, step
                        count += 1
                    target = following[target]
            if alike:
                _enter(row, point_cells[row], first, following, occupied)
        _clear(target_cells, first, occupied)
    return pairs[:count].T.copy()


@njit(cache=True, nogil=True)
def _heads_around(centre: Any, first: Any, occupied: Any, heads: Any) -> Any:
    """Write the first rows of the occupied cells around ``centre`` to ``heads``; returns how many there are."""
    count = 0
    if centre < 0:
        return count
    beside = _BESIDE[centre & _MASK]
    y, z = (centre >> _CELLS_LOG2) & _MASK, centre >> (2 * _CELLS_LOG2)
    for around in range(9):
        line = ((y + around % 3 - 1) & _MASK) | (((z + around // 3 - 1) & _MASK) << _CELLS_LOG2)
        bits = occupied[line] & beside
        if bits == 0:
            continue
        for dx in range(-1, 2):
            x = (centre + dx) & _MASK
            if (bits >> np.uint64(x)) & np.uint64(1):
                heads[count] = first[line << _CELLS_LOG2 | x]
                count += 1
    return count


@njit(cache=True, nogil=True, inline="always")
def _with_room(pairs: Any, count: Any) -> Any:
    if count < len(pairs):
        return pairs
    larger = np.empty((2 * count, 3), np.int64)
    larger[:count] = pairs
    return larger


@njit(cache=True, nogil=True, inline="always")
def _clear(cells: Any, first: Any, occupied: Any) -> None:
    for cell in cells:
        if cell >= 0:
            first[cell] = -1
            occupied[cell >> _CELLS_LOG2] = 0


@njit(cache=True, nogil=True, inline="always")
def _enter(row: Any, cell: Any, first: Any, following: Any, occupied: Any) -> None:
    if cell >= 0:
        following[row] = first[cell]
        first[cell] = row
        occupied[cell >> _CELLS_LOG2] |= np.uint64(1) << np.uint64(cell & _MASK)


@njit(cache=True, nogil=True)
def _sample(ends: Any, position_basis: Any, velocity_basis: Any, cells_per_km: Any, states: Any, cells: Any) -> None:
    """States of all rows at one step, and their places in the table; -1 where they have none."""
    for row in range(len(ends)):
        for axis in range(3):
            a, b, c, d = ends[row, 0, axis], ends[row, 1, axis], ends[row, 2, axis], ends[row, 3, axis]
            states[row, axis] = (
                position_basis[0] * a + position_basis[1] * b + position_basis[2] * c + position_basis[3] * d
            )
            states[row, axis + 3] = (
                velocity_basis[0] * a + velocity_basis[1] * b + velocity_basis[2] * c + velocity_basis[3] * d
            )
        if np.isfinite(states[row, 0] + states[row, 1] + states[row, 2]):
            x = np.int32(np.floor(states[row, 0] * cells_per_km)) & _MASK
            y = np.int32(np.floor(states[row, 1] * cells_per_km)) & _MASK
            z = np.int32(np.floor(states[row, 2] * cells_per_km)) & _MASK
            cells[row] = x | y << _CELLS_LOG2 | z << (2 * _CELLS_LOG2)
        else:
            cells[row] = -1


@njit(cache=True, nogil=True, inline="always")
def _may_pass(a: Any, i: Any, b: Any, j: Any, radius_km: Any, reach_km: Any, half_step_s: Any) -> Any:
    dx, dy, dz = b[j, 0] - a[i, 0], b[j, 1] - a[i, 1], b[j, 2] - a[i, 2]
    square = dx * dx + dy * dy + dz * dz
    if square > radius_km * radius_km:
        return False
    vx, vy, vz = b[j, 3] - a[i, 3], b[j, 4] - a[i, 4], b[j, 5] - a[i, 5]
    speed_square = vx * vx + vy * vy + vz * vz
    if speed_square < _SLOW_KM_S * _SLOW_KM_S:
        reach_km += np.float32(_SLOW_ROOM_KM)
    time_s = -(dx * vx + dy * vy + dz * vz) / max(speed_square, np.float32(1e-12))
    within_s = np.float32(2.0) * half_step_s
    time_s = min(max(time_s, -within_s), within_s)
    dx, dy, dz = dx + vx * time_s, dy + vy * time_s, dz + vz * time_s
    return dx * dx + dy * dy + dz * dz <= reach_km * reach_km
