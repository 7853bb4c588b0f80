"""Pairs of objects that may pass close around an instant, by cells (`cell_list`).

Each object has a reach: an upper bound of its distance from the sampled position until the next sample applies. Two
objects can pass within the threshold only if they are no farther apart than the threshold plus both reaches. The
widest such distance is the width of a cell, so that candidates are in neighbouring cells. The few objects of largest
reach would widen all cells: where one list is searched in itself, they look further than the next cell instead.

`SLACK_KM` covers the rounding of single precision, and the caller tests the pairs again in double precision.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.screening.cell_list import (
    NOWHERE,
    OWN_LINE,
    ROUNDING,
    empty_places,
    enlarged,
    place_by_cell,
    place_by_row,
    put_in_place,
    sample,
)
from sda_platform.orbits.screening.cell_neighbours import (
    near_by_cell,
    near_by_comparing_all,
    near_far_objects,
    ranges_for,
)

SLACK_KM = 0.05

# Of one list, the cells are as wide as 99 of 100 objects need.
_ORDINARY_SHARE = 0.99
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
        ends: (6, 3, n) position, slope and curvature at the start of a knot interval, then at its end, km; not finite
            where SGP4 rejected the object, which is then in no pair.
        identity: object identities, each once per list. Objects that are in both lists are paired once.
        reach_km: bound of each row's distance from its sampled position within half a step.
        error_km: bound of each row's departure from straight motion; a pair may pass farther by both.
        basis: weights (steps, 6) of position (km) and of velocity (km/s).
        half_step_s: half the span that a step covers.

    Returns:
        primary row, secondary row and step, each (m,), by step.
    """
    single = np.float32
    rooms = [np.stack(room).astype(single) for room in zip(reach_km, error_km, strict=True)]
    near_km = threshold_km + SLACK_KM
    largest_km = [float(reach.max(initial=0.0)) for reach in reach_km]
    steps = basis[0].astype(single), basis[1].astype(single), single(near_km), single(half_step_s)
    if np.array_equal(*identity):
        ordinary_km = float(np.quantile(reach_km[0], _ORDINARY_SHARE)) if len(reach_km[0]) else 0.0
        far = np.flatnonzero(reach_km[0] > ordinary_km)
        width_km = near_km + 2 * ordinary_km
        found = _search_one(
            ends[0],
            rooms[0],
            far,
            single(width_km),
            single(width_km - ordinary_km + largest_km[0]),
            single(near_km + 2 * largest_km[0]),
            *steps,
        )
    else:
        both = np.isin(identity[0], identity[1]), np.isin(identity[1], identity[0])
        farthest_km = single(near_km + sum(largest_km))
        found = _search_two(
            ends[0], ends[1], rooms[0], rooms[1], identity[0], identity[1], both[0], both[1], farthest_km, *steps
        )
    return found[0], found[1], found[2]


@njit(cache=True, nogil=True, error_model="numpy")
def _search_one(
    ends: Any,
    room_km: Any,
    far: Any,
    width_km: Any,
    far_km: Any,
    farthest_km: Any,
    position_basis: Any,
    velocity_basis: Any,
    near_km: Any,
    half_step_s: Any,
) -> Any:
    """Search one list in itself. ``far`` are rows of larger reach, which may be near others within ``far_km``, and each
    other within ``farthest_km``; the others may be near each other within ``width_km``.
    """
    number = ends.shape[2]
    cells_per_km = np.float32(1.0) / (width_km * ROUNDING)
    span = np.int64(np.ceil(far_km / width_km))
    begins = np.empty(NOWHERE + 2, np.int32)
    sampled, cells = np.empty((6, number), np.float32), np.empty(number, np.int32)
    points, point_cells, rows = empty_places(number)
    far_points, far_cells, far_rows = empty_places(len(far))
    far_rows[:] = far
    ranges = ranges_for(number)
    near, pairs, count = np.empty((_FIRST_PAIRS, 2), np.int32), np.empty((_FIRST_PAIRS, 3), np.int64), 0
    for step in range(len(position_basis)):
        sample(ends, position_basis[step], velocity_basis[step], cells_per_km, sampled, cells)
        for place in range(len(far)):
            row = far[place]
            put_in_place(far_points, place, sampled, room_km, row)
            far_cells[place] = cells[row]
            cells[row] = NOWHERE
        place_by_cell(sampled, room_km, cells, begins, points, point_cells, rows)
        near, found = near_by_cell(points, points, point_cells, begins, OWN_LINE, width_km, ranges, near)
        pairs, count = _passing(near, found, points, rows, points, rows, near_km, half_step_s, step, pairs, count)
        near, found = near_far_objects(points, far_points, far_cells, begins, span, far_km, near)
        pairs, count = _passing(
            near, found, points, rows, far_points, far_rows, near_km, half_step_s, step, pairs, count
        )
        near, found = near_by_comparing_all(far_points, far_points, True, farthest_km, near)
        pairs, count = _passing(
            near, found, far_points, far_rows, far_points, far_rows, near_km, half_step_s, step, pairs, count
        )
    return pairs[:count].T.copy()


