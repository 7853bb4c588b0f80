"""The views of `sda query`: timestamps, one name for an id, and the rows that hold."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sda_platform.conjunction.tables import ALERT_ACKNOWLEDGEMENTS, CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.fusion.sources import silences
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.history.moments import vector_of
from sda_platform.history.pinned_view import PinnedView
from sda_platform.history.query_views import QUERY_VIEWS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.registry import TABLES_BY_NAME
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, after

START = datetime.fromtimestamp(START_NS // SECOND_NS, UTC).replace(tzinfo=None)


def event(event_id: str, sequence: int, op: str, **values: Any) -> dict[str, Any]:
    facts = {"tca_time_ns": after(3600), "as_of_ns": START_NS, "risk": "red", "status": "open", **values}
    return {"event_id": event_id, "sequence": sequence, "op": op, "norad_id_1": 7, "norad_id_2": 8, **facts}


@pytest.fixture
def view(tmp_path: Path) -> PinnedView:
    """Two alerts, of which one is withdrawn, one event below the levels, and a radar that paused."""
    lake = lake_at(tmp_path, now_ns=after(1800))
    rows = [event("a", 0, "insert"), event("b", 0, "insert"), event("b", 0, "retract"), event("a", 1, "insert")]
    commit(lake, CONJUNCTION_ALERTS, [*rows, event("c", 0, "insert", status="closed")])
    commit(lake, CONJUNCTION_ASSESSMENTS, [event("a", 0, "insert"), event("d", 0, "insert", risk="green")])
    people = [(0, "ann", "acknowledge"), (1, "bob", "acknowledge"), (1, "eve", "comment"), (1, "cy", "acknowledge")]
    commit(
        lake,
        ALERT_ACKNOWLEDGEMENTS,
        [
            {"alert_id": "a", "revision": revision, "acknowledged_by": who, "acknowledged_time_ns": -number,
             "action": action, "error_kind": None}
            for number, (revision, who, action) in enumerate(people)
        ],
    )  # fmt: skip
    seen = [("radar-1", s) for s in (0, 600, 1300, 1800)] + [("radar-2", s) for s in (900, 1000)]
    commit(
        lake,
        OBSERVATIONS,
        [
            {"source_id": name, "source_kind": "radar", "sensor_time_ns": after(s), "received_time_ns": after(s)}
            for name, s in seen
        ],
    )
    for table in (FUSED_TRACKS, PROVISIONAL_ELEMENTS, DEAD_LETTERS):
        commit(lake, table)
    return PinnedView(lake, TABLES_BY_NAME, vector_of(lake, TABLES_BY_NAME, "now"))


def test_active_alerts_have_the_revision_that_holds_and_who_acknowledged_it(view: PinnedView) -> None:
    rows = view.rows("SELECT event_id, level, revision, tca, acknowledged_by FROM active.alerts").to_pylist()
    tca = START + timedelta(hours=1)
    assert rows == [{"event_id": "a", "level": "red", "revision": 1, "tca": tca, "acknowledged_by": "bob"}]
    soon = "SELECT count(*) AS n FROM active.alerts WHERE tca < TIMESTAMP '2024-11-04' AND level = 'red'"
    assert view.rows(soon).to_pylist() == [{"n": 1}]


def test_a_view_reads_a_lake_from_before_its_columns__44(tmp_path: Path) -> None:
    lake, earlier = lake_at(tmp_path, now_ns=after(1800)), replace(CONJUNCTION_ALERTS)
    columns = [c for c in CONJUNCTION_ALERTS.columns if c.name not in ("classification", "data_mode")]
    vars(earlier)["columns"] = tuple(columns)  # a cached property
    commit(lake, earlier, [event("a", 0, "insert")])
    commit(lake, ALERT_ACKNOWLEDGEMENTS)
    view = PinnedView(lake, TABLES_BY_NAME, vector_of(lake, TABLES_BY_NAME, "now"))
    assert "classification" not in view.rows("FROM conjunction_alerts").column_names
    rows = view.rows("SELECT event_id, classification, data_mode FROM active.alerts").to_pylist()
    assert rows == [{"event_id": "a", "classification": None, "data_mode": None}]


def test_events_of_the_fleet_are_those_of_alerts_and_those_below_their_levels(view: PinnedView) -> None:
    rows = view.rows("SELECT event_id, level, assessed_risk FROM fleet.events ORDER BY ALL").to_pylist()
    assert rows == [
        {"event_id": "a", "level": "red", "assessed_risk": "red"},
        {"event_id": "d", "level": None, "assessed_risk": "green"},
    ]


def test_a_condition_on_a_table_beside_a_view_leaves_the_view_whole(view: PinnedView) -> None:
    beside = "SELECT count(*) FROM conjunction_alerts WHERE tca_time_ns < 5"
    sql = f"SELECT ({beside}) AS none, count(*) AS n FROM active.alerts"
    assert view.rows(sql).to_pylist() == [{"none": 0, "n": 1}]


def test_silence_is_what_is_longer_than_the_kind_of_sensor_allows(view: PinnedView) -> None:
    rows = view.rows("SELECT * FROM sensors.silence ORDER BY silent_from").to_pylist()
    found = [(row["source_id"], row["silent_from"], row["silent_until"], row["lasted_s"]) for row in rows]
    assert found == [
        ("radar-1", START + timedelta(seconds=600), START + timedelta(seconds=1300), 700.0),
        ("radar-2", START + timedelta(seconds=1000), None, 800.0),
    ]


def test_a_link_that_was_away_and_caught_up_was_silent_as_the_vital_rang(tmp_path: Path) -> None:
    """Frames of ten minutes came when the link was up again: by their own times nothing is missing."""
    second, came = [0, 60, *range(120, 1000, 60), 1020], [1, 61, *(1000 + n for n in range(15)), 1021]
    rows = [
        {"source_id": "radar-1", "source_kind": "radar", "sensor_time_ns": after(at), "received_time_ns": after(by)}
        for at, by in zip(second, came, strict=True)
    ]
    now_s = 1700
    lake = lake_at(tmp_path, now_ns=after(now_s))
    commit(lake, OBSERVATIONS, rows)
    found = PinnedView(lake, TABLES_BY_NAME, vector_of(lake, TABLES_BY_NAME, "now")).rows("FROM sensors.silence")
    spans = [((row["silent_from"] - START).seconds, row["silent_until"]) for row in found.to_pylist()]
    caught_up_s = 1000 + (420 - 120) // 60
    assert spans == [(60, START + timedelta(seconds=caught_up_s)), (1020, None)]
    for at_s in range(0, now_s, 7):
        known = [at for at, by in zip(second, came, strict=True) if by <= at_s]
        rings = bool(known and silences({"heard/radar-1": after(max(known))}, after(at_s)))
        ends = [(since, now_s if end is None else (end - START).seconds) for since, end in spans]
        assert rings == any(since + 600 < at_s < end for since, end in ends), at_s


def test_each_observation_is_listed_once_with_what_became_of_it(tmp_path: Path) -> None:
    """A fit that was withdrawn uses nothing; what was late and fitted again is used; an unknown object has an orbit."""
    lake = lake_at(tmp_path, now_ns=after(1800))
    names = ("fitted", "withdrawn", "late", "late again", "unknown", "nothing", "new")
    rows = [
        {"observation_id": name, "source_id": "radar-1", "segment_sha256": "s", "record_number": number,
         "sensor_time_ns": after(95 if name == "new" else 10 * number)}
        for number, name in enumerate(names)
    ]  # fmt: skip
    commit(lake, OBSERVATIONS, rows)

    def fit(fit_id: str, op: str, start_s: float, *used: str) -> dict[str, Any]:
        facts = {"norad_id": 7, "window_start_ns": after(start_s), "observation_ids": used, "sequence": 0}
        return {"fit_id": fit_id, "op": op, **facts}

    whole, gone = fit("a", "insert", 90, "fitted", "late again"), fit("b", "insert", 0, "withdrawn")
    commit(lake, FUSED_TRACKS, [whole, gone, {**gone, "op": "retract"}])
    orbits = [{"norad_id": 80_000, "epoch_time_ns": after(s), "observation_ids": ["unknown"]} for s in (40, 60)]
    commit(lake, PROVISIONAL_ELEMENTS, orbits)
    late = {"segment_sha256": "s", "error_kind": "late_observation"}
    letters = [{**late, "record_number": names.index(name)} for name in ("late", "late again")]
    commit(lake, DEAD_LETTERS, [*letters, {**letters[0], "stage": "again"}])
    view = PinnedView(lake, TABLES_BY_NAME, vector_of(lake, TABLES_BY_NAME, "now"))
    found = view.rows(
        "SELECT observation_id, used, norad_id FROM sensors.usage WHERE source_id = 'radar-1'"
    ).to_pylist()
    assert {row["observation_id"]: (row["used"], row["norad_id"]) for row in found} == {
        "fitted": ("fit", 7), "withdrawn": ("no", None), "late": ("late", None), "late again": ("fit", 7),
        "unknown": ("provisional orbit", 80_000), "nothing": ("no", None), "new": ("not yet", None),
    }  # fmt: skip
    assert len(found) == len(names)


def test_the_present_in_sql_is_the_mission_time_or_that_of_a_past_moment(view: PinnedView) -> None:
    lake = view._lake
    row = view.rows("SELECT now() AS a, current_timestamp AS b, today() AS c, age(TIMESTAMP '2024-10-31') AS d")
    now = datetime.fromtimestamp(lake.clock.now_ns() // SECOND_NS, UTC).replace(tzinfo=None)
    assert row.to_pylist() == [{"a": now, "b": now, "c": now.date(), "d": pa.MonthDayNano([0, 1, 0])}]
    assert view.rows("FROM active.alerts WHERE tca < now() + INTERVAL 2 HOUR").num_rows == 1, "no zone shifts it"
    past = PinnedView(lake, TABLES_BY_NAME, vector_of(lake, TABLES_BY_NAME, "mission:2024-11-01T00:30:00Z"))
    assert past.rows("SELECT now() AS a").to_pylist() == [{"a": START + timedelta(minutes=30)}]


@pytest.mark.parametrize("each", QUERY_VIEWS, ids=lambda each: each.name_in_spark)
def test_each_view_has_its_documented_columns_in_both_dialects(view: PinnedView, each: Any) -> None:
    columns = view.rows(f"SELECT * FROM {each.schema}.{each.name}").schema.names
    assert columns == [name for name, _, meaning in each.columns if meaning]
    texts = each.in_duckdb(START_NS), each.in_spark(START_NS)
    assert not any(word in "".join(texts) for word in ("TIME(", "EACH(")) and "NOW_NS" not in "".join(texts)
    assert "active." not in texts[1]
