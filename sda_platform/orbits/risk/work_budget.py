"""A limit on the work of one computation, counted in evaluations: equal inputs give equal answers on any machine."""

from __future__ import annotations


class WorkExhausted(Exception):
    """A computation exhausted its budget without an answer."""


class WorkBudget:
    """Counts evaluations down from ``most_evaluations``.

    The unit is one linearisation of both orbits at one time. A limit in seconds would depend on the machine and its
    load, and a replay would then give other rows.
    """

    def __init__(self, most_evaluations: int) -> None:
        self.most_evaluations = most_evaluations
        self.left = most_evaluations

    def spend(self, evaluations: int) -> None:
        """Spend ``evaluations`` of the budget. Raises WorkExhausted when it is exhausted."""
        self.left -= evaluations
        if self.left < 0:
            raise WorkExhausted(f"more than {self.most_evaluations:,} evaluations")
