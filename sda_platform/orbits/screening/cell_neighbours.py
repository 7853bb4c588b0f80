"""Compiled search of a cell list: which objects are near each other.

The searches write the places of each near target and point to ``near``, or to a larger array; they return it and the
number of pairs.
"""

from typing import Any

import numpy as np
from numba import njit

from sda_platform.orbits.screening.cell_list import (
    CELLS,
    LINE,
    LINES,
    NOWHERE,
    OWN_LINE,
    PLANE,
    enlarged,
    range_across_the_end,
    range_around,
)


@njit(cache=True, nogil=True, error_model="numpy")
def near_by_cell(
    targets: Any, points: Any, cells: Any, begins: Any, first_line: Any, farthest_km: Any, ranges: Any, near: Any
) -> Any:
    """Find the near pairs of a target and a point. ``cells`` are the points', ``begins`` the targets'.

    ``first_line`` is 0, or `OWN_LINE` where both are the same list: each pair is found once. ``ranges`` has room for
    those of `ranges_for`.
    """
    number, most = _ranges_to_compare(cells, begins, first_line, ranges)
    count, square = 0, farthest_km * farthest_km
    if most > len(near):
        near = enlarged(near, most)
    for each in range(number):
        count = _with_near(targets, ranges[each, 1], ranges[each, 2], points, ranges[each, 0], square, near, count)
    return _near_across_the_end(targets, points, cells, begins, first_line, square, near, count)


@njit(cache=True, nogil=True)
def ranges_for(number: Any) -> Any:
    """Return room for the ranges that `near_by_cell` looks at for a ``number`` of points."""
    return np.empty((number * len(LINES) + 1, 3), np.int32)


@njit(cache=True, nogil=True)
def _ranges_to_compare(cells: Any, begins: Any, first_line: Any, ranges: Any) -> Any:
    """Write each point with a range of targets, as far as that is not empty; returns their number and that of targets.

    Half of the ranges are empty, by chance: apart from the comparisons, none of them costs a wrong guess of a branch.
    """
    number, most = 0, 0
    for place in range(len(cells)):
        if cells[place] == NOWHERE:
            break
        for line in range(first_line, len(LINES)):
            begin, end = range_around((cells[place] + LINES[line]) & (CELLS - 1), 1, begins)
            begin = max(begin, place + 1) if first_line == OWN_LINE and line == OWN_LINE else begin
            ranges[number, 0], ranges[number, 1], ranges[number, 2] = place, begin, end
            number += end > begin
            most += max(end - begin, 0)
    return number, most


@njit(cache=True, nogil=True, error_model="numpy")
def _near_across_the_end(
    targets: Any, points: Any, cells: Any, begins: Any, first_line: Any, square: Any, near: Any, count: Any
) -> Any:
    """Append the pairs whose cells meet where the numbers repeat: by the Earth's centre, where hardly an object is."""
    if begins[1] == begins[0] and begins[CELLS] == begins[CELLS - 1]:
        return near, count
    for place in range(len(points)):
        if cells[place] == NOWHERE:
            break
        for line in range(first_line, len(LINES)):
            begin, end = range_across_the_end((cells[place] + LINES[line]) & (CELLS - 1), 1, begins)
            begin = max(begin, place + 1) if first_line == OWN_LINE and line == OWN_LINE else begin
            if count + end - begin > len(near):
                near = enlarged(near, count + end - begin)
            count = _with_near(targets, begin, end, points, place, square, near, count)
    return near, count


@njit(cache=True, nogil=True, inline="always")
def _with_near(targets: Any, begin: Any, end: Any, points: Any, place: Any, square: Any, near: Any, count: Any) -> Any:
    """Write the targets from ``begin`` to ``end`` that are near a point; returns the number of all written.

    Few targets in a range are near: an unconditional write with a conditional count is faster than a branch.
    """
    x, y, z = points[place, 0], points[place, 1], points[place, 2]
    for at in range(begin, end):
        dx, dy, dz = targets[at, 0] - x, targets[at, 1] - y, targets[at, 2] - z
        near[count, 0], near[count, 1] = at, place
        count += dx * dx + dy * dy + dz * dz <= square
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def near_far_objects(targets: Any, points: Any, cells: Any, begins: Any, span: Any, far_km: Any, near: Any) -> Any:
    """Find the near pairs of a target and a point that looks ``span`` cells far. Arguments as `near_by_cell`."""
    count, square = 0, far_km * far_km
    for place in range(len(points)):
        if cells[place] == NOWHERE:
            continue
        for dz in range(-span, span + 1):
            for dy in range(-span, span + 1):
                middle = (cells[place] + dy * LINE + dz * PLANE) & (CELLS - 1)
                for begin, end in (range_around(middle, span, begins), range_across_the_end(middle, span, begins)):
                    if count + end - begin > len(near):
                        near = enlarged(near, count + end - begin)
                    count = _with_near(targets, begin, end, points, place, square, near, count)
    return near, count


@njit(cache=True, nogil=True, error_model="numpy")
def near_by_comparing_all(targets: Any, points: Any, alike: Any, farthest_km: Any, near: Any) -> Any:
    """Find the near pairs of a target and a point without cells; of lists that are ``alike`` each once."""
    count, square = 0, farthest_km * farthest_km
    for place in range(len(points)):
        if count + len(targets) > len(near):
            near = enlarged(near, count + len(targets))
        first = place + 1 if alike else 0
        count = _with_near(targets, first, len(targets), points, place, square, near, count)
    return near, count
