"""Screening against published truth: real events found, all of them, however the window is cut."""

import csv
import dataclasses
import itertools
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sgp4.api import WGS72, Satrec

from sda_platform.formats.fleet import protected_fleet
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.interpolated_paths import KNOT_S, STEP_S, InterpolatedEphemerides, step_time_ns
from sda_platform.orbits.screening.path_bounds import ORBIT_PAD_KM, path_bounds, radius_limits_km
from sda_platform.orbits.screening.search import ScreeningResult, screen
from sda_platform_tests.support.scenes import catalogue

DATA = Path(__file__).parents[2] / "data" / "screening"
HOUR_NS = 3_600_000_000_000
SECOND_NS = 1_000_000_000
START_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))


def nanoseconds(utc: str) -> int:
    return int(np.datetime64(utc.rstrip("Z"), "ns").astype(np.int64))


@cache
def truth() -> list[tuple[int, int, int, float, float]]:
    """(norad_lo, norad_hi, tca_time_ns, miss_km, rel_speed_km_s) of the fleet's events of the day."""
    with (DATA / "fleet_events_24h_5km_2024-11-01.csv").open() as file:
        return [
            (
                int(row["norad_lo"]),
                int(row["norad_hi"]),
                nanoseconds(row["tca_utc"]),
                float(row["miss_km"]),
                float(row["rel_speed_km_s"]),
            )
            for row in csv.DictReader(file)
        ]


def positions(norad_ids: list[int]) -> np.ndarray:
    return np.flatnonzero(np.isin(catalogue().elements.norad_id, norad_ids))


def rows(screening: ScreeningResult, propagator: Propagator) -> list[tuple[int, int, int, float, float]]:
    events, norad_id = screening.events, propagator.elements.norad_id
    columns = (norad_id[events.lo], norad_id[events.hi], events.tca_time_ns)
    return list(
        zip(
            *(column.tolist() for column in (*columns, events.miss_distance_km, events.relative_speed_km_s)),
            strict=True,
        )
    )


def columns(screening: ScreeningResult) -> tuple[np.ndarray, ...]:
    return screening.events.lo, screening.events.hi, screening.events.tca_time_ns


def partners() -> np.ndarray:
    """The fleet and everything it meets that day: small enough to screen in tenths of a second."""
    return positions([norad for event in truth() for norad in event[:2]])


def test_two_hours_of_ten_satellites_against_the_whole_catalogue_give_exactly_the_published_events() -> None:
    # The ten with most events that early, so that the slice states something.
    early = [event for event in truth() if event[2] < START_NS + 2 * HOUR_NS]
    members = {member.norad_id for member in protected_fleet()}
    chosen = sorted(members & {norad for event in early for norad in event[:2]})[:10]
    expected = [event for event in early if set(event[:2]) & set(chosen)]

    everything = np.arange(len(catalogue()))
    found = screen(catalogue(), positions(chosen), everything, START_NS, START_NS + 2 * HOUR_NS, 5.0)

    assert len(expected) >= 8
    got = rows(found, catalogue())
    assert [event[:2] for event in got] == [event[:2] for event in expected]
    for event, published in zip(got, expected, strict=True):
        assert abs(event[2] - published[2]) <= 10_000_000, "TCA within 10 ms"
        assert event[3] == pytest.approx(published[3], abs=0.005), "miss within 5 m"
        assert event[4] == pytest.approx(published[4], abs=1e-5)


def test_a_day_of_the_fleet_against_its_partners_gives_every_published_event_once() -> None:
    fleet = positions([member.norad_id for member in protected_fleet()])
    found = rows(screen(catalogue(), fleet, partners(), START_NS, START_NS + 24 * HOUR_NS), catalogue())
    assert len(found) == len(truth()) == 139
    assert [event[:2] for event in found] == [event[:2] for event in truth()]
    np.testing.assert_allclose([e[2] for e in found], [e[2] for e in truth()], rtol=0, atol=2e6)
    np.testing.assert_allclose([e[3] for e in found], [e[3] for e in truth()], rtol=0, atol=1e-5)


def test_docked_and_formation_pairs_are_reported_once_each_and_never_as_events() -> None:
    with (DATA / "fleet_colocated_pairs_2024-11-01.csv").open() as file:
        published = sorted((int(row["norad_lo"]), int(row["norad_hi"])) for row in csv.DictReader(file))
    fleet = positions([member.norad_id for member in protected_fleet()])
    others = positions([norad for pair in published for norad in pair])
    found = screen(catalogue(), fleet, others, START_NS, START_NS + 3 * HOUR_NS)
    norad_id = catalogue().elements.norad_id
    pairs = zip(norad_id[found.colocated.lo].tolist(), norad_id[found.colocated.hi].tolist(), strict=True)
    assert sorted(pairs) == published
    assert not set(published) & {event[:2] for event in rows(found, catalogue())}