@njit(cache=True, nogil=True, error_model="numpy")
def _search_two(
    primaries: Any,
    secondaries: Any,
    primary_room_km: Any,
    secondary_room_km: Any,
    primary_id: Any,
    secondary_id: Any,
    primary_in_both: Any,
    secondary_in_both: Any,
    farthest_km: Any,
    position_basis: Any,
    velocity_basis: Any,
    near_km: Any,
    half_step_s: Any,
) -> Any:
    """Search one list in another; objects of both may be near each other within ``farthest_km``."""
    cells_per_km = np.float32(1.0) / (farthest_km * ROUNDING)
    begins = np.empty(NOWHERE + 2, np.int32)
    sampled = np.empty((6, max(primaries.shape[2], secondaries.shape[2])), np.float32)
    cells = np.empty(sampled.shape[1], np.int32)
    targets, target_cells, target_rows = empty_places(primaries.shape[2])
    points, point_cells, point_rows = empty_places(secondaries.shape[2])
    near, pairs, count = np.empty((_FIRST_PAIRS, 2), np.int32), np.empty((_FIRST_PAIRS, 3), np.int64), 0
    ranges, few = ranges_for(len(points)), len(targets) <= _FEW
    for step in range(len(position_basis)):
        position, velocity = position_basis[step], velocity_basis[step]
        sample(secondaries, position, velocity, cells_per_km, sampled, cells)
        if few:  # both stay in their order
            place_by_row(sampled, secondary_room_km, points, point_rows)
            sample(primaries, position, velocity, cells_per_km, sampled, cells)
            place_by_row(sampled, primary_room_km, targets, target_rows)
            near, found = near_by_comparing_all(targets, points, False, farthest_km, near)
        else:
            place_by_cell(sampled, secondary_room_km, cells[: len(points)], begins, points, point_cells, point_rows)
            sample(primaries, position, velocity, cells_per_km, sampled, cells)
            place_by_cell(sampled, primary_room_km, cells[: len(targets)], begins, targets, target_cells, target_rows)
            near, found = near_by_cell(targets, points, point_cells, begins, 0, farthest_km, ranges, near)
        first = count
        pairs, count = _passing(
            near, found, targets, target_rows, points, point_rows, near_km, half_step_s, step, pairs, count
        )
        kept = first
        for pair in range(first, count):
            target, row = pairs[pair, 0], pairs[pair, 1]
            mine, other = primary_id[target], secondary_id[row]
            # Of two objects that are in both lists, the lower identity is reported as the primary, once.
            if mine != other and not (mine > other and primary_in_both[target] and secondary_in_both[row]):
                pairs[kept] = pairs[pair]
                kept += 1
        count = kept
    return pairs[:count].T.copy()


@njit(cache=True, nogil=True, error_model="numpy")
def _passing(
    near: Any,
    found: Any,
    targets: Any,
    target_rows: Any,
    points: Any,
    point_rows: Any,
    near_km: Any,
    half_step_s: Any,
    step: Any,
    pairs: Any,
    count: Any,
) -> Any:
    """Append those of the ``found`` near ones to ``pairs`` that may pass; returns it, or a larger array, and its
    number.
    """
    for candidate in range(found):
        at, place = near[candidate, 0], near[candidate, 1]
        if _may_pass(targets, at, points, place, near_km, half_step_s):
            if count == len(pairs):
                pairs = enlarged(pairs, count + 1)
            pairs[count, 0], pairs[count, 1], pairs[count, 2] = target_rows[at], point_rows[place], step
            count += 1
    return pairs, count


@njit(cache=True, nogil=True, inline="always")
def _may_pass(a: Any, at: Any, b: Any, place: Any, near_km: Any, half_step_s: Any) -> Any:
    dx, dy, dz = b[place, 0] - a[at, 0], b[place, 1] - a[at, 1], b[place, 2] - a[at, 2]
    reach_km = near_km + a[at, 6] + b[place, 6]
    is_within = dx * dx + dy * dy + dz * dz <= reach_km * reach_km
    vx, vy, vz = b[place, 3] - a[at, 3], b[place, 4] - a[at, 4], b[place, 5] - a[at, 5]
    speed_square = max(vx * vx + vy * vy + vz * vz, np.float32(1e-12))
    time_s = -(dx * vx + dy * vy + dz * vz) / speed_square
    time_s = min(max(time_s, -half_step_s), half_step_s)
    dx, dy, dz = dx + vx * time_s, dy + vy * time_s, dz + vz * time_s
    miss_km = near_km + a[at, 7] + b[place, 7]
    # Without a branch: a wrong guess of it costs more than the rest.
    return is_within & (dx * dx + dy * dy + dz * dz <= miss_km * miss_km)
