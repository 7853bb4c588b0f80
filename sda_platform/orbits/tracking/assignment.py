"""Who saw whom, decided for all at once: of readings that must be of different objects no two get the same.

Units are what is decided together: a sensor's own track, or a lone reading. Where no two units of one slot want the
same object, each has its best; where they do, all that hangs together with them is assigned at the least total cost.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sda_platform.orbits.elements import FloatArray, IntArray


@dataclasses.dataclass(frozen=True, eq=False)
class Assignment:
    """The verdict on ``u`` units, each array (u,)."""

    candidate: IntArray
    """The object chosen, or -1."""
    runner_up: IntArray
    """The object of the next least cost, or -1."""
    lead: FloatArray
    """How much more the runner-up would cost; infinite without one."""


def assign(unit: IntArray, candidate: IntArray, cost: FloatArray, slot: IntArray) -> Assignment:
    """Give every unit at most one of its candidates, in each slot every candidate to at most one unit.

    Args:
        unit, candidate, cost: (p,) possible pairs, each once; costs are negative, to have none costs nothing.
        slot: (u,) of each unit; units of one slot exclude each other.
    """
    count = len(slot)
    order = np.lexsort((candidate, cost, unit))
    unit, candidate, cost = unit[order], candidate[order], cost[order]
    first = np.flatnonzero(np.diff(unit, prepend=-1) != 0)
    chosen = np.full(count, -1, dtype=np.int64)
    chosen[unit[first]] = first
    for rows in _contested(unit, candidate, slot, first):
        chosen[unit[rows]] = -1
        for row in _least_cost(rows, unit, _node(candidate, slot[unit]), cost):
            chosen[unit[row]] = row
    return _verdict(unit, candidate, cost, chosen)


def _contested(unit: IntArray, candidate: IntArray, slot: IntArray, first: IntArray) -> list[IntArray]:
    """The pairs of every connected part in which two units want the same object in the same slot."""
    if not len(unit):
        return []
    _, node = np.unique(_node(candidate, slot[unit]), return_inverse=True)
    wanted = np.bincount(node[first], minlength=node.max() + 1)
    if wanted.max() < 2:
        return []
    units = int(unit.max()) + 1
    size = units + int(node.max()) + 1
    graph = coo_array((np.ones(len(unit)), (unit, units + node)), shape=(size, size))
    _, part = connected_components(graph, directed=False)
    torn = np.unique(part[units + np.flatnonzero(wanted > 1)])
    mine = part[unit]
    return [np.flatnonzero(mine == label) for label in torn.tolist()]


def _least_cost(rows: IntArray, unit: IntArray, node: IntArray, cost: FloatArray) -> list[int]:
    """Of the pairs ``rows`` those of the cheapest assignment; every unit may also stay without."""
    units, i = np.unique(unit[rows], return_inverse=True)
    nodes, j = np.unique(node[rows], return_inverse=True)
    table = np.zeros((len(units), len(nodes) + len(units)))
    table[:, : len(nodes)] = 1.0
    table[i, j] = cost[rows]
    row_of = np.full(table.shape, -1, dtype=np.int64)
    row_of[i, j] = rows
    taken = row_of[linear_sum_assignment(table)]
    return [row for row in taken.tolist() if row >= 0]


def _verdict(unit: IntArray, candidate: IntArray, cost: FloatArray, chosen: IntArray) -> Assignment:
    """Chosen pairs and, of each unit with one, the cheapest of its others."""
    count = len(chosen)
    has = chosen >= 0
    verdict = Assignment(np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64), np.full(count, np.inf))
    verdict.candidate[has] = candidate[chosen[has]]
    others = np.flatnonzero(has[unit] & (chosen[unit] != np.arange(len(unit))))
    others = others[np.diff(unit[others], prepend=-1) != 0]
    verdict.runner_up[unit[others]] = candidate[others]
    verdict.lead[unit[others]] = cost[others] - cost[chosen[unit[others]]]
    return verdict


def _node(candidate: IntArray, slot: IntArray) -> IntArray:
    return slot * (int(candidate.max(initial=0)) + 1) + candidate
