"""Compiled hashed cell list: objects sorted by the cell that they are in, so that neighbours are found in few places.

Neighbours in space are neighbours in memory, and the neighbours along x are one contiguous range. Cells are numbered
along x, then y, then z, with only 64 to a line and 64 lines to a plane, and the numbers repeat. A false match costs one
distance test. Positions are single precision here (half a metre in low orbit, four in geostationary).
"""

from typing import Any

import numpy as np
from numba import njit

LINE, PLANE, CELLS = 64, 64**2, 64**3
# An object without a state sorts behind all cells, which are never searched there.
NOWHERE = CELLS
# From a cell to the middle of each line around it; from the fifth on, its own line and those that come after it.
LINES = np.array([dy * LINE + dz * PLANE for dz in (-1, 0, 1) for dy in (-1, 0, 1)])
OWN_LINE = 4
# Cells are a little wider than what is farthest, for the rounding of single precision.
ROUNDING = np.float32(1.02)


@njit(cache=True, nogil=True)
def empty_places(count: Any) -> Any:
    """Return arrays for ``count`` objects in their places: position (km), velocity (km/s), reach and departure (km);
    cells; rows.
    """
    return np.empty((count, 8), np.float32), np.empty(count, np.int32), np.empty(count, np.int32)


@njit(cache=True, nogil=True, inline="always")
def put_in_place(points: Any, place: Any, sampled: Any, room_km: Any, row: Any) -> None:
    """Write the object of a row to its place."""
    for part in range(6):
        points[place, part] = sampled[part, row]
    points[place, 6], points[place, 7] = room_km[0, row], room_km[1, row]


@njit(cache=True, nogil=True)
def place_by_row(sampled: Any, room_km: Any, points: Any, rows: Any) -> None:
    """Give the objects places in the order of their rows."""
    for row in range(len(rows)):
        put_in_place(points, row, sampled, room_km, row)
        rows[row] = row


@njit(cache=True, nogil=True, inline="always")
def range_around(middle: Any, span: Any, begins: Any) -> Any:
    """Return the range of places in the cells within ``span`` of ``middle``."""
    return begins[max(middle - span, 0)], begins[min(middle + span + 1, CELLS)]


@njit(cache=True, nogil=True, inline="always")
def range_across_the_end(middle: Any, span: Any, begins: Any) -> Any:
    """Return the range of places in those of these cells that are beyond the first or last number, which repeat."""
    if middle < span:
        return begins[CELLS + middle - span], begins[CELLS]
    return begins[0], begins[max(middle + span + 1 - CELLS, 0)]


@njit(cache=True, nogil=True)
def enlarged(rows: Any, needed: Any) -> Any:
    """Return a copy of ``rows`` with room for twice what is ``needed``."""
    found = np.empty((2 * needed, rows.shape[1]), rows.dtype)
    found[: len(rows)] = rows
    return found


@njit(cache=True, nogil=True)
def place_by_cell(
    sampled: Any, room_km: Any, cells: Any, begins: Any, points: Any, point_cells: Any, rows: Any
) -> None:
    """Give the objects places in the order of cells: ``begins[c]`` is the first of cell c, ``rows`` has their rows."""
    begins[:] = 0
    for cell in cells:
        begins[cell] += 1
    total = np.int32(0)
    for cell in range(len(begins)):
        total += begins[cell]
        begins[cell] = total
    for row in range(len(cells) - 1, -1, -1):
        cell = cells[row]
        begins[cell] -= 1
        place = begins[cell]
        put_in_place(points, place, sampled, room_km, row)
        point_cells[place], rows[place] = cell, row


@njit(cache=True, nogil=True)
def sample(ends: Any, position_basis: Any, velocity_basis: Any, cells_per_km: Any, sampled: Any, cells: Any) -> None:
    """Compute positions (km) and velocities (km/s) of all rows at one step, (6, n), and the cells that they are in."""
    number = ends.shape[2]
    for part in range(6):
        basis, axis = (position_basis, part) if part < 3 else (velocity_basis, part - 3)
        a, b, c, d, e, f = basis[0], basis[1], basis[2], basis[3], basis[4], basis[5]
        for row in range(number):
            sampled[part, row] = (
                a * ends[0, axis, row]
                + b * ends[1, axis, row]
                + c * ends[2, axis, row]
                + d * ends[3, axis, row]
                + e * ends[4, axis, row]
                + f * ends[5, axis, row]
            )
    for row in range(number):
        x, y, z = sampled[0, row] * cells_per_km, sampled[1, row] * cells_per_km, sampled[2, row] * cells_per_km
        if np.isfinite(x + y + z):
            cell = np.int32(np.floor(x)) + np.int32(np.floor(y)) * LINE + np.int32(np.floor(z)) * PLANE
            cells[row] = cell & (CELLS - 1)
        else:
            cells[row] = NOWHERE
