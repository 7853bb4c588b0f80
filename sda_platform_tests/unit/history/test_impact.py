"""Which alerts and which commits rest on an input: found by rows and by manifests, and nothing else with them."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.cli.lake.impact import impact_lines
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, RECEIVED_CDMS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.history.impact import Impact, UnknownInput, impact_of
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.unit.history.lakes import EVENT, OTHER_EVENT, TABLES, add, approach, decide, elements

HOUR_NS = 3_600 * 10**9
THIRD_EVENT = "7b7b7b7b-0000-5000-8000-000000000000"
FOURTH_EVENT = "8c8c8c8c-0000-5000-8000-000000000000"
FIFTH_EVENT = "9d9d9d9d-0000-5000-8000-000000000000"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One alert rests on a track of radar-7, one on a track of radar-8 alone, one on element sets alone."""
    lake = lake_at(tmp_path)
    add(lake, ELEMENT_SETS, elements(7, 100), elements(8, 100, record=1), elements(9, 100, record=2))
    add(lake, ORBITAL_CATALOG, elements(7, 100), elements(8, 100, record=1), elements(9, 100, record=2))
    decide(lake, THIRD_EVENT, elements_epoch_1_ns=100, elements_epoch_2_ns=100, norad_id_1=8, norad_id_2=9)
    for number, sensor in ((7, "radar-7"), (8, "radar-8")):
        seen = {"source_id": sensor, "segment_sha256": f"{number:064x}", "segment_name": f"{sensor}.seg"}
        add(lake, RAW_RECORDS, {**seen})
        add(lake, OBSERVATIONS, {**seen, "observation_id": f"o{number}"})
        fit = {"fit_id": f"f{number}", "norad_id": number, "epoch_time_ns": HOUR_NS, "observation_ids": [f"o{number}"]}
        newest = {"fit_id": f"n{number}", "norad_id": number, "epoch_time_ns": 2 * HOUR_NS, "observation_ids": []}
        much_later = {"fit_id": f"l{number}", "norad_id": number, "epoch_time_ns": 4 * HOUR_NS, "observation_ids": []}
        unused = {"sequence": 0, "op": "insert", "elements_epoch_ns": 50}
        add(lake, FUSED_TRACKS, *({**each, **unused} for each in (fit, newest, much_later)))
        add(lake, TRACKS, {"norad_id": number, "track_id": f"n{number}"})
    decide(lake, EVENT, track_id_1="n7")
    decide(lake, OTHER_EVENT, track_id_1="n8")
    decide(lake, OTHER_EVENT, 1, track_id_1="l7")
    return lake


def alerts_of(found: Impact) -> list[tuple[str, int]]:
    return [(row["event_id"], row["sequence"]) for row in found.alerts]


def test_alerts_on_a_bad_sensor_are_those_whose_tracks_were_filtered_over_its_observations__DL6_I14(lake: Lake) -> None:
    found = impact_of(lake, TABLES, "radar-7")
    assert (found.kind, found.rows) == ("sensor", {"raw_records": 1, "observations": 1})
    assert alerts_of(found) == [(EVENT, 0)]
    by_segment = impact_of(lake, TABLES, "radar-7.seg")
    assert (by_segment.kind, alerts_of(by_segment), by_segment.tables) == ("segment", [(EVENT, 0)], found.tables)
    assert alerts_of(impact_of(lake, TABLES, f"{8:064x}")) == [(OTHER_EVENT, 0)]


def test_alerts_on_a_bad_element_set_are_those_of_candidates_that_it_gave__DL6_I14(lake: Lake) -> None:
    found = impact_of(lake, TABLES, "9@1970-01-01T00:00:00.000Z")
    assert (found.kind, found.rows, alerts_of(found)) == ("element set", {"element_sets": 1}, [(THIRD_EVENT, 0)])


def test_alerts_on_a_bad_ephemeris_are_those_that_were_assessed_with_it(lake: Lake) -> None:
    path = {"norad_id": 25544, "segment_name": "a.oem", "segment_sha256": "a" * 64}
    add(lake, EPHEMERIDES, {**path, "record_number": 0}, {**path, "record_number": 1, "norad_id": 5})
    decide(lake, FOURTH_EVENT, norad_id_1=25544, norad_id_2=6, ephemeris_id_1="a.oem:0")
    decide(lake, FIFTH_EVENT, norad_id_1=6, norad_id_2=5, ephemeris_id_2="a.oem:0")  # of the other object's number
    found = impact_of(lake, TABLES, "a.oem")
    assert (found.kind, found.rows, alerts_of(found)) == ("segment", {"ephemerides": 2}, [(FOURTH_EVENT, 0)])
    assert found.is_followed


