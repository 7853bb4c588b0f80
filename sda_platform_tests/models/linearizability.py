"""Is a history of a register linearizable? A search for an order of its operations that real time allows.

Source: Wing & Gong (1993), with the memory of Lowe (2017): a set of operations done and a value are tried once. A
history of several keys is linearizable when that of each key is (Herlihy & Wing 1990).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

MOST_STATES: Final = 200_000
"""How many states the search tries for one key; each is some operations done and a value."""
READ, WRITE, COMPARE_AND_SET = "read", "write", "compare_and_set"


class Undecided(Exception):
    """The history has too many operations at once, or of unknown outcome, for the search."""


@dataclass(frozen=True)
class Operation:
    """One call of one client. ``end`` is None where the client never learned the outcome: it may have taken effect.

    ``value``: what was read, or is written. ``expected``: of a compare-and-set the value that it needs; ``succeeded``
    whether the answer was that it had it.
    """

    key: str
    kind: Literal["read", "write", "compare_and_set"]
    start: float
    end: float | None
    value: object
    expected: object = None
    succeeded: bool = True


def unlinearizable_keys(history: Iterable[Operation], initial: object = None) -> list[str]:
    """The keys whose operations no order explains, sorted; empty: the history is linearizable. Raises Undecided."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_key[operation.key].append(operation)
    return sorted(key for key, operations in by_key.items() if not is_linearizable(operations, initial))


def is_linearizable(operations: Sequence[Operation], initial: object = None) -> bool:
    """Whether the operations of one key have an order that their times allow and a register explains.

    Raises Undecided after MOST_STATES states.
    """
    ordered = sorted(operations, key=lambda each: each.start)
    must = frozenset(number for number, each in enumerate(ordered) if each.end is not None)
    tried: set[tuple[frozenset[int], object]] = set()
    stack: list[tuple[frozenset[int], object]] = [(frozenset(), initial)]
    while stack:
        done, value = stack.pop()
        if must <= done:
            return True
        if (done, value) in tried:
            continue
        if len(tried) >= MOST_STATES:
            raise Undecided(f"{len(ordered)} operations of {ordered[0].key}: {MOST_STATES:,} states did not decide")
        tried.add((done, value))
        # What ended first must come before everything that began after it.
        horizon = min((ordered[n].end for n in must - done), default=None, key=float)  # type: ignore[arg-type]
        for number, each in enumerate(ordered):
            if number in done:
                continue
            if horizon is not None and each.start > horizon:
                break
            for following in _outcomes(each, value):
                stack.append((done | {number}, following))
    return False


def _outcomes(operation: Operation, value: object) -> list[object]:
    """The values that the register may have after ``operation``; none where its answer is impossible at ``value``."""
    if operation.kind == READ:
        return [value] if operation.end is None or operation.value == value else []
    if operation.kind == WRITE:
        return [operation.value]
    matches = operation.expected == value
    if operation.end is None:
        return [operation.value] if matches else [value]
    if matches != operation.succeeded:
        return []
    return [operation.value] if matches else [value]
