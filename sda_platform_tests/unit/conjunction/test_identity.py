"""The identity of an encounter: a function of pair, TCA and orbits, and what keeps it while the TCA moves."""

import csv
import gzip
import uuid
from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.identity import SLOT_NS, SLOW_SLOT_NS, Pair, event_ids, identified, slots_ns
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import screen
from sda_platform_tests.support.scenes import catalogue

PAIR = (25544, 48274)
PUBLISHED = Path(__file__).parents[2] / "data/screening/celestrak_2024-11-01_events_24h_5km.csv.gz"
BEGIN_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))
HOUR_NS = 3_600_000_000_000
SLOTS = st.sampled_from([SLOT_NS, SLOW_SLOT_NS])
TIMES = st.integers(0, 2 * 10**18)


def slot_id(tca_ns: int, slot_ns: int = SLOT_NS, pair: Pair = PAIR) -> str:
    (event_id,) = event_ids(pair, [(tca_ns, slot_ns)])
    return event_id


@given(TIMES, SLOTS)
def test_the_id_follows_from_pair_slot_and_nothing_else__E14(tca_ns: int, slot_ns: int) -> None:
    begin_ns = tca_ns - tca_ns % slot_ns
    named = slot_id(tca_ns, slot_ns)
    assert uuid.UUID(named).version == 5
    assert named == slot_id(tca_ns, slot_ns, PAIR[::-1]), "whichever of the two is protected"
    assert named == slot_id(begin_ns, slot_ns) == slot_id(begin_ns + slot_ns - 1, slot_ns)
    assert named not in {slot_id(begin_ns - 1, slot_ns), slot_id(begin_ns + slot_ns, slot_ns)}, (
        "a border is the later's"
    )
    assert named != slot_id(tca_ns, slot_ns, (PAIR[0], PAIR[1] + 1))


@given(st.lists(TIMES, min_size=1, max_size=6, unique=True), st.data())
def test_the_order_in_which_approaches_are_given_changes_no_id__E14(times: list[int], data: st.DataObject) -> None:
    encounters = [(time, SLOT_NS) for time in times]
    shuffled = data.draw(st.permutations(encounters))
    ids = dict(zip(encounters, event_ids(PAIR, encounters), strict=True))
    assert event_ids(PAIR, shuffled) == [ids[encounter] for encounter in shuffled]


@given(
    st.lists(st.integers(0, 5 * SLOT_NS), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 5 * SLOT_NS), st.uuids().map(str)), max_size=6, unique_by=lambda k: k[1]),
)
def test_no_id_is_given_twice_however_near_the_encounters_are__E14(
    times: list[int], known: list[tuple[int, str]]
) -> None:
    encounters = [(time, SLOT_NS) for time in sorted(set(times))]
    known = [*known, *((time + SLOT_NS, slot_id(time)) for time, _ in encounters[::2])]
    known = list({event_id: (time, event_id) for time, event_id in known}.values())
    ids = event_ids(PAIR, encounters, known)
    assert len(set(ids)) == len(encounters)
    last = {event_id: time for time, event_id in known}
    for (time, slot_ns), event_id in zip(encounters, ids, strict=True):
        assert event_id not in last or 2 * abs(last[event_id] - time) < slot_ns, (
            "only its own encounter continues an event"
        )


@given(TIMES, SLOTS, st.lists(st.floats(-0.49, 0.49), min_size=1, max_size=20))
def test_an_event_keeps_its_id_through_every_change_of_less_than_half_a_slot__E14(
    tca_ns: int, slot_ns: int, changes: list[float]
) -> None:
    """Also where the changes add up to many slots, and across every border."""
    first = slot_id(tca_ns, slot_ns)
    known = [(tca_ns, first)]
    for change in changes:
        tca_ns += int(change * slot_ns)
        assert event_ids(PAIR, [(tca_ns, slot_ns)], known) == [first]
        known = [(tca_ns, first)]


@given(st.integers(SLOT_NS, 10**18), st.integers(-10 * 10**9, 10 * 10**9))
def test_of_two_encounters_half_a_revolution_apart_each_continues_its_own__E14(tca_ns: int, moved_ns: int) -> None:
    times = [tca_ns + n * 44 * 60 * 10**9 for n in range(5)]
    first = event_ids(PAIR, [(time, SLOT_NS) for time in times])
    assert len(set(first)) == 5
    known = list(zip(times, first, strict=True))
    for kept in (slice(0, 5), slice(1, 5), slice(0, 5, 2)):
        moved = [(time + moved_ns, SLOT_NS) for time in times[kept]]
        assert event_ids(PAIR, moved, known) == first[kept], "whatever of the others is found"


