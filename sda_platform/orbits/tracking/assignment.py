"""Global assignment of clusters to objects: clusters of one exclusion group never get the same object.

A cluster is a set of observations that is assigned as one: a sensor's own track, or a single observation. Without a
conflict each cluster gets its best candidate. Each connected component with a conflict is assigned at the least total
cost.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sda_platform.arrays import FloatArray, IntArray


@dataclasses.dataclass(frozen=True, eq=False)
class Assignment:
    """The assignment of ``u`` clusters, each array (u,)."""

    candidate: IntArray
    """The assigned object, or -1."""
    runner_up: IntArray
    """The object of the next lower cost rank, or -1."""
    lead: FloatArray
    """Cost of the runner-up less that of the assigned object; infinite without a runner-up."""


def assign(cluster: IntArray, candidate: IntArray, cost: FloatArray, exclusion_group: IntArray) -> Assignment:
    """Assign each cluster at most one candidate, and each candidate at most one cluster per exclusion group.

    Args:
        cluster, candidate, cost: (p,) association hypotheses, each once; costs are negative, no assignment costs
            zero.
        exclusion_group: (u,) of each cluster; clusters of one group exclude each other.
    """
    count = len(exclusion_group)
    order = np.lexsort((candidate, cost, cluster))
    cluster, candidate, cost = cluster[order], candidate[order], cost[order]
    first = np.flatnonzero(np.diff(cluster, prepend=-1) != 0)
    chosen = np.full(count, -1, dtype=np.int64)
    chosen[cluster[first]] = first
    for rows in _contested(cluster, candidate, exclusion_group, first):
        chosen[cluster[rows]] = -1
        for row in _least_cost(rows, cluster, _node(candidate, exclusion_group[cluster]), cost):
            chosen[cluster[row]] = row
    return _with_runner_up(cluster, candidate, cost, chosen)


def _contested(cluster: IntArray, candidate: IntArray, exclusion_group: IntArray, first: IntArray) -> list[IntArray]:
    """Return the hypotheses of every connected component in which two clusters compete for one object."""
    if not len(cluster):
        return []
    _, node = np.unique(_node(candidate, exclusion_group[cluster]), return_inverse=True)
    demand = np.bincount(node[first], minlength=node.max() + 1)
    if demand.max() < 2:
        return []
    clusters = int(cluster.max()) + 1
    size = clusters + int(node.max()) + 1
    graph = coo_array((np.ones(len(cluster)), (cluster, clusters + node)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    contested = np.unique(component[clusters + np.flatnonzero(demand > 1)])
    component_of = component[cluster]
    return [np.flatnonzero(component_of == label) for label in contested.tolist()]


def _least_cost(rows: IntArray, cluster: IntArray, node: IntArray, cost: FloatArray) -> list[int]:
    """Return the least-cost assignment among the hypotheses ``rows``; a cluster may stay unassigned."""
    clusters, i = np.unique(cluster[rows], return_inverse=True)
    nodes, j = np.unique(node[rows], return_inverse=True)
    table = np.zeros((len(clusters), len(nodes) + len(clusters)))
    table[:, : len(nodes)] = 1.0
    table[i, j] = cost[rows]
    row_of = np.full(table.shape, -1, dtype=np.int64)
    row_of[i, j] = rows
    assigned = row_of[linear_sum_assignment(table)]
    return [row for row in assigned.tolist() if row >= 0]


def _with_runner_up(cluster: IntArray, candidate: IntArray, cost: FloatArray, chosen: IntArray) -> Assignment:
    """Return the assigned candidates and, for each, the cheapest alternative of its cluster."""
    count = len(chosen)
    has = chosen >= 0
    verdict = Assignment(np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64), np.full(count, np.inf))
    verdict.candidate[has] = candidate[chosen[has]]
    others = np.flatnonzero(has[cluster] & (chosen[cluster] != np.arange(len(cluster))))
    others = others[np.diff(cluster[others], prepend=-1) != 0]
    verdict.runner_up[cluster[others]] = candidate[others]
    verdict.lead[cluster[others]] = cost[others] - cost[chosen[cluster[others]]]
    return verdict


def _node(candidate: IntArray, exclusion_group: IntArray) -> IntArray:
    return exclusion_group * (int(candidate.max(initial=0)) + 1) + candidate
