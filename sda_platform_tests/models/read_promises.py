"""Does what clients of a replicated state saw keep the promise of each read mode? A judge of histories.

Every value is written once, and names its write. What a client must see follows from real time: a write that was
acknowledged before another began is before it in every state.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sda_platform.ground.read_routing import ReadMode
from sda_platform_tests.models.linearizability import Operation, unlinearizable_keys


@dataclass(frozen=True)
class Call:
    """A write, or a read in ``mode``, of a session. ``end_s`` is None where the outcome is unknown."""

    session: str
    mode: ReadMode
    kind: Literal["read", "write"]
    key: str
    value: str | None
    start_s: float
    end_s: float | None
    server: str = ""


def broken_promises(history: Sequence[Call], mode: ReadMode, bound_s: float) -> list[str]:
    """State each read in ``mode`` that breaks its promise; empty: none. Raises Undecided."""
    if mode is ReadMode.LEADER:
        operations = [_operation(each) for each in history if each.kind == "write" or each.mode is mode]
        return [f"{key} is not linearizable" for key in unlinearizable_keys(operations)]
    writes = {each.value: each for each in history if each.kind == "write"}
    by_session: dict[str, list[Call]] = defaultdict(list)
    for each in history:
        if each.mode is mode and each.end_s is not None:
            by_session[each.session].append(each)
    return [
        broken
        for calls in by_session.values()
        for broken in _broken(sorted(calls, key=lambda each: each.start_s), writes, mode, bound_s)
    ]


def _broken(calls: Iterable[Call], writes: dict[str | None, Call], mode: ReadMode, bound_s: float) -> Iterable[str]:
    """The reads of one session that miss a write of which it must know."""
    known_until_s, known = -math.inf, dict[str | None, Call]()
    for call in calls:
        if call.kind == "write":
            if mode is not ReadMode.PREFIX:
                known[call.value] = call
                known_until_s = max(known_until_s, call.start_s)
            continue
        if call.value is not None and call.value not in writes:
            yield f"{call} shows a value that was never written"
            continue
        until_s = call.start_s - bound_s if mode is ReadMode.BOUNDED else known_until_s
        must = {} if mode is ReadMode.BOUNDED else known
        shown = writes.get(call.value)
        for write in writes.values():
            certain = write.value in must or (write.end_s is not None and write.end_s < until_s)
            if certain and write.key == call.key and _is_older(shown, write):
                yield f"{call} misses {write}, known by {must.get(write.value, 'its acknowledgement')}"
        if shown is not None:
            known[shown.value] = call
            known_until_s = max(known_until_s, shown.start_s)


def _is_older(shown: Call | None, write: Call) -> bool:
    """Whether a state that shows ``shown`` is certainly from before ``write``."""
    return shown is None or (shown.end_s is not None and shown.end_s < write.start_s)


def _operation(call: Call) -> Operation:
    return Operation(call.key, call.kind, call.start_s, call.end_s, call.value)
