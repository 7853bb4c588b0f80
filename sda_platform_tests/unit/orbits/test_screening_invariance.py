"""Events do not depend on how the work is cut: chunks of time, parts of the catalogue, order, processes, restarts."""

import itertools
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import ScreeningResult, joined, screen
from sda_platform_tests.support.scenes import DAY_NS, catalogue

HOUR_NS = 3_600_000_000_000
BEGIN_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))
END_NS = BEGIN_NS + 5 * HOUR_NS
# Many events among few objects: a wide threshold, and low orbits of one shell.
THRESHOLD_KM = 40.0
# Each example screens the scene anew, some of them several times.
FEW = settings(max_examples=settings().max_examples // 13)
Found = list[tuple[int, int, int, float, float]]


@cache
def shell() -> ElementSets:
    """Three hundred objects of one shell, the space station's company, and eccentric orbits that cross both fast."""
    elements = catalogue().elements
    rng = np.random.default_rng(5)
    motion = elements.mean_motion_rev_per_day
    low = rng.choice(np.flatnonzero((motion > 14.6) & (motion < 14.8)), 300, replace=False)
    station = np.flatnonzero(np.isin(elements.norad_id, [25544, 49044, 59913, 60959]))
    crossing = np.flatnonzero((elements.eccentricity > 0.6) & (motion > 2.0))[:40]
    return elements.take(np.unique(np.concatenate([low, station, crossing])))


def found(screening: ScreeningResult, elements: ElementSets) -> Found:
    events = screening.events
    columns = (elements.norad_id[events.lo], elements.norad_id[events.hi], events.tca_time_ns)
    numbers = (events.miss_distance_km, events.relative_speed_km_s)
    return list(zip(*(c.tolist() for c in (*columns, *numbers)), strict=True))


def pairs_together(screening: ScreeningResult, elements: ElementSets) -> set[tuple[int, int]]:
    ids, pairs = elements.norad_id, screening.colocated
    return set(zip(ids[pairs.lo].tolist(), ids[pairs.hi].tolist(), strict=True))


@cache
def whole() -> ScreeningResult:
    everyone = np.arange(len(shell()))
    return screen(Propagator(shell()), everyone, everyone, BEGIN_NS, END_NS, THRESHOLD_KM)


def test_the_scene_holds_fast_events_slow_ones_and_pairs_that_move_together() -> None:
    speeds = whole().events.relative_speed_km_s
    assert len(whole().events) > 300
    assert speeds.min() < 1.0
    assert speeds.max() > 14.0
    assert pairs_together(whole(), shell())


@FEW
@given(data=st.data())
def test_chunks_of_any_length_in_any_order_by_workers_that_start_anew_join_to_the_same_events(
    data: st.DataObject,
) -> None:
    at_event = data.draw(st.sampled_from(whole().events.tca_time_ns.tolist()))
    cuts = data.draw(st.lists(st.integers(BEGIN_NS + 1, END_NS - 1), min_size=1, max_size=4))
    borders = sorted({BEGIN_NS, END_NS, at_event, at_event + 1, *cuts})
    chunks = data.draw(st.permutations(list(itertools.pairwise(borders))))
    everyone = np.arange(len(shell()))
    # A worker has what it was sent, and nothing of those before it.
    parts = [screen(pickle.loads(sent()), everyone, everyone, *chunk, THRESHOLD_KM) for chunk in chunks]
    together = joined(Propagator(shell()), parts)
    assert found(together, shell()) == found(whole(), shell())
    assert pairs_together(together, shell()) == pairs_together(whole(), shell())


def sent() -> bytes:
    return pickle.dumps(Propagator(shell()))


@FEW
@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(2, 3))
def test_any_partition_of_the_catalogue_screened_part_against_part_gives_the_same_events(seed: int, parts: int) -> None:
    owner = np.random.default_rng(seed).integers(0, parts, len(shell()))
    groups = [np.flatnonzero(owner == part) for part in range(parts)]
    propagator = Propagator(shell())
    meetings = itertools.combinations_with_replacement(groups, 2)
    events = [
        event
        for first, second in meetings
        for event in found(screen(propagator, first, second, BEGIN_NS, END_NS, THRESHOLD_KM), shell())
    ]
    assert sorted(events) == sorted(found(whole(), shell()))


@FEW
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_catalogue_does_not_matter(seed: int) -> None:
    shuffled = shell().take(np.random.default_rng(seed).permutation(len(shell())))
    everyone = np.arange(len(shuffled))
    again = screen(Propagator(shuffled), everyone, everyone, BEGIN_NS, END_NS, THRESHOLD_KM)
    assert sorted(found(again, shuffled)) == sorted(found(whole(), shell()))
    assert pairs_together(again, shuffled) == pairs_together(whole(), shell())


@FEW
@given(others=st.lists(st.integers(0, len(catalogue()) - 1), max_size=40, unique=True))
def test_strangers_in_the_catalogue_move_no_event_of_the_others(others: list[int]) -> None:
    """Cells are as wide as the company requests, and an object that reaches far makes them wider."""
    strangers = catalogue().elements.take(np.asarray(others, dtype=np.int64))
    new = ~np.isin(strangers.norad_id, shell().norad_id)
    columns = {
        name: np.concatenate([getattr(shell(), name), getattr(strangers, name)[new]])
        for name in ElementSets.__dataclass_fields__
    }
    larger = ElementSets.from_columns(columns)
    everyone = np.arange(len(larger))
    again = screen(Propagator(larger), everyone, everyone, BEGIN_NS, END_NS, THRESHOLD_KM)
    known = set(shell().norad_id.tolist())
    assert [e for e in found(again, larger) if {*e[:2]} <= known] == found(whole(), shell())


@pytest.mark.parametrize("threshold_km", [1.0, 5.0, 40.0, 300.0])
def test_a_smaller_threshold_gives_those_events_of_a_larger_one_that_are_within_it(threshold_km: float) -> None:
    few = shell().take(np.arange(60))
    everyone = np.arange(len(few))
    end_ns = BEGIN_NS + DAY_NS // 24
    within = screen(Propagator(few), everyone, everyone, BEGIN_NS, end_ns, threshold_km)
    largest = screen(Propagator(few), everyone, everyone, BEGIN_NS, end_ns, 400.0)
    assert found(within, few) == [e for e in found(largest, few) if e[3] <= threshold_km]
