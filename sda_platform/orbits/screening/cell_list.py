"""Compiled hashed cell list: pairs of objects that may pass close around an instant.

Each object has a reach: an upper bound of its distance from the sampled position until the next sample applies. Two
objects can pass within the threshold only if they are no farther apart than the threshold plus both reaches. The
widest such distance is the width of a cell, so that candidates are in neighbouring cells.

At every step the objects are sorted by cell, so that neighbours in space are neighbours in memory. The neighbours along
x are one contiguous range. Cells are numbered along x, then y, then z, with only 64 to a line and 64 lines to a plane,
and the numbers repeat. A false match costs one distance test. Positions are single precision here (half a metre in low
orbit, four in geostationary): `SLACK_KM` covers that, and the caller tests the pairs again in double precision.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray, IntArray

SLACK_KM = 0.05

_LINE, _PLANE, _CELLS = 64, 64**2, 64**3
# An object without a state sorts behind all cells, which are never searched there.
_NOWHERE = _CELLS
# From a cell to the middle of each line around it; from the fifth on, its own line and those that come after it.
_LINES = np.array([dy * _LINE + dz * _PLANE for dz in (-1, 0, 1) for dy in (-1, 0, 1)])
_OWN_LINE = 4
_FIRST_PAIRS = 4096
# So few primaries are compared with every secondary: to sort those by cell takes longer.
_FEW = 64

SingleArray = npt.NDArray[np.float32]


def near_pairs(
    ends: tuple[SingleArray, SingleArray],
    identity: tuple[IntArray, IntArray],
    reach_km: tuple[FloatArray, FloatArray],
    error_km: tuple[FloatArray, FloatArray],
    basis: tuple[FloatArray, FloatArray],
    *,
    threshold_km: float,
    half_step_s: float,
) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs within reach of each other at a step that, in straight motion, pass within the threshold around that
    step.

    The first four arguments have two lists each, of the primaries and of the secondaries.

    Args:
        ends: (n, 4, 3) start position, start slope, end position, end slope of one knot interval, km; not finite
            where SGP4 rejected the object, which is then in no pair.
        identity: object identities, each once per list. Objects that are in both lists are paired once.
        reach_km: bound of each row's distance from its sampled position within half a step.
        error_km: bound of each row's departure from straight motion; a pair may pass farther by both.
        basis: weights (steps, 4) of position (km) and of velocity (km/s).
        half_step_s: half the span that a step covers.

    Returns:
        primary row, secondary row and step, each (m,), by step.
    """
    single = np.float32
    rooms = [np.stack(room, axis=-1).astype(single) for room in zip(reach_km, error_km, strict=True)]
    farthest_km = threshold_km + SLACK_KM + sum(float(reach.max(initial=0.0)) for reach in reach_km)
    found = _search(
        ends[0],
        ends[1],
        rooms[0],
        rooms[1],
        *identity,
        np.isin(identity[0], identity[1]),
        np.isin(identity[1], identity[0]),
        basis[0].astype(single),
        basis[1].astype(single),
        single(farthest_km),
        single(threshold_km + SLACK_KM),
        single(half_step_s),
    )
    return found[0], found[1], found[2]


@njit(cache=True, nogil=True, error_model="numpy")
def _search(
    primaries: Any,
    secondaries: Any,
    primary_room_km: Any,
    secondary_room_km: Any,
    primary_id: Any,
    secondary_id: Any,
    primary_in_both: Any,
    secondary_in_both: Any,
    position_basis: Any,
    velocity_basis: Any,
    farthest_km: Any,
    threshold_km: Any,
    half_step_s: Any,
) -> Any:
    # A little wider than what is farthest, for the rounding of single precision.
    cells_per_km = np.float32(1.0) / (farthest_km * np.float32(1.02))
    begins = np.empty(_NOWHERE + 2, np.int32)
    targets, target_cells, target_rows = _places(len(primaries))
    points, point_cells, point_rows = _places(len(secondaries))
    near, pairs, count = np.empty((_FIRST_PAIRS, 2), np.int32), np.empty((_FIRST_PAIRS, 3), np.int64), 0
    # Of two lists that are one, an object meets those after it.
    alike = len(primary_id) == len(secondary_id) and bool(np.all(primary_id == secondary_id))
    few = not alike and len(primaries) <= _FEW
    if few:  # they stay in their order
        target_rows[:], point_rows[:] = np.arange(len(target_rows)), np.arange(len(point_rows))
    for step in range(len(position_basis)):
        _sample(secondaries, position_basis[step], velocity_basis[step], cells_per_km, points, point_cells)
        if few:
            _sample(primaries, position_basis[step], velocity_basis[step], cells_per_km, targets, target_cells)
            near, candidates = _near_few(targets, points, farthest_km, near)
        else:
            _sort(points, point_cells, begins, point_rows)
            if alike:
                targets, target_cells, target_rows = points, point_cells, point_rows
            else:
                _sample(primaries, position_basis[step], velocity_basis[step], cells_per_km, targets, target_cells)
                _sort(targets, target_cells, begins, target_rows)
            near, candidates = _near(targets, points, point_cells, begins, alike, farthest_km, near)
        for candidate in range(candidates):
            at, place = near[candidate, 0], near[candidate, 1]
            target, row = target_rows[at], point_rows[place]
            mine, other = primary_id[target], secondary_id[row]
            # Of two objects that are in both lists, the lower identity is reported as the primary, once.
            if not alike and (mine == other or (mine > other and primary_in_both[target] and secondary_in_both[row])):
                continue
            near_km = threshold_km + primary_room_km[target, 0] + secondary_room_km[row, 0]
            miss_km = threshold_km + primary_room_km[target, 1] + secondary_room_km[row, 1]
            if _may_pass(targets[at], points[place], near_km, miss_km, half_step_s):
                pairs = _with_room(pairs, count, 1)
                pairs[count, 0], pairs[count, 1], pairs[count, 2] = target, row, step
                count += 1
    return pairs[:count].T.copy()


