"""A replay that begins later reads exactly what the live run read: of its own table's rows too, and nothing since."""

from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS, TIME_TAG_BIASES, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.resource import RefinementResource
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS, REFINED_ELEMENTS, REFINED_EPHEMERIDES
from sda_platform.orbit_determination.turns import TOGETHER_NS
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.replay.history import Span
from sda_platform.setting_sections import RefinementSettings
from sda_platform_tests.support.biased_time_tags import TERM, TERM_NS, observed, satellites
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at, next_window, with_delta_rs
from sda_platform_tests.support.passes_of_twins import TOLD_APART, TWINS, meetings, seen
from sda_platform_tests.support.scenes import START_NS
from sda_platform_tests.support.uncorrelated_rows import observations
from sda_platform_tests.support.windows import WINDOW_NS, beacons, published, some_catalogue

RESOURCES = {
    "fusion": FusionResource(window_s=30),
    "refinement": RefinementResource(),
    "weather": SpaceWeatherResource(),
}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An empty lake that delta-rs commits to in the place of the engine."""
    monkeypatch.setattr(Lake, "frame", lambda _self, _table, rows, stamped=False: rows)
    monkeypatch.setattr(Lake, "engine", staticmethod(with_delta_rs))
    return lake_at(tmp_path / "lake", now_ns=TERM + 10 * TERM_NS)


def observe(lake: Lake, rows: pa.Table, open_from_ns: int, fits: Iterable[dict[str, Any]] = ()) -> None:
    """One more commit of observations and of fits, after which the first open window begins there."""
    sequence = commit(lake, OBSERVATIONS, rows.to_pylist()).sequence
    window = genesis_window(OBSERVATIONS)
    for _ in range(sequence - 1):
        window = next_window(window)
    commit(lake, FUSED_TRACKS, fits, windows=[window], watermarks={FIRST_OPEN_WINDOW: open_from_ns})


def materialize(lake: Lake, table: Table) -> None:
    body = declared(table).body
    needed = {name: RESOURCES[name] for name in RESOURCES.keys() & signature(body).parameters.keys()}
    body(lake=SimpleNamespace(open=lambda: lake), **needed)


def assert_replayed(lake: Lake, table: Table) -> None:
    """From the second of two commits on."""
    (found,) = replay_lake(lake, f"{lake.uri}-again", RESOURCES, tables=[table], span=Span(from_sequence=2))
    assert (found.first_sequence, found.last_sequence, found.differences) == (2, 2, ())
    assert found.rows > 0


def test_time_tag_biases__F_replay(lake: Lake) -> None:
    """The second commit is believed because of the first: two terms say the same."""
    commit(lake, ORBITAL_CATALOG, published(satellites()))
    for number in (0, 1):
        observe(lake, observed(50.0)[number], TERM + (number + 1) * TERM_NS)
        materialize(lake, TIME_TAG_BIASES)
    told = lake.log(TIME_TAG_BIASES).rows(["commit_sequence", "is_applied"]).to_pylist()
    assert {row["commit_sequence"] for row in told if row["is_applied"]} == {2}
    assert_replayed(lake, TIME_TAG_BIASES)


def test_provisional_elements__F_replay(lake: Lake) -> None:
    """The second commit numbers only whom the first did not."""
    commit(lake, ORBITAL_CATALOG, published(satellites()))
    first = pc.is_in(observations()["native_track_id"], pa.array(["0", "1", "2"]))
    for rows in (observations().filter(first), observations().filter(pc.invert(first))):
        observe(lake, rows, START_NS + 4 * WINDOW_NS)
        materialize(lake, PROVISIONAL_ELEMENTS)
    assert_replayed(lake, PROVISIONAL_ELEMENTS)


def test_provisional_elements_of_what_is_met_again__F_replay(lake: Lake) -> None:
    """The second commit uses the numbers of the first, except for an object that a fit follows elsewhere."""
    elsewhere = 80_000 + min(TOLD_APART)
    fit = {"fit_id": "followed", "norad_id": elsewhere, "observation_ids": [], "optical_count": 0, "sequence": 0}
    for meeting, middle_ns in enumerate(meetings()):
        fits = [{**fit, "op": "insert", "window_start_ns": middle_ns - WINDOW_NS}] if meeting else []
        observe(lake, seen(meeting), middle_ns + 4 * WINDOW_NS, fits)
        materialize(lake, PROVISIONAL_ELEMENTS)
    told = lake.log(PROVISIONAL_ELEMENTS).rows(["norad_id", "epoch_time_ns", "earlier_epoch_ns", "commit_sequence"])
    first, again = ({r["norad_id"]: r for r in told.to_pylist() if r["commit_sequence"] == n} for n in (1, 2))
    kept = first.keys() & again.keys()
    assert kept == {80_000 + piece for piece in TOLD_APART} - {elsewhere}
    assert len(again.keys() - kept) == len({*TWINS, elsewhere})
    assert all(again[number]["earlier_epoch_ns"] == first[number]["epoch_time_ns"] for number in kept)
    assert_replayed(lake, PROVISIONAL_ELEMENTS)


def tracked(lake: Lake) -> list[dict[str, Any]]:
    """Tracks of three satellites that report where they are; their windows are fitted."""
    commit(lake, ORBITAL_CATALOG, published(some_catalogue()))
    seen = beacons(objects=3, windows=10, seed=14)
    fits = pa.concat_tables([window_fuser(some_catalogue(), WINDOW_NS)(rows) for rows in seen])
    journal = [{**row, "sequence": 0, "op": "insert"} for row in fits.to_pylist()]
    observe(lake, seen[0], START_NS, journal)
    as_of_ns = START_NS + 10 * WINDOW_NS
    found = live_tracks(fits, fits.select(CHANGE_COLUMNS), TRACK_SCHEMA.empty_table(), some_catalogue(), as_of_ns)
    return list(found.to_pylist())


@pytest.mark.parametrize("table", [REFINED_ELEMENTS, REFINED_EPHEMERIDES], ids=lambda table: str(table.name))
def test_refined_products__F_replay(lake: Lake, table: Table) -> None:
    """The second commit leaves out whom the first refined just now, and comes no sooner than ten minutes later."""
    tracks = tracked(lake)
    for moved, elapsed_ns in ((tracks[:1], 0), (tracks[1:], TOGETHER_NS - 1), ([], 1)):
        lake.clock = MissionClock(lake.clock.now_ns() + elapsed_ns, 0, 0.0)
        if moved:
            commit(lake, TRACKS, moved)
        materialize(lake, table)
    refined = lake.log(table).rows(["norad_id", "commit_sequence"]).to_pylist()
    assert {row["norad_id"]: row["commit_sequence"] for row in refined} == {
        row["norad_id"]: 2 if number else 1 for number, row in enumerate(tracks)
    }
    (found,) = replay_lake(lake, f"{lake.uri}-again", RESOURCES, tables=[table])
    assert (found.first_sequence, found.last_sequence, found.differences) == (1, 2, ())


def test_objects_of_interest_are_refined_first_in_a_replay_too__F_replay(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit records them, so a replay needs neither the fleet nor the events of then."""
    tracks = tracked(lake)
    numbers = sorted(row["norad_id"] for row in tracks)
    commit(lake, TRACKS, tracks)
    refinement = RefinementResource(**RefinementSettings(at_once=2).model_dump())
    with monkeypatch.context() as then:
        then.setattr(RefinementResource, "objects_of_interest", lambda *_: numbers[2:])
        then.setitem(RESOURCES, "refinement", refinement)
        materialize(lake, REFINED_ELEMENTS)
    refined = lake.log(REFINED_ELEMENTS).rows(["norad_id"])["norad_id"].to_pylist()
    assert sorted(refined) == [numbers[0], numbers[2]]
    (found,) = replay_lake(lake, f"{lake.uri}-again", RESOURCES, tables=[REFINED_ELEMENTS])
    assert found.differences == ()
