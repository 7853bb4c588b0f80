"""When everything is screened, when only what changed, and when nothing."""

from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.conjunction.planning import SETTINGS, Screening, decide, marks_after
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES, SCREENED_FROM, SCREENED_UPTO, TRACK_REACH_NS
from sda_platform.lake.manifest import GENESIS, CommitManifest, TableWindow
from sda_platform.lake.planning import Plan

HOUR_NS = 3600 * 10**9
NOW_NS = 480_000 * HOUR_NS
NEWS = TableWindow(ORBITAL_CATALOG.name, 1, 2, 1, 2)
NO_NEWS = TableWindow(ORBITAL_CATALOG.name, 2, 2, 2, 2)


def planned(window: TableWindow, *, last_full_ns: int | None) -> Plan:
    marks = {} if last_full_ns is None else {SCREENED_FROM: last_full_ns, SCREENED_UPTO: last_full_ns + 24 * HOUR_NS}
    previous = CommitManifest(CONJUNCTION_CANDIDATES.name, 1, GENESIS, 0, "run", "nonce", watermarks=marks)
    return Plan(CONJUNCTION_CANDIDATES, 2, previous.sha256, 0, NOW_NS, "run", windows=(window,), previous=previous)


def decided(
    plan: Plan, changed: Set[int] = frozenset(), size: int = 100, manoeuvred: Set[int] = frozenset()
) -> Screening | None:
    return decide(plan, changed, size, horizon_ns=24 * HOUR_NS, refresh_ns=6 * HOUR_NS, manoeuvred=manoeuvred)


FULL = Screening(NOW_NS, NOW_NS + 24 * HOUR_NS, None)


def test_the_first_screening_is_of_everything() -> None:
    assert decided(planned(NEWS, last_full_ns=None), {1}) == FULL
    assert decided(replace(planned(NEWS, last_full_ns=None), previous=None), {1}) == FULL


def test_an_empty_catalogue_is_not_screened() -> None:
    assert decided(planned(NO_NEWS, last_full_ns=None), size=0) is None


def test_nothing_changed_and_a_young_screening_is_nothing_to_do() -> None:
    assert decided(planned(NO_NEWS, last_full_ns=NOW_NS - 6 * HOUR_NS + 1)) is None


def test_a_screening_of_the_refresh_age_is_repeated_without_any_news() -> None:
    assert decided(planned(NO_NEWS, last_full_ns=NOW_NS - 6 * HOUR_NS)) == FULL


def test_a_few_changed_objects_are_screened_alone_as_far_as_the_full_screening_reached() -> None:
    last_full_ns = NOW_NS - 2 * HOUR_NS
    found = decided(planned(NEWS, last_full_ns=last_full_ns), {7, 8})
    assert found == Screening(NOW_NS, last_full_ns + 24 * HOUR_NS, frozenset({7, 8}))


def test_a_suspected_manoeuvre_is_screened_without_news_of_the_catalogue_as_far_as_its_track_is_used() -> None:
    for hours in (0, 5):
        last_full_ns = NOW_NS - hours * HOUR_NS
        end_ns = min(last_full_ns + 24 * HOUR_NS, NOW_NS + TRACK_REACH_NS)
        alone = decided(planned(NO_NEWS, last_full_ns=last_full_ns), manoeuvred={9})
        assert alone == Screening(NOW_NS, end_ns, frozenset({9}))
        beside = decided(planned(NEWS, last_full_ns=last_full_ns), {7}, manoeuvred={9})
        assert beside == Screening(NOW_NS, last_full_ns + 24 * HOUR_NS, frozenset({7, 9}))
    assert decided(planned(NO_NEWS, last_full_ns=NOW_NS - 6 * HOUR_NS), manoeuvred={9}) == FULL


def test_beyond_a_fifth_of_the_catalogue_everything_is_screened() -> None:
    plan = planned(NEWS, last_full_ns=NOW_NS)
    assert decided(plan, set(range(20))) == Screening(NOW_NS, NOW_NS + 24 * HOUR_NS, frozenset(range(20)))
    assert decided(plan, set(range(21))) == FULL


def test_only_a_full_screening_moves_what_the_checkpoint_remembers() -> None:
    plan = planned(NEWS, last_full_ns=NOW_NS - HOUR_NS)
    assert marks_after(plan, FULL) == {SCREENED_FROM: NOW_NS, SCREENED_UPTO: NOW_NS + 24 * HOUR_NS}
    assert marks_after(plan, Screening(NOW_NS, NOW_NS + HOUR_NS, frozenset({7}))) == plan.previous.watermarks  # type: ignore[union-attr]


def under(before: dict[str, Any], now: dict[str, Any]) -> Screening | None:
    """What is decided an hour after a full screening under other settings, without any news."""
    plan = planned(NO_NEWS, last_full_ns=NOW_NS - HOUR_NS)
    assert plan.previous is not None
    previous = replace(plan.previous, settings={SETTINGS: before})
    return decided(replace(plan, previous=previous, settings={SETTINGS: now}))


@pytest.mark.parametrize(
    "changed",
    [
        {"lists_sha256": "of a fleet with one member more"},
        {"scope": "all"},
        {"fleet_internal": False},
        {"volumes": "standard"},
        {"horizon_h": 24.0},
        {"threshold_km": 20.0},
        {"sigmas": 3.0},
        {"reach_km": 300.0},
        {"manoeuvre_sigmas": 0.0},
        {"satellite_catalogue": "satcat.csv"},
        {"fleet": "our_fleet.csv"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_setting_that_says_what_is_screened_is_a_full_screening_at_once(changed: dict[str, Any]) -> None:
    recorded = ScreeningResource().recorded()
    assert under(recorded, recorded) is None
    assert under(recorded, {**recorded, **changed}) == FULL
    assert under({**recorded, **changed}, recorded) == FULL


def test_every_recorded_setting_is_one_of_these_or_of_the_pace() -> None:
    said = {"lists_sha256", "scope", "fleet_internal", "volumes", "horizon_h", "threshold_km", "sigmas", "reach_km"}
    assert ScreeningResource().recorded().keys() == {
        *said, "manoeuvre_sigmas", "satellite_catalogue", "fleet", "refresh_h", "keeps_markings",
    }  # fmt: skip


def test_the_pace_and_a_setting_that_an_upgrade_brings_change_nothing() -> None:
    recorded = ScreeningResource().recorded()
    older = {name: value for name, value in recorded.items() if name not in {"manoeuvre_sigmas", "sigmas"}}
    assert under(older, recorded) is None
    assert under(older, {**recorded, "sigmas": 3.0}) == FULL
    assert under(recorded, {**recorded, "refresh_h": 3.0}) is None
    unmarked = {name: value for name, value in recorded.items() if name != "keeps_markings"}
    assert under(unmarked, recorded) is None


def test_a_member_more_in_the_fleets_file_is_a_full_screening(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    screening, recorded = ScreeningResource(fleet=str(fleet)), []
    for members in ("25544,ISS,NASA\n", "25544,ISS,NASA\n20580,HST,NASA\n"):
        fleet.write_text(f"norad_id,name,operator\n{members}")
        recorded.append(screening.recorded())
    assert under(*recorded) == FULL