@cache
def six_hours() -> tuple[ScreeningResult, np.ndarray]:
    fleet = positions([member.norad_id for member in protected_fleet()])
    return screen(catalogue(), fleet, partners(), START_NS, START_NS + 6 * HOUR_NS, 20.0), fleet


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(1, 6 * HOUR_NS - 1), min_size=1, max_size=3, unique=True), data=st.data())
def test_the_events_of_a_window_are_the_union_of_the_events_of_its_parts(cuts: list[int], data: st.DataObject) -> None:
    whole, fleet = six_hours()
    # The meanest place to cut is at an event.
    at_event = data.draw(st.sampled_from(whole.events.tca_time_ns.tolist()))
    borders = sorted({START_NS, START_NS + 6 * HOUR_NS, at_event + 1000, *(START_NS + cut for cut in cuts)})
    parts = [screen(catalogue(), fleet, partners(), a, b, 20.0) for a, b in itertools.pairwise(borders)]
    together = [event for part in parts for event in rows(part, catalogue())]
    assert [event[:3] for event in together] == [event[:3] for event in rows(whole, catalogue())]
    np.testing.assert_allclose([event[3] for event in together], whole.events.miss_distance_km, atol=1e-9)
    pairs = {pair for part in parts for pair in zip(part.colocated.lo, part.colocated.hi, strict=True)}
    assert pairs == set(zip(whole.colocated.lo, whole.colocated.hi, strict=True))


def test_re_screening_part_of_the_catalogue_gives_that_part_of_the_full_result() -> None:
    whole, fleet = six_hours()
    changed = partners()[::3]
    part = screen(catalogue(), fleet, changed, START_NS, START_NS + 6 * HOUR_NS, 20.0)
    guarded, renewed = set(fleet.tolist()), set(changed.tolist())
    expected = [
        (lo, hi, tca)
        for lo, hi, tca in zip(*(column.tolist() for column in columns(whole)), strict=True)
        if (lo in guarded and hi in renewed) or (hi in guarded and lo in renewed)
    ]
    got = list(zip(*(column.tolist() for column in columns(part)), strict=True))
    assert len(expected) >= 10
    assert got == expected


def test_the_order_of_primaries_and_secondaries_does_not_matter() -> None:
    whole, fleet = six_hours()
    swapped = screen(catalogue(), partners()[::-1], fleet[::-1], START_NS, START_NS + 6 * HOUR_NS, 20.0)
    assert [e[:3] for e in rows(swapped, catalogue())] == [e[:3] for e in rows(whole, catalogue())]


def test_iridium_33_and_cosmos_2251_are_seen_to_collide() -> None:
    case = json.loads((DATA / "iridium_cosmos.json").read_text())[0]
    satrecs = [Satrec.twoline2rv(*lines, WGS72) for lines in case["tle"].values()]
    day_ns = 24 * HOUR_NS
    propagator = Propagator(
        ElementSets.from_columns(
            {
                "norad_id": [s.satnum for s in satrecs],
                "epoch_time_ns": [
                    round((s.jdsatepoch - 2440587.5) * day_ns) + round(s.jdsatepochF * day_ns) for s in satrecs
                ],
                "mean_motion_rev_per_day": [s.no_kozai * 720 / np.pi for s in satrecs],
                "eccentricity": [s.ecco for s in satrecs],
                "inclination_deg": [np.degrees(s.inclo) for s in satrecs],
                "raan_deg": [np.degrees(s.nodeo) for s in satrecs],
                "arg_of_pericenter_deg": [np.degrees(s.argpo) for s in satrecs],
                "mean_anomaly_deg": [np.degrees(s.mo) for s in satrecs],
                "bstar_per_earth_radius": [s.bstar for s in satrecs],
            }
        )
    )
    expected = case["sgp4_wgs72"]
    tca_ns = nanoseconds(expected["tca_utc"])
    found = screen(propagator, [0], [1], tca_ns - HOUR_NS, tca_ns + HOUR_NS)
    ((lo, hi, time_ns, miss_km, speed_km_s),) = rows(found, propagator)
    assert (lo, hi) == (22675, 24946)
    assert abs(time_ns - tca_ns) <= 10_000_000
    assert miss_km == pytest.approx(expected["miss_km"], abs=0.001)
    assert speed_km_s == pytest.approx(expected["rel_speed_km_s"], abs=1e-4)


def test_an_object_sgp4_rejects_is_reported_once_and_does_not_affect_others() -> None:
    whole, fleet = six_hours()
    chosen = catalogue().elements.take(partners())
    columns = {name: getattr(chosen, name).copy() for name in ElementSets.__dataclass_fields__}
    stranger = len(chosen) // 2
    columns["bstar_per_earth_radius"][stranger] = np.nan  # becomes 0
    columns["eccentricity"][stranger] = np.nan
    propagator = Propagator(ElementSets.from_columns(columns))
    primaries = np.flatnonzero(np.isin(partners(), fleet))
    found = screen(propagator, primaries, np.arange(len(chosen)), START_NS, START_NS + 6 * HOUR_NS, 20.0)
    assert found.failures.index.tolist() == [stranger]
    assert found.failures.time_ns.tolist() == [START_NS]
    lost = int(chosen.norad_id[stranger])
    assert [e[:2] for e in rows(found, propagator)] == [e[:2] for e in rows(whole, catalogue()) if lost not in e[:2]]