def test_an_encounter_whose_slot_is_taken_is_named_by_its_tca__E14() -> None:
    two = [(10 * SLOT_NS, SLOT_NS), (10 * SLOT_NS + SLOT_NS // 3, SLOT_NS)]
    first, second = event_ids(PAIR, two)
    assert (first, second) == (slot_id(10 * SLOT_NS), slot_id(two[1][0], 1))
    known = [(two[0][0] - SLOT_NS, first)]
    assert event_ids(PAIR, two[:1], known) == [slot_id(two[0][0], 1)], "an event that has moved away keeps its name"


def test_of_a_partition_every_pair_is_named_by_itself__E14() -> None:
    numbers = ["norad_id_1", "norad_id_2", "tca_time_ns"]
    approaches = [(1, 2, 10 * SLOT_NS, SLOT_NS), (4, 3, 10 * SLOT_NS, SLOT_NS)]
    events = [(2, 1, 10 * SLOT_NS - 1, "known"), (5, 6, 10 * SLOT_NS, "not found again")]
    found, known = (
        pa.table(dict(zip([*numbers, name], map(pa.array, zip(*rows, strict=True)), strict=True)))
        for rows, name in ((approaches, "slot_ns"), (events, "event_id"))
    )
    assert identified(found, known)["event_id"].to_pylist() == ["known", slot_id(10 * SLOT_NS, pair=(3, 4))]
    assert identified(found.slice(0, 0), known).num_rows == 0


def test_only_pairs_of_slow_circular_orbits_have_long_slots__E14() -> None:
    elements = catalogue().elements
    chosen = [
        int(np.flatnonzero(condition)[0])
        for condition in (
            (elements.mean_motion_rev_per_day < 1.1) & (elements.eccentricity < 0.01),
            elements.mean_motion_rev_per_day > 15,
            (elements.mean_motion_rev_per_day < 1.1) & (elements.eccentricity > 0.5),
        )
    ]
    slow, low, eccentric = (elements.take(np.array([n])) for n in chosen)
    lengths = [int(slots_ns(slow, other)[0]) for other in (slow, low, eccentric)]
    assert lengths == [SLOW_SLOT_NS, SLOT_NS, SLOT_NS]


def test_no_two_published_encounters_of_a_pair_share_a_slot__E14() -> None:
    with gzip.open(PUBLISHED, "rt") as file:
        rows = list(csv.DictReader(file))
    times = defaultdict(list)
    for row in rows:
        times[row["norad_lo"], row["norad_hi"]].append(parse_iso_ns(row["tca_utc"]))
    apart = [b - a for each in times.values() for a, b in pairwise(sorted(each))]
    assert len(rows) > 24_000
    assert len(apart) > 2_000
    assert min(apart) > SLOT_NS


@cache
def objects() -> Propagator:
    """Every sixth object of the published day, and all slow ones."""
    elements = catalogue().elements
    chosen = np.arange(len(elements.norad_id)) % 6 == 0
    return Propagator(elements.take(np.flatnonzero(chosen | (elements.mean_motion_rev_per_day < 1.5))))


def next_sets(propagator: Propagator, age_days: float) -> Propagator:
    """Newer element sets: each mean anomaly differs by a draw from the model of the old set's in-track error."""
    elements = propagator.elements
    error, r_km, v_km_s = propagator.grid([BEGIN_NS])
    then_ns = elements.epoch_time_ns + round(age_days * 86_400e9)
    every = np.arange(len(elements))
    in_track_km = np.sqrt(element_covariance_rtn(propagator, every, then_ns, r_km[:, 0], v_km_s[:, 0])[:, 1, 1])
    shift_rad = np.random.default_rng(1).normal(size=len(error)) * in_track_km / np.linalg.norm(r_km[:, 0], axis=1)
    moved = elements.mean_anomaly_deg + np.nan_to_num(np.degrees(shift_rad))
    return Propagator(replace(elements, mean_anomaly_deg=moved % 360.0))


def named(propagator: Propagator, start_ns: int, end_ns: int) -> dict[tuple[int, int, int], str]:
    """Pair and number of each encounter with its id, from a screening that knows no other."""
    elements = propagator.elements
    everything = np.arange(len(elements.norad_id))
    events = screen(propagator, everything, everything, start_ns, end_ns, threshold_km=20.0).events
    lengths = slots_ns(elements.take(events.lo), elements.take(events.hi)).tolist()
    lo, hi = (elements.norad_id[index].tolist() for index in (events.lo, events.hi))
    by_pair = defaultdict(list)
    for one, other, tca_ns, slot_ns in zip(lo, hi, events.tca_time_ns.tolist(), lengths, strict=True):
        by_pair[one, other].append((tca_ns, slot_ns))
    return {
        (*pair, tca_ns): event_id
        for pair, encounters in by_pair.items()
        for (tca_ns, _), event_id in zip(encounters, event_ids(pair, encounters), strict=True)
    }


def test_a_screening_from_scratch_at_another_start_gives_the_same_ids__E14() -> None:
    early = named(objects(), BEGIN_NS, BEGIN_NS + 4 * HOUR_NS)
    late = named(objects(), BEGIN_NS + HOUR_NS + 1, BEGIN_NS + 5 * HOUR_NS)
    common = early.keys() & late.keys()
    assert len(common) > 1_000
    assert {key: early[key] for key in common} == {key: late[key] for key in common}


@pytest.mark.parametrize("age_days", [1.0, 3.0])
def test_the_next_element_sets_screened_from_scratch_give_the_same_ids_nearly_always__E14(age_days: float) -> None:
    before = named(objects(), BEGIN_NS, BEGIN_NS + 3 * HOUR_NS)
    after = named(next_sets(objects(), age_days), BEGIN_NS, BEGIN_NS + 3 * HOUR_NS)
    pairs = defaultdict(list)
    for (lo, hi, tca_ns), event_id in after.items():
        pairs[lo, hi].append((tca_ns, event_id))
    nearest = {
        (lo, hi, tca_ns): min((abs(other_ns - tca_ns), other_ns, event_id) for other_ns, event_id in pairs[lo, hi])[1:]
        for lo, hi, tca_ns in before
        if (lo, hi) in pairs
    }
    again = {key: each for key, each in nearest.items() if abs(each[0] - key[2]) < SLOT_NS // 2}
    same = [before[key] == event_id for key, (_, event_id) in again.items()]
    assert len(same) > 500
    assert np.mean(same) > 0.995, f"{sum(same)} of {len(same)}"
