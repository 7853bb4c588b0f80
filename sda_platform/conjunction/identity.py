"""The identity of an encounter: the id of an event follows from the pair, the TCA and the kind of orbits.

Time since 1970 is divided into slots. A pair has at most one encounter in a slot, as a rule, because a pair meets at
most twice a revolution. The slot of the TCA names the encounter, so two lakes name it alike, whichever screening found
it first. New element sets move a TCA; two rules keep the id then:

- An encounter continues the known event of its pair whose TCA is nearest, if that is less than half a slot away.
  A withdrawn event is known, too.
- Only an encounter that continues none gets the id of its slot. If the slot's id is taken, the TCA itself names it.

A lake that is built anew therefore gives few events another id. Only those differ whose TCA has crossed the border of a
slot since it was first found: of TCAs that move by d, the share d / slot.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sda_platform.arrays import IntArray
from sda_platform.orbits.elements import ElementSets
from sda_platform.units import HOUR_NS, MINUTE_NS

SLOT_NS = 40 * MINUTE_NS
"""Below half the shortest period there is, 43 minutes: two crossings of the other's plane lie farther apart."""
SLOW_SLOT_NS = 6 * HOUR_NS
"""For pairs of slow, nearly circular orbits, whose TCAs move by minutes and whose encounters lie half a day apart."""
_SLOW_BELOW_REV_PER_DAY = 1.5
_NEARLY_CIRCULAR_BELOW = 0.25
_EVENTS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:conjunction-event:2")

Object = int | str
"""An object by its catalogue number, or as a message designates one without."""
Pair = tuple[Object, Object]


def slots_ns(first: ElementSets, second: ElementSets) -> IntArray:
    """Return the length of the slots, ns (n,), in which the encounters of ``first[i]`` and ``second[i]`` are named."""
    slow = np.ones(len(first.norad_id), dtype=np.bool_)
    for elements in (first, second):
        slow &= elements.mean_motion_rev_per_day < _SLOW_BELOW_REV_PER_DAY
        slow &= elements.eccentricity < _NEARLY_CIRCULAR_BELOW
    return np.where(slow, SLOW_SLOT_NS, SLOT_NS)


def event_ids(pair: Pair, encounters: Sequence[tuple[int, int]], known: Sequence[tuple[int, str]] = ()) -> list[str]:
    """Return the id of each encounter ``(TCA, slot length)``, ns, of a pair, whichever object comes first.

    ``known`` are its events so far, withdrawn ones included, as ``(last TCA, id)``. No id is given twice.
    """
    near = sorted(
        (abs(tca_ns - known_ns), tca_ns, event_id, number)
        for number, (tca_ns, slot_ns) in enumerate(encounters)
        for known_ns, event_id in known
        if 2 * abs(tca_ns - known_ns) < slot_ns
    )
    continued: dict[int, str] = {}
    for *_, event_id, number in near:
        if number not in continued and event_id not in continued.values():
            continued[number] = event_id
    taken = {event_id for _, event_id in known}
    ids = [""] * len(encounters)
    for number in sorted(range(len(encounters)), key=lambda n: encounters[n]):
        tca_ns, slot_ns = encounters[number]
        event_id = continued.get(number) or _named(pair, slot_ns, tca_ns // slot_ns)
        if number not in continued and event_id in taken:
            event_id = _named(pair, 1, tca_ns)
        taken.add(event_id)
        ids[number] = event_id
    return ids


def in_order(pair: Pair) -> Pair:
    """Both objects of ``pair`` in one order, whichever comes first: numbers before designators."""
    one, other = sorted(pair, key=lambda each: (isinstance(each, str), each))
    return one, other


def identified(found: pa.Table, known: pa.Table) -> pa.Table:
    """Return the approaches ``found``, of whole pairs, each with its ``event_id``.

    They have ``slot_ns``, the length of their slots. ``known`` are the events of these pairs so far, each once.
    """
    events: dict[Pair, list[tuple[int, str]]] = defaultdict(list)
    for one, other, tca_ns, event_id in _rows(known, "event_id"):
        events[min(one, other), max(one, other)].append((tca_ns, event_id))
    encounters: dict[Pair, list[tuple[int, int, int]]] = defaultdict(list)
    for row, (one, other, tca_ns, slot_ns) in enumerate(_rows(found, "slot_ns")):
        encounters[min(one, other), max(one, other)].append((tca_ns, slot_ns, row))
    given = _ids_by_row(encounters, events)
    return found.append_column("event_id", pa.array([given[row] for row in range(found.num_rows)], pa.string()))


def _rows(events: pa.Table, further: str) -> Iterator[tuple[Any, ...]]:
    names = ("norad_id_1", "norad_id_2", "tca_time_ns", further)
    return zip(*(events[name].to_pylist() for name in names), strict=True)


def _ids_by_row(
    found: Mapping[Pair, Sequence[tuple[int, int, int]]], known: Mapping[Pair, Sequence[tuple[int, str]]]
) -> dict[int, str]:
    given: dict[int, str] = {}
    for pair, encounters in found.items():
        ids = event_ids(pair, [(tca_ns, slot_ns) for tca_ns, slot_ns, _ in encounters], known.get(pair, ()))
        given.update((row, event_id) for (*_, row), event_id in zip(encounters, ids, strict=True))
    return given


def _named(pair: Pair, slot_ns: int, number: int) -> str:
    lo, hi = in_order(pair)
    return str(uuid.uuid5(_EVENTS, f"{lo}/{hi}/{slot_ns}/{number}"))
