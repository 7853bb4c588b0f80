"""What arrived as C leaves as C: an assessment keeps the marking of the states that it used, and every exit has it.

One pair, a marked element set and an unmarked ephemeris or set, goes through the transforms into a lake, and from there
to each reader. A later, unmarked set of the same object changes nothing of what was concluded from the marked one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from sda_platform.catalog.orbits import catalogue_ahead
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.cli.alert.message import alert_message
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, alerts_of, events_table
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.data_origins import origins_of_events
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.console.conjunction_cells import table_row
from sda_platform.console.overview import Overview
from sda_platform.delivery.outbox import planned_batches
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.webhook_messages import Entries
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.markings import MARKS, Marking, stated_in
from sda_platform.fusion.tables import TRACKS
from sda_platform.history.daily_files import write_daily_files
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.notification.due import DueAlert
from sda_platform.notification.message import message_of
from sda_platform.notification.situation import AlertReader
from sda_platform.observability.trace import trace_event
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.recovery.review import review
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.runtime.submitted_ephemerides import _messages
from sda_platform.setting_sections import AlertSettings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.small_catalogue import committed, sets_of

EVENT = "3f2a-event"
PAIR = {"event_id": [EVENT], "norad_id_1": [25544], "norad_id_2": [5], "tca_time_ns": [after(3600)]}
EXERCISE = Marking("C", "EXERCISE")
RED = {"collision_probability": 1e-3, "risk": "red", "is_2d_valid": True, "mahalanobis_distance": 1.0}
POLICY = AlertPolicy(AlertSettings())


def assessed(lake: Lake, *, keeps_markings: bool = True) -> dict[str, Any]:
    """The assessment of the pair by the sets in force, made a red one."""
    sets = lake.log(ELEMENT_SETS).head()
    snapshot = TableSnapshot(ELEMENT_SETS.name, sets.version, sets.sequence)
    catalogue = catalogue_ahead(lake, lake.log(ORBITAL_CATALOG).version(), snapshot, after(7200))
    no_track = Tracks.of(TRACKS.arrow_schema.empty_table().select(TRACK_COLUMNS))
    paths, sizes = OperatorEphemerides.none(), ObjectSizes({})
    given = (pa.table(PAIR), catalogue, no_track, paths, Volume.sphere(50.0), sizes)
    (row,) = assess_candidates(*given, keeps_markings=keeps_markings).to_pylist()
    return {**row, **RED}


def alert_of(row: Mapping[str, Any], sent: Mapping[str, Any] | None = None, message: Any = None) -> dict[str, Any]:
    facts = {EVENT: {name: row[name] for name in ASSESSED_COLUMNS[1:]}} if row else {}
    events = events_table(facts, {EVENT: message} if message else {}, {EVENT: sent} if sent else {})
    (found,) = alerts_of(events, POLICY, START_NS).to_pylist()
    return dict(found)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """The alert of a pair, one of whose sets was C and of an exercise when it was assessed, and is not any more."""
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")
    marked = [{**each, **EXERCISE.columns()} if each["norad_id"] == 5 else each for each in sets_of([5, 25544])]
    committed(lake, marked)
    row = assessed(lake)
    entry = {"sequence": 0, "op": "insert", "as_of_ns": START_NS}
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**row, **entry}])
    commit(lake, CONJUNCTION_ALERTS, [{**alert_of(row), **entry}])
    for table in (CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS):
        review(lake, table)
    committed(lake, sets_of([5], epoch_time_ns=START_NS, classification="U", segment_sha256="cd" * 32))
    return lake


def test_an_assessment_has_the_marks_of_each_side_and_the_alert_the_highest__44(lake: Lake) -> None:
    (row,) = lake.log(CONJUNCTION_ASSESSMENTS).rows().to_pylist()
    assert (Marking.of(row, "_1"), Marking.of(row, "_2")) == (("U", None), EXERCISE), "a mode has no default"
    (alert,) = lake.log(CONJUNCTION_ALERTS).rows().to_pylist()
    assert Marking.of(alert) == EXERCISE
    earlier = assessed(lake, keeps_markings=False)
    assert Marking.of(alert_of(earlier)) == (None, None), "as a replay of an earlier release's commit must be"


def test_every_answer_of_now_and_of_the_past_is_marked__44(lake: Lake, tmp_path: Path) -> None:
    source = LakeSource(lake, str(tmp_path / "landing"))
    for as_of_ns in (None, START_NS):
        (alert,), (conjunction,) = source.alerts(as_of_ns), source.conjunctions(5, as_of_ns)
        assert Marking.of(alert) == Marking.of(conjunction) == EXERCISE
    assert source.alerts()[0]["data_of_2"] == "[C, EXERCISE]"
    for feed in ("alerts", "conjunctions"):
        (event,) = source.feed_rows(feed, 1).to_pylist()
        assert Marking.of(event) == EXERCISE, feed
    schemas = source.row_schemas().values()
    assert all({*MARKS} <= schema["properties"].keys() for schema in list(schemas)[:2])


def test_every_delivery_is_marked__44(lake: Lake, tmp_path: Path) -> None:
    (batch,) = planned_batches("a", lake.log(CONJUNCTION_ALERTS).rows())
    (hook,) = Entries.of(batch.entries).entries
    subscriber = SqliteSubscriber(tmp_path / "subscriber.sqlite")
    batch.send(subscriber)
    (held,) = subscriber.held()
    assert Marking.of(hook.alert) == Marking.of(json.loads(held.body)) == EXERCISE


def test_people_read_the_marking_first__44(lake: Lake, tmp_path: Path) -> None:
    (alert,) = AlertReader(lake, str(tmp_path / "landing")).now().alerts.values()
    message = message_of("desk", [DueAlert(alert, "begun")], [], START_NS)
    assert message is not None
    assert message.title.startswith("[C, EXERCISE] red begun: ")
    assert message.body.startswith("[C, EXERCISE] red, begun: ")
    assert Marking.of(message.alerts[0]) == EXERCISE


def test_every_file_and_message_is_marked__44(lake: Lake, tmp_path: Path) -> None:
    day = write_daily_files(lake, tmp_path).path
    (alert,) = json.loads((day / "alerts.json").read_text())
    assert Marking.of(alert) == EXERCISE
    (row,) = lake.log(CONJUNCTION_ASSESSMENTS).rows().to_pylist()
    messages = [
        (day / "cdms" / f"{EVENT}.cdm").read_bytes(), alert_message(lake, EVENT, "kvn"), _messages(lake, [row], "kvn"),
    ]  # fmt: skip
    for each in messages:
        assert stated_in(read_cdm(each).comments) == EXERCISE
    story = trace_event(lake, EVENT)  # the rows of an evidence bundle
    assert Marking.of(story.alerts[0]) == Marking.of(story.assessments[0], "_2") == EXERCISE


def test_console_and_command_line_show_it__44(lake: Lake, tmp_path: Path) -> None:
    (row,) = Overview.of(lake, {}).rows
    assert Marking.of(row) == EXERCISE
    assert "<strong>[C, EXERCISE]</strong>" in str(table_row({**row}, START_NS))
    (batch,) = planned_batches("a", lake.log(CONJUNCTION_ALERTS).rows())
    batch.send(SqliteSubscriber(tmp_path / "subscriber.sqlite"))

    def sda(*arguments: str) -> str:
        answer = CliRunner().invoke(main, ["--home", str(tmp_path), *arguments])
        assert answer.exit_code == 0, answer.output
        return answer.stdout

    (listed,) = json.loads(sda("alert", "list", "--json"))
    assert Marking.of(listed) == EXERCISE
    assert "[C, EXERCISE]" in sda("alert", "list")
    assert "marked     classification C, data mode EXERCISE" in sda("alert", "show", EVENT)
    sda("alert", "report", EVENT, "--out", str(tmp_path / "page.html"))
    assert "<strong>[C, EXERCISE] </strong>" in (tmp_path / "page.html").read_text()


def test_what_no_source_states_is_not_known_and_not_unclassified__44(lake: Lake) -> None:
    (row,) = lake.log(CONJUNCTION_ASSESSMENTS).rows().to_pylist()
    by_track = {**row, **Marking().columns("_1"), **Marking("U", "REAL").columns("_2")}
    assert Marking.of(alert_of(by_track)) == (None, None)
    origins = origins_of_events(lake, [EVENT])
    assert {key[1]: each.marking for key, each in origins.items()} == {1: ("U", None), 2: EXERCISE}


def test_the_marking_of_a_received_message_counts_too__44(lake: Lake) -> None:
    (row,) = lake.log(CONJUNCTION_ASSESSMENTS).rows().to_pylist()
    message = {
        "norad_id_1": 5, "norad_id_2": 25544, "tca_time_ns": row["tca_time_ns"], "miss_distance_km": 0.1,
        "stated_probability": 1e-3, "stated_by": "CSpOC", **Marking("S", "REAL").columns(),
    }  # fmt: skip
    assert Marking.of(alert_of(row, message=message)) == ("S", "EXERCISE")
    assert Marking.of(alert_of({}, message=message)) == ("S", "REAL")


@pytest.mark.parametrize(
    ("before", "now", "is_news"),
    [
        (("U", "REAL"), ("C", "REAL"), True),
        (("U", "REAL"), (None, None), False),
        (("C", "REAL"), (None, None), True),
        (("C", "EXERCISE"), ("C", "EXERCISE"), False),
        ((None, None), ("U", "REAL"), False),
        ((None, None), ("U", "EXERCISE"), True),
    ],
)
def test_an_alert_is_sent_again_when_its_readers_must_treat_it_otherwise__44(
    lake: Lake, before: tuple[str, str], now: tuple[str, str], is_news: bool
) -> None:
    (row,) = lake.log(CONJUNCTION_ASSESSMENTS).rows().to_pylist()
    sent = alert_of({**row, **Marking(*before).columns("_1"), **Marking(*before).columns("_2")})
    del sent["event_id"]
    after_it = alert_of({**row, **Marking(*now).columns("_1"), **Marking(*now).columns("_2")}, sent)
    assert after_it["change"] == ("marking" if is_news else "new")