def test_an_alert_that_an_input_withdrew_rests_on_it_and_its_earlier_revisions_do_not(lake: Lake) -> None:
    """The first revision was decided before the ephemeris came, by element sets; it alone has no track either."""
    pair = {"norad_id_1": 25544, "norad_id_2": 6}
    decide(lake, FOURTH_EVENT, **pair)
    decide(lake, FIFTH_EVENT, **pair)
    path = {"norad_id": 25544, "segment_name": "a.oem", "segment_sha256": "a" * 64, "record_number": 0}
    add(lake, EPHEMERIDES, path)
    assessed: dict[str, Any] = {**pair, "ephemeris_id_1": "a.oem:0"}
    add(lake, CONJUNCTION_ASSESSMENTS, *(approach(each, 1, **assessed) for each in (FOURTH_EVENT, FIFTH_EVENT)))
    withdrawn = approach(FOURTH_EVENT, 0, "retract", **pair)
    corrected = [approach(FIFTH_EVENT, 0, "retract", **pair), approach(FIFTH_EVENT, 1, **assessed)]
    add(lake, CONJUNCTION_ALERTS, withdrawn, *corrected)
    found = impact_of(lake, TABLES, "a.oem")
    entries = [(row["event_id"], row["sequence"], row["op"]) for row in found.alerts]
    assert entries == [(FOURTH_EVENT, 0, "retract"), (FIFTH_EVENT, 1, "insert")]
    lines = [line for line in impact_lines(found) if line.startswith("  ") and "25544" in line]
    assert [line.endswith("withdrawn") for line in lines] == [True, False]


def test_alerts_that_the_log_holds_no_commit_of_any_more_still_rest_on_an_input(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs are cut after eight days, and rows of alerts stay."""
    expected = alerts_of(impact_of(lake, TABLES, "radar-7"))
    held = TableLog.commits

    def cut(log: TableLog, *arguments: Any, **options: Any) -> list[Commit]:
        return [] if log.table is CONJUNCTION_ALERTS else held(log, *arguments, **options)

    monkeypatch.setattr(TableLog, "commits", cut)
    assert alerts_of(impact_of(lake, TABLES, "radar-7")) == expected != []


def test_alerts_on_a_bad_message_are_those_whose_stated_probability_is_its_originators(lake: Lake) -> None:
    said = {
        "segment_name": "b.cdm",
        "segment_sha256": "b" * 64,
        "originator": "CSpOC",
        "norad_id_1": 6,
        "norad_id_2": 5,
    }
    add(lake, RECEIVED_CDMS, {**said, "tca_time_ns": 1_000})
    about: dict[str, Any] = {"norad_id_1": 5, "norad_id_2": 6, "tca_time_ns": 2_000, "stated_by": "CSpOC"}
    decide(lake, FOURTH_EVENT, **about)
    decide(lake, FIFTH_EVENT, **{**about, "stated_by": "SOMEBODY"})
    found = impact_of(lake, TABLES, "b.cdm")
    assert (found.rows, alerts_of(found)) == ({"received_cdms": 1}, [(FOURTH_EVENT, 0)])


def test_commits_that_read_an_input_are_found_from_the_manifests_through_every_table__DL2_I13(lake: Lake) -> None:
    reached = {table.table: list(table.sequences) for table in impact_of(lake, TABLES, "radar-8").tables}
    assert reached == {
        "raw_records": [2], "observations": [2], "fused_tracks": [2], "tracks": [2],
        "conjunction_candidates": [2, 3, 4], "conjunction_assessments": [2, 3, 4], "conjunction_alerts": [2, 3, 4],
    }, "every screening after it has read the tracks"  # fmt: skip
    (command,) = (t.replay_command for t in impact_of(lake, TABLES, "radar-7").tables if t.table == "tracks")
    assert command == "sda lake replay tracks --from-sequence 1 --to-sequence 1"


def test_what_is_no_input_is_refused_with_what_may_be_written(lake: Lake) -> None:
    for text in ("nonsense", "12@1970-01-01T00:00:00Z", "7@yesterday", "'; DROP TABLE observations"):
        with pytest.raises(UnknownInput):
            impact_of(lake, TABLES, text)
