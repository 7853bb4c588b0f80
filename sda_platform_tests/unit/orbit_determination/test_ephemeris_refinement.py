"""Our own ephemerides: which end or make room, what they hold, and when a state comes from one."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.best_states import ELEMENT_SET, BestStates
from sda_platform.conjunction.operator_ephemerides import OPERATOR_EPHEMERIS, OperatorEphemerides
from sda_platform.conjunction.refined_ephemerides import REFINED_EPHEMERIS, of_fleet, refined_ephemerides
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.tables import TRACKS
from sda_platform.orbit_determination import ephemeris_refinement
from sda_platform.orbit_determination.checks import unsound_refinements
from sda_platform.orbit_determination.ephemeris_refinement import withdrawn, without_room
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.determination.track_elements import SPAN_S
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.in_force import Terms
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.scenes import SECOND_NS, START_NS
from sda_platform_tests.support.windows import WINDOW_NS, beacons, published, some_catalogue

WINDOWS = 10
AS_OF_NS = START_NS + WINDOWS * WINDOW_NS
NEWEST_NS = AS_OF_NS - WINDOW_NS // 2


@pytest.fixture(scope="module")
def windows() -> pa.Table:
    """Five minutes of three satellites that report where they are."""
    fuse = window_fuser(some_catalogue(), WINDOW_NS)
    return pa.concat_tables([fuse(rows) for rows in beacons(objects=3, windows=WINDOWS, seed=14)])


@pytest.fixture(scope="module")
def tracks(windows: pa.Table) -> pa.Table:
    return live_tracks(windows, windows.select(CHANGE_COLUMNS), TRACK_SCHEMA.empty_table(), some_catalogue(), AS_OF_NS)


@pytest.fixture(scope="module")
def refined(windows: pa.Table, tracks: pa.Table) -> pa.Table:
    return ephemeris_refinement.refined_ephemerides(windows, tracks, of_catalogue(), AS_OF_NS)


def of_catalogue() -> dict[int, dict[str, Any]]:
    named = {"international_designator": None}
    return {r["norad_id"]: {**r, **named, "object_name": f"N{r['norad_id']}"} for r in published(some_catalogue())}


def held(*rows: tuple[int, int, int]) -> pa.Table:
    names = ("norad_id", "epoch_time_ns", "usable_until_ns")
    return pa.table({name: pa.array([row[n] for row in rows], pa.int64()) for n, name in enumerate(names)})


def track_rows(numbers: range) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "norad_id": list(numbers),
            "state": ["confirmed"] * count,
            "epoch_time_ns": [AS_OF_NS] * count,
            "windows": [6] * count,
            "manoeuvre_time_ns": pa.nulls(count, pa.int64()),
        }
    )


def test_the_oldest_ephemerides_make_room_and_those_of_interest_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ephemeris_refinement, "MOST_HELD", 4)
    current = held((1, 10, AS_OF_NS), (2, 20, AS_OF_NS), (3, 30, AS_OF_NS), (4, 40, AS_OF_NS))
    renewed = held((5, 50, AS_OF_NS), (4, 50, AS_OF_NS))
    assert without_room(current, renewed, [])["norad_id"].to_pylist() == [1]
    assert without_room(current, renewed, [1, 2])["norad_id"].to_pylist() == [3]
    assert without_room(current, renewed, [1, 2, 3])["norad_id"].to_pylist() == [1], "the oldest, if all are"
    assert without_room(current, held((4, 50, AS_OF_NS)), []).num_rows == 0, "one that is renewed needs no more room"


def test_an_ephemeris_ends_after_a_day_or_with_a_suspected_manoeuvre_at_its_epoch_or_later() -> None:
    later = AS_OF_NS + 1
    rows = held((1, 50, later), (2, 50, AS_OF_NS), (3, 50, later), (4, 50, later))
    moved = pa.table({"norad_id": [1, 3, 4], "manoeuvre_time_ns": pa.array([49, 50, None], pa.int64())})
    assert withdrawn(rows, moved, AS_OF_NS)["norad_id"].to_pylist() == [2, 3]


def test_an_ephemeris_covers_the_day_after_the_newest_window_and_is_clearly_better(refined: pa.Table) -> None:
    rows = refined.to_pylist()
    assert len(rows) == 3
    for row in rows:
        assert (row["usable_from_ns"], row["usable_until_ns"]) == (NEWEST_NS, NEWEST_NS + SPAN_S * SECOND_NS)
        assert row["state_time_ns"][::2] == row["covariance_time_ns"]
        assert len(row["state"]) == 6 * len(row["state_time_ns"])
        assert row["position_sigma_m"] < row["published_sigma_m"] / 2
        assert row["held_back_rms"] < row["published_held_back_rms"] / 2


def test_the_check_reports_an_ephemeris_that_is_no_better(refined: pa.Table, tmp_path: Path) -> None:
    lake, rows = lake_at(tmp_path), refined.to_pylist()
    rows[0]["held_back_rms"] = rows[0]["published_held_back_rms"]
    commit(lake, REFINED_EPHEMERIDES, rows)
    log = lake.log(REFINED_EPHEMERIDES)
    assert unsound_refinements(lake, log, log.commits()) == ["1 are no better than the published sets"]


def catalogue(terms: Terms | None = None) -> Catalogue:
    propagator = some_catalogue()
    return Catalogue(propagator, ("",) * len(propagator), terms)


def test_a_state_comes_from_our_ephemeris_unless_a_manoeuvre_is_suspected_since(
    refined: pa.Table, tracks: pa.Table
) -> None:
    quiet = tracks.select(["norad_id", "manoeuvre_time_ns"])
    numbers = refined["norad_id"].to_pylist()
    usable = refined_ephemerides(refined, catalogue(), quiet, AS_OF_NS)
    assert usable.norad_id.tolist() == numbers and set(usable.source) == {REFINED_EPHEMERIS}
    state, covariance = usable.at(np.array([0]), np.array([NEWEST_NS + 3600 * SECOND_NS]))
    assert np.isfinite(state).all() and np.isfinite(covariance).all()
    moved = pa.table({"norad_id": numbers[:1], "manoeuvre_time_ns": [NEWEST_NS]})
    assert refined_ephemerides(refined, catalogue(), moved, AS_OF_NS).norad_id.tolist() == numbers[1:]


def test_our_ephemeris_ends_where_another_set_comes_into_force(refined: pa.Table, tracks: pa.Table) -> None:
    count = len(some_catalogue())
    until = np.full(count, FOREVER_NS)
    number = refined["norad_id"][0].as_py()
    until[np.flatnonzero(some_catalogue().elements.norad_id == number)] = NEWEST_NS + 7200 * SECOND_NS
    planned = catalogue(Terms(np.arange(count), np.full(count, ALWAYS_NS), until))
    usable = refined_ephemerides(refined, planned, tracks.select(["norad_id", "manoeuvre_time_ns"]), AS_OF_NS)
    assert usable.ephemerides[0].usable_until_ns == NEWEST_NS + 7200 * SECOND_NS - 1
    assert usable.ephemerides[1].usable_until_ns == NEWEST_NS + SPAN_S * SECOND_NS


def test_the_fleet_is_screened_on_its_own_ephemerides_only(refined: pa.Table) -> None:
    number = refined["norad_id"][1].as_py()
    assert of_fleet(refined, [number, 1])["norad_id"].to_pylist() == [number]
    assert of_fleet(refined, []).num_rows == 0


def test_an_assessment_takes_our_ephemeris_above_the_set_and_below_that_of_the_operator(refined: pa.Table) -> None:
    """Without a live track, and within its span."""
    nothing = track_rows(range(0))
    own = refined_ephemerides(refined, catalogue(), nothing, AS_OF_NS)
    stated = own.norad_id[:1], own.created_ns[:1], ("a:0",), own.ephemerides[:1], (OPERATOR_EPHEMERIS,)
    operators = OperatorEphemerides(*stated)
    no_track = Tracks.of(TRACKS.arrow_schema.empty_table().select(TRACK_COLUMNS))
    numbers = np.array(refined["norad_id"].to_pylist())

    def sources(at_s: int, known: OperatorEphemerides) -> list[str]:
        time_ns = np.full(3, NEWEST_NS + at_s * SECOND_NS)
        return BestStates.of(numbers, time_ns, catalogue(), no_track, known).source

    assert sources(3600, own) == [REFINED_EPHEMERIS] * 3
    assert sources(SPAN_S + 1, own) == [ELEMENT_SET] * 3
    assert sources(3600, own.and_paths(operators)) == [OPERATOR_EPHEMERIS, REFINED_EPHEMERIS, REFINED_EPHEMERIS]
