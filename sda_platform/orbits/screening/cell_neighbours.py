"""Compiled search of a cell list: which objects are near each other.

Near ones are written as indices into both lists, to an array that is replaced by a larger one where it is full.
"""

from typing import Any

from numba import njit

from sda_platform.orbits.screening.cell_list import (
    CELLS,
    LINE,
    LINES,
    NOWHERE,
    OWN_LINE,
    PLANE,
    beyond,
    larger,
    stretch,
)


@njit(cache=True, nogil=True, error_model="numpy")
def near_one(points: Any, cells: Any, begins: Any, farthest_km: Any, near: Any) -> Any:
    """Write the near pairs of one list, each once, to ``near``, or to a larger array; returns it and their number."""
    most, count, square = _compared(cells, begins, OWN_LINE), 0, farthest_km * farthest_km
    if most > len(near):
        near = larger(near, most)
    for place in range(len(points)):
        if cells[place] == NOWHERE:
            break
        for line in range(OWN_LINE, len(LINES)):
            begin, end = stretch((cells[place] + LINES[line]) & (CELLS - 1), 1, begins)
            begin = max(begin, place + 1) if line == OWN_LINE else begin
            count = _written(points, begin, end, points, place, square, near, count)
    return _near_beyond(points, points, cells, begins, OWN_LINE, square, near, count)


@njit(cache=True, nogil=True, error_model="numpy")
def near_two(targets: Any, points: Any, cells: Any, begins: Any, farthest_km: Any, near: Any) -> Any:
    """Do the same for the pairs of a target and a point. ``cells`` are the points', ``begins`` the targets'."""
    most, count, square = _compared(cells, begins, 0), 0, farthest_km * farthest_km
    if most > len(near):
        near = larger(near, most)
    for place in range(len(points)):
        if cells[place] == NOWHERE:
            break
        for line in range(len(LINES)):
            begin, end = stretch((cells[place] + LINES[line]) & (CELLS - 1), 1, begins)
            count = _written(targets, begin, end, points, place, square, near, count)
    return _near_beyond(targets, points, cells, begins, 0, square, near, count)


@njit(cache=True, nogil=True)
def _compared(cells: Any, begins: Any, first_line: Any) -> Any:
    """Count the comparisons of `near_one` or `near_two`, at least: room for all is made before the loops."""
    most = 0
    for cell in cells:
        if cell == NOWHERE:
            break
        for line in range(first_line, len(LINES)):
            begin, end = stretch((cell + LINES[line]) & (CELLS - 1), 1, begins)
            most += end - begin
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def _near_beyond(
    targets: Any, points: Any, cells: Any, begins: Any, first_line: Any, square: Any, near: Any, count: Any
) -> Any:
    """Append the pairs whose cells meet where the numbers repeat: seldom, next to the Earth's centre."""
    if begins[1] == begins[0] and begins[CELLS] == begins[CELLS - 1]:
        return near, count
    for place in range(len(points)):
        if cells[place] == NOWHERE:
            break
        for line in range(first_line, len(LINES)):
            begin, end = beyond((cells[place] + LINES[line]) & (CELLS - 1), 1, begins)
            begin = max(begin, place + 1) if first_line == OWN_LINE and line == OWN_LINE else begin
            if count + end - begin > len(near):
                near = larger(near, count + end - begin)
            count = _written(targets, begin, end, points, place, square, near, count)
    return near, count


@njit(cache=True, nogil=True, inline="always")
def _written(targets: Any, begin: Any, end: Any, points: Any, place: Any, square: Any, near: Any, count: Any) -> Any:
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
def near_far(targets: Any, target_cells: Any, points: Any, begins: Any, span: Any, far_km: Any, near: Any) -> Any:
    """Do the same as `_near` for targets that look ``span`` cells far. ``begins`` are those of the points."""
    count = 0
    square = far_km * far_km
    for at in range(len(targets)):
        if target_cells[at] == NOWHERE:
            continue
        x, y, z = targets[at, 0], targets[at, 1], targets[at, 2]
        for dz in range(-span, span + 1):
            for dy in range(-span, span + 1):
                middle = (target_cells[at] + dy * LINE + dz * PLANE) & (CELLS - 1)
                for part in range(2):
                    begin, end = stretch(middle, span, begins) if part == 0 else beyond(middle, span, begins)
                    if count + end - begin > len(near):
                        near = larger(near, count + end - begin)
                    for place in range(begin, end):
                        dx, dy_, dz_ = points[place, 0] - x, points[place, 1] - y, points[place, 2] - z
                        near[count, 0], near[count, 1] = at, place
                        count += dx * dx + dy_ * dy_ + dz_ * dz_ <= square
    return near, count


@njit(cache=True, nogil=True, error_model="numpy")
def near_few(targets: Any, points: Any, alike: Any, farthest_km: Any, near: Any) -> Any:
    """Do the same as `_near` without cells: every target is compared with every point."""
    count = 0
    square = farthest_km * farthest_km
    for place in range(len(points)):
        x, y, z = points[place, 0], points[place, 1], points[place, 2]
        if count + len(targets) > len(near):
            near = larger(near, count + len(targets))
        for at in range(place + 1 if alike else 0, len(targets)):
            dx, dy, dz = targets[at, 0] - x, targets[at, 1] - y, targets[at, 2] - z
            near[count, 0], near[count, 1] = at, place
            count += dx * dx + dy * dy + dz * dz <= square
    return near, count
