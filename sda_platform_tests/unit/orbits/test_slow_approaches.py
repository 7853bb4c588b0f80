"""Approaches slower than 10 m/s against an oracle that samples every pair densely and applies the rule as stated."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import Events, screen
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import Volume
from sda_platform_tests.support.sampling import number
from sda_platform_tests.support.scenes import DAY_NS, catalogue

SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS
BEGIN_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))
STEP_S = 10
SLOW_KM_S, TOGETHER_KM = 0.010, 5.0
Approach = tuple[int, float]


def oracle(propagator: Propagator, pair: tuple[int, int], span_ns: tuple[int, int], within_km: float) -> list[Approach]:
    """The slow approaches of a pair, (TCA, distance): every ten seconds a state, and a parabola at each minimum."""
    times = np.arange(span_ns[0] - DAY_NS - HOUR_NS, span_ns[1] + DAY_NS + HOUR_NS, STEP_S * SECOND_NS)
    _, r, v = propagator.take(np.array(pair)).grid(times)
    square = ((r[1] - r[0]) ** 2).sum(axis=-1)
    km, speed = np.sqrt(square), np.linalg.norm(v[1] - v[0], axis=-1)
    found = []
    for k in np.flatnonzero((km[1:-1] <= km[:-2]) & (km[1:-1] < km[2:])) + 1:
        slope, bend = (square[k + 1] - square[k - 1]) / 2, square[k + 1] - 2 * square[k] + square[k - 1]
        tca_ns = int(times[k] - slope / bend * STEP_S * SECOND_NS)
        least_km = float(np.sqrt(max(square[k] - slope**2 / (2 * bend), 0.0)))
        if not (span_ns[0] <= tca_ns < span_ns[1] and least_km <= within_km and speed[k] < SLOW_KM_S):
            continue
        day = np.abs(times - tca_ns) <= DAY_NS
        if not (km[day] > TOGETHER_KM).any():
            continue
        leaves = np.flatnonzero((km > within_km) | ~day)
        before, after = leaves[leaves < k][-1], leaves[leaves > k][0]
        if km[before + 1 : after].min() >= least_km - 1e-4:
            found.append((tca_ns, least_km))
    return found


def slow(events: Events) -> Events:
    return events.take(events.relative_speed_km_s < SLOW_KM_S)


def agree(got: list[Approach], expected: list[Approach]) -> bool:
    near = [abs(a[0] - b[0]) < 20 * SECOND_NS and abs(a[1] - b[1]) < 1e-3 for a, b in zip(got, expected, strict=False)]
    return len(got) == len(expected) and all(near)


def approaches(events: Events) -> list[Approach]:
    return list(zip(events.tca_time_ns.tolist(), events.miss_distance_km.tolist(), strict=True))


@cache
def ring() -> ElementSets:
    """The geostationary ring of the reference catalogue, every other object."""
    elements = catalogue().elements
    period_min = 1440 / elements.mean_motion_rev_per_day
    rows = np.flatnonzero((period_min > 1425) & (period_min < 1450) & (elements.eccentricity < 0.02))
    return elements.take(rows[::2])


@cache
def neighbours() -> list[tuple[int, int]]:
    """Pairs of the ring that come within 90 km at low speed, by samples every ten minutes."""
    _, r, _ = Propagator(ring()).grid(BEGIN_NS + np.arange(0, 24 * 6) * 600 * SECOND_NS)
    apart = [
        np.linalg.norm(r[lo + 1 :] - r[lo], axis=-1).min(axis=1) if lo + 1 < len(r) else np.zeros(0)
        for lo in range(len(r))
    ]
    ids = ring().norad_id
    pairs = [(lo, lo + 1 + int(n)) for lo, km in enumerate(apart) for n in np.flatnonzero(km < 90)]
    return [(lo, hi) if ids[lo] < ids[hi] else (hi, lo) for lo, hi in pairs]


def test_a_day_of_the_geostationary_ring_has_every_slow_approach_of_the_oracle_and_no_other_a10() -> None:
    propagator, everything = Propagator(ring()), np.arange(len(ring()))
    span = BEGIN_NS, BEGIN_NS + DAY_NS
    found = slow(screen(propagator, everything, everything, *span, 40.0).events)
    pairs = list(zip(found.lo.tolist(), found.hi.tolist(), strict=True))
    assert set(pairs) <= set(neighbours())
    total = 0
    for pair in neighbours():
        expected = oracle(propagator, pair, span, 40.0)
        got = [event for event, of in zip(approaches(found), pairs, strict=True) if of == pair]
        assert agree(got, expected), (pair, got, expected)
        total += len(expected)
    assert total >= 5


def companion(elements: ElementSets, motion: float, anomaly_deg: float, eccentricity: float) -> Propagator:
    """An object and one that differs from it a little, like an inspector or a fragment of one launch."""
    both = elements.take(np.array([0, 0]))
    columns = {name: getattr(both, name).copy() for name in ElementSets.__dataclass_fields__}
    columns["norad_id"][1] += 1
    columns["mean_motion_rev_per_day"][1] *= 1 + motion
    columns["mean_anomaly_deg"][1] += anomaly_deg
    columns["eccentricity"][1] += eccentricity
    return Propagator(ElementSets.from_columns(columns))


@settings(max_examples=number(10, 4), deadline=None)
@given(
    low=st.booleans(),
    drift_km_per_h=st.floats(-6, 6),
    lead_km=st.floats(-30, 30),
    eccentricity=st.floats(0, 4e-4),
    within_km=st.sampled_from([2.0, 5.0, 12.0]),
    hours=st.integers(1, 5),
)
def test_a_companion_that_drifts_past_has_the_approaches_of_the_oracle_however_the_window_is_cut_a10(
    low: bool, drift_km_per_h: float, lead_km: float, eccentricity: float, within_km: float, hours: int
) -> None:
    source = catalogue().elements.take(np.flatnonzero(catalogue().elements.norad_id == 20580)) if low else ring()
    radius_km, per_day = (6870.0, 15.2) if low else (42164.0, 1.0)
    motion = drift_km_per_h * 24 / (2 * np.pi * radius_km * per_day)
    size = 1.0 if low else 0.5
    propagator = companion(source.take(np.array([0])), motion, np.degrees(lead_km / radius_km), size * eccentricity)
    end_ns = BEGIN_NS + 6 * HOUR_NS
    whole = slow(screen(propagator, [0], [1], BEGIN_NS, end_ns, within_km).events)
    expected = oracle(propagator, (0, 1), (BEGIN_NS, end_ns), within_km)
    assert agree(approaches(whole), expected)
    cut_ns = BEGIN_NS + hours * HOUR_NS + 1234567
    parts = [screen(propagator, [0], [1], *span, within_km).events for span in ((BEGIN_NS, cut_ns), (cut_ns, end_ns))]
    assert list(itertools.chain(*map(approaches, map(slow, parts)))) == approaches(whole)


def station() -> ElementSets:
    return catalogue().elements.take(np.flatnonzero(catalogue().elements.norad_id == 20580))


def test_a_pair_in_formation_has_no_approach_and_is_reported_once_a10() -> None:
    together = companion(station(), 0.0, 0.01, 1e-5)
    result = screen(together, [0], [1], BEGIN_NS, BEGIN_NS + DAY_NS, 5.0)
    assert len(result.events) == 0
    assert len(result.colocated.lo) == 1


def test_a_slow_approach_counts_if_its_stay_enters_the_volume_at_any_time_a10() -> None:
    passing = companion(station(), 2e-5, -0.1, 1e-5)
    span = BEGIN_NS - DAY_NS, BEGIN_NS + DAY_NS
    sphere = slow(screen(passing, [0], [1], *span, 12.0).events)
    assert len(sphere) == 1
    for radial_km, enters in ((8.0, True), (0.01, False)):
        box = Volume("box", radial_km, 8.0, 8.0)
        got = slow(screen_volume(passing, np.array([0]), np.array([1]), *span, box).events)
        assert len(got) == int(enters)


def test_a_stay_ends_where_the_term_of_a_set_ends_a10() -> None:
    passing = companion(station(), 2e-5, -0.1, 1e-5)
    span = BEGIN_NS - DAY_NS, BEGIN_NS + DAY_NS
    (tca_ns,) = slow(screen(passing, [0], [1], *span, 5.0).events).tca_time_ns
    for until_ns, count in ((tca_ns + HOUR_NS, 1), (FOREVER_NS, 1)):
        terms = Terms(np.arange(2), np.full(2, ALWAYS_NS), np.full(2, until_ns))
        assert len(slow(screen(passing, [0], [1], *span, 5.0, terms).events)) == count


@pytest.mark.parametrize("within_km", [5.0, 30.0])
def test_nothing_near_gives_no_slow_approach_a10(within_km: float) -> None:
    alone = np.flatnonzero(catalogue().elements.norad_id == 20580)
    result = screen(catalogue(), alone, alone, BEGIN_NS, BEGIN_NS + HOUR_NS, within_km)
    assert len(result.events) == 0