@njit(cache=True, nogil=True)
def _places(count: Any) -> Any:
    return np.empty((count, 6), np.float32), np.empty(count, np.int32), np.empty(count, np.int32)


@njit(cache=True, nogil=True, error_model="numpy")
def _near(targets: Any, points: Any, point_cells: Any, begins: Any, alike: Any, farthest_km: Any, near: Any) -> Any:
    """Write near target and point indices to ``near``, or to a larger array; returns it and their number.

    Few targets in a range are near: an unconditional write with a conditional count is faster than a branch.
    """
    count = 0
    square = farthest_km * farthest_km
    for place in range(len(points)):
        if point_cells[place] == _NOWHERE:
            break
        x, y, z = points[place, 0], points[place, 1], points[place, 2]
        for line in range(_OWN_LINE if alike else 0, len(_LINES)):
            after = place if alike and line == _OWN_LINE else -1
            middle = (point_cells[place] + _LINES[line]) & (_CELLS - 1)
            for part in range(1 if 0 < middle < _CELLS - 1 else 2):
                begin, end = _stretch(middle, part, begins)
                near = _with_room(near, count, end - begin)
                for at in range(max(begin, after + 1), end):
                    dx, dy, dz = targets[at, 0] - x, targets[at, 1] - y, targets[at, 2] - z
                    near[count, 0], near[count, 1] = at, place
                    count += dx * dx + dy * dy + dz * dz <= square
    return near, count


@njit(cache=True, nogil=True, error_model="numpy")
def _near_few(targets: Any, points: Any, farthest_km: Any, near: Any) -> Any:
    """Do the same as `_near` without cells: every target is compared with every point."""
    count = 0
    square = farthest_km * farthest_km
    for place in range(len(points)):
        x, y, z = points[place, 0], points[place, 1], points[place, 2]
        near = _with_room(near, count, len(targets))
        for at in range(len(targets)):
            dx, dy, dz = targets[at, 0] - x, targets[at, 1] - y, targets[at, 2] - z
            near[count, 0], near[count, 1] = at, place
            count += dx * dx + dy * dy + dz * dz <= square
    return near, count


@njit(cache=True, nogil=True, inline="always")
def _stretch(middle: Any, part: Any, begins: Any) -> Any:
    """Start and end of the objects in the cells next to ``middle``; part 1 is beyond the first or the last number."""
    if part == 0:
        return begins[max(middle - 1, 0)], begins[min(middle + 2, _CELLS)]
    beyond = _CELLS - 1 - middle
    return begins[beyond], begins[beyond + 1]


@njit(cache=True, nogil=True, inline="always")
def _with_room(rows: Any, count: Any, more: Any) -> Any:
    if count + more <= len(rows):
        return rows
    larger = np.empty((2 * (count + more), rows.shape[1]), rows.dtype)
    larger[:count] = rows[:count]
    return larger


@njit(cache=True, nogil=True)
def _sort(states: Any, cells: Any, begins: Any, rows: Any) -> None:
    """Sort by cell: ``begins[c]`` is the start of cell c, ``rows`` the original row of each."""
    begins[:] = 0
    for cell in cells:
        begins[cell] += 1
    total = np.int32(0)
    for cell in range(len(begins)):
        total += begins[cell]
        begins[cell] = total
    for row in range(len(cells) - 1, -1, -1):
        begins[cells[row]] -= 1
        rows[begins[cells[row]]] = row
    states[:] = states[rows]
    cells[:] = cells[rows]


@njit(cache=True, nogil=True)
def _sample(ends: Any, position_basis: Any, velocity_basis: Any, cells_per_km: Any, states: Any, cells: Any) -> None:
    """States of all rows at one step, and the cells they are in."""
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
            x, y, z = states[row, 0] * cells_per_km, states[row, 1] * cells_per_km, states[row, 2] * cells_per_km
            number = np.int64(np.floor(x)) + np.int64(np.floor(y)) * _LINE + np.int64(np.floor(z)) * _PLANE
            cells[row] = number & (_CELLS - 1)
        else:
            cells[row] = _NOWHERE


@njit(cache=True, nogil=True, inline="always")
def _may_pass(a: Any, b: Any, near_km: Any, miss_km: Any, half_step_s: Any) -> Any:
    dx, dy, dz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    square = dx * dx + dy * dy + dz * dz
    if square > near_km * near_km:
        return False
    vx, vy, vz = b[3] - a[3], b[4] - a[4], b[5] - a[5]
    speed_square = max(vx * vx + vy * vy + vz * vz, np.float32(1e-12))
    time_s = -(dx * vx + dy * vy + dz * vz) / speed_square
    time_s = min(max(time_s, -half_step_s), half_step_s)
    dx, dy, dz = dx + vx * time_s, dy + vy * time_s, dz + vz * time_s
    return dx * dx + dy * dy + dz * dz <= miss_km * miss_km