def test_interpolation_stays_within_its_bound_for_every_kind_of_orbit() -> None:
    rng = np.random.default_rng(3)
    elements = catalogue().elements
    kinds = [
        rng.choice(len(elements), 400, replace=False),
        np.flatnonzero(elements.eccentricity > 0.5)[:200],
        np.flatnonzero(elements.mean_motion_rev_per_day > 16.0),
        np.flatnonzero(np.abs(elements.bstar_per_earth_radius) > 0.02)[:100],
    ]
    index = np.unique(np.concatenate(kinds))
    knots = START_NS + np.arange(0, 6 * 3600 + 1, KNOT_S) * SECOND_NS
    tracks = InterpolatedEphemerides.propagate(catalogue(), index, knots)
    bounds = path_bounds(catalogue(), tracks)
    nearest_km, farthest_km = radius_limits_km(tracks)
    knot_speed_km_s = np.linalg.norm(tracks.state[:, 1], axis=1).T / KNOT_S
    fastest_km_s = np.maximum(knot_speed_km_s[:, 1:], knot_speed_km_s[:, :-1]) + bounds.faster_km_s[:, None]
    interval, row = np.meshgrid(np.arange(len(knots) - 1), np.arange(len(index)))
    for step in range(KNOT_S // STEP_S):
        steps = np.full(interval.size, step)
        between, _ = tracks.at_steps(row.reshape(-1), interval.reshape(-1), steps)
        times_ns = step_time_ns(knots, interval[0], steps[: len(knots) - 1])
        _, exact, velocity_km_s = catalogue().take(index).grid(times_ns)
        error_km = np.linalg.norm(between.reshape(exact.shape) - exact, axis=-1)
        known = np.isfinite(error_km).all(axis=1)
        assert known.sum() > 600
        radius_km = np.linalg.norm(exact, axis=-1)[known]
        assert np.all(radius_km >= nearest_km[known, None] - ORBIT_PAD_KM)
        assert np.all(radius_km <= farthest_km[known, None] + ORBIT_PAD_KM)
        assert np.all(error_km[known].max(axis=1) <= bounds.error_km[known] + 1e-3)
        assert np.all(np.linalg.norm(velocity_km_s, axis=-1)[known] <= fastest_km_s[known])


def test_an_object_that_is_refused_amid_the_knots_keeps_the_bounds_of_its_orbit() -> None:
    """As one that decays there: at other knots it is screened."""
    eccentric = np.flatnonzero(catalogue().elements.eccentricity > 0.5)[:40]
    knots = START_NS + np.arange(0, 7200 + 1, KNOT_S) * SECOND_NS
    whole = InterpolatedEphemerides.propagate(catalogue(), eccentric, knots)
    state = whole.state.copy()
    state[len(knots) // 2 :] = np.nan
    part = dataclasses.replace(whole, state=state)
    expected, found = path_bounds(catalogue(), whole), path_bounds(catalogue(), part)
    np.testing.assert_allclose(found.faster_km_s, expected.faster_km_s, rtol=0.05)
    assert np.all(found.error_km > 0.1)
    radius_km = np.linalg.norm(state[:, 0], axis=1)
    nearest_km, farthest_km = radius_limits_km(part)
    curved = expected.faster_km_s > 0.1  # of low perigee
    assert curved.sum() > 10
    assert np.all(nearest_km[curved] < np.nanmin(radius_km, axis=0)[curved] - 10)
    assert np.all(farthest_km[curved] > np.nanmax(radius_km, axis=0)[curved] + 10)


def test_eccentric_primaries_have_the_events_that_all_against_all_finds() -> None:
    """Whose distance from the Earth changes much between two knots."""
    eccentric = np.flatnonzero(catalogue().elements.eccentricity > 0.5)
    everything = np.arange(len(catalogue()))
    whole = screen(catalogue(), everything, everything, START_NS, START_NS + 3 * HOUR_NS, 20.0)
    part = screen(catalogue(), eccentric, everything, START_NS, START_NS + 3 * HOUR_NS, 20.0)
    known = set(eccentric.tolist())
    expected = [event for event in zip(*columns(whole), strict=True) if event[0] in known or event[1] in known]
    assert len(expected) > 20
    assert list(zip(*columns(part), strict=True)) == expected


@pytest.mark.parametrize(("end_ns", "threshold_km"), [(START_NS, 5.0), (START_NS + HOUR_NS, 0.0)])
def test_an_empty_window_or_threshold_is_refused(end_ns: int, threshold_km: float) -> None:
    with pytest.raises(ValueError, match=r"screening window is empty|must be positive"):
        screen(catalogue(), [0], [1], START_NS, end_ns, threshold_km)


def test_nothing_to_screen_gives_empty_results() -> None:
    none = np.zeros(0, dtype=np.int64)
    for primaries, secondaries in ((none, partners()), (partners()[:3], none), (none, none)):
        found = screen(catalogue(), primaries, secondaries, START_NS, START_NS + HOUR_NS)
        assert len(found.events) == len(found.colocated.lo) == len(found.failures.index) == 0
    assert SLOWEST_EVENT_KM_S == 0.010
