"""`as_of` of what rests on tables of the lake: alerts, conjunctions and the schedule as they were; and their dates."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.catalog.tables import SATELLITE_CATALOG, SATELLITE_RECORDS
from sda_platform.clock import iso
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.table import Table
from sda_platform.recovery.review import review
from sda_platform.serving.first_seen import FirstSeen
from sda_platform.serving.kept_views import NotKept
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.unit.serving.endpoint import endpoint_over

APPROACH = {"event_id": "e", "norad_id_1": 25544, "norad_id_2": 5, "tca_time_ns": after(3600), "op": "insert"}
TASK = {
    "request_id": "e", "norad_id": 5, "status": "scheduled", "source_id": "s", "start_time_ns": after(60),
    "end_time_ns": after(120), "op": "insert",
}  # fmt: skip
CASES: dict[str, tuple[Table, dict[str, Any], str, tuple[Any, Any]]] = {
    "/alerts": (CONJUNCTION_ALERTS, {**APPROACH, "status": "open"}, "risk", ("yellow", "red")),
    "/objects/5/conjunctions": (CONJUNCTION_ASSESSMENTS, APPROACH, "risk", ("yellow", "red")),
    "/schedule": (PASS_SCHEDULE, TASK, "source_id", ("radar-1", "radar-2")),
}


@pytest.mark.parametrize("path", CASES)
def test_the_past_of_a_table_is_what_its_commits_of_then_said__44(tmp_path: Path, path: str) -> None:
    table, row, name, (before, now) = CASES[path]
    with endpoint_over(tmp_path) as (client, lake):
        commit(lake, table, [{**row, "sequence": 0, name: before}], as_of_ns=after(10))
        retracted = {**row, "sequence": 0, "op": "retract", name: before}
        commit(lake, table, [retracted, {**row, "sequence": 1, name: now}], as_of_ns=after(20))

        def found(time_ns: int | None) -> list[Any]:
            query = "" if time_ns is None else f"?as_of={iso(time_ns)}"
            answer = client.get(f"{path}{query}")
            assert answer.status_code == 200, answer.text
            return [each[name] for each in answer.json()]

        assert [found(time_ns) for time_ns in (START_NS, after(10), after(15), after(20), None)] == [
            [], [before], [before], [now], [now],
        ]  # fmt: skip


def test_the_date_of_an_answer_is_when_its_content_was_first_seen__44() -> None:
    seen = FirstSeen(most=2)
    assert [seen.since_s("/alerts", content, now) for content, now in (("a", 1.0), ("a", 2.0), ("b", 3.0))] == [1, 1, 3]
    assert seen.since_s("/alerts", "a", 4.0) == 4, "what comes back is new"
    for address in ("/schedule", "/other"):
        seen.since_s(address, "a", 5.0)
    assert seen.since_s("/alerts", "a", 6.0) == 6, "a forgotten address has a later date, never an earlier one"


def test_answers_from_tables_have_a_date_that_gives_304__44(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_730_000_000.5
    monkeypatch.setattr("sda_platform.serving.conditional.time.time", lambda: now_s)
    with endpoint_over(tmp_path) as (client, _):
        for path in CASES:
            assert "last-modified" not in client.get(path).headers, "within the second of a change no date is safe"
        now_s += 10
        for path in CASES:
            date = client.get(path).headers["last-modified"]
            assert client.get(path, headers={"If-Modified-Since": date}).status_code == 304


def test_predictions_and_arrivals_are_read_from_the_lake__44(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, lake):
        stated = {"norad_id": 5, "predicted_decay_time_ns": after(9), "segment_sha256": "ab" * 32, "feed": "satellites"}
        rows = [{**stated, "record_number": n, "received_time_ns": START_NS - 5 + n} for n in range(2)]
        other = {**rows[1], "record_number": 2, "predicted_decay_time_ns": after(7)}
        commit(lake, SATELLITE_RECORDS, [*rows, other, {**rows[0], "record_number": 3, "error_kind": "bad_field"}])
        head = lake.log(SATELLITE_RECORDS).head()
        window = TableWindow(SATELLITE_RECORDS.name, 0, head.sequence, -1, head.commit_version, head.manifest_sha256)
        commit(lake, SATELLITE_CATALOG, [{"norad_id": 5, "decay_is_decided": False}], windows=[window])
        review(lake, SATELLITE_CATALOG)
        source = client.app.state.live.source
        times = [each["predicted_decay_time_ns"] for each in source.satellites().predictions]
        assert times == [after(9), after(7)], "a repeated statement counts once"
        binding = source.newest()
        assert binding is not None
        received = source.received_between(binding, (0, after(10**6)), 10)
        assert sorted(received["norad_id"].to_pylist()) == [5, 11, 25544]
        assert source.received_between(binding, (0, after(10**6)), 2).num_rows == 2
        assert source.received_between(binding, (after(10**6), after(10**7)), 2).num_rows == 0


def test_facts_about_satellites_are_those_of_then_as_far_as_they_are_kept__44(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint_over(tmp_path) as (client, lake):
        for number, kind, time_ns in ((5, "PAYLOAD", START_NS - 2), (11, "DEBRIS", START_NS)):
            commit(lake, SATELLITE_CATALOG, [{"norad_id": number, "object_type": kind, "decay_is_decided": False}],
                   as_of_ns=time_ns)  # fmt: skip
        review(lake, SATELLITE_CATALOG)
        live = client.app.state.live
        live.refresh()

        def kinds(time_ns: int) -> list[str | None]:
            with live.view() as view:
                satellites = view.past(time_ns).satellites
                return [satellites.of(number).get("object_type") for number in (5, 11)]

        assert kinds(START_NS) == ["PAYLOAD", "DEBRIS"]
        assert kinds(START_NS - 1) == ["PAYLOAD", None]
        assert kinds(START_NS - 3) == [None, None]

        def gone(*_: object) -> int:
            raise NotKept("cut")

        monkeypatch.setattr("sda_platform.runtime.served_satellites.version_at", gone)
        assert kinds(START_NS - 1) == ["PAYLOAD", "DEBRIS"], "of a version that is gone, those of now"
