"""The report of the most dangerous alerts: from the journals to the pictures."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sda_platform.conjunction.report import LISTED, SHOWN, report
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, RECEIVED_CDMS
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import after


def metadata_of(lake: Lake) -> Mapping[str, Any]:
    return report(lake, Path(lake.uri) / "pages", "http://127.0.0.1:3100").metadata or {}


@pytest.mark.parametrize("assessments", [1, 3])
def test_the_most_dangerous_alerts_that_hold_are_drawn_in_order(tmp_path: Path, assessments: int) -> None:
    lake = lake_at(tmp_path)
    events = [{"event_id": f"event-{n}", "collision_probability": 1e-6 * n, "risk": "yellow"} for n in range(1, 8)]
    said = [
        {**event, "sequence": n, "op": op, "tca_time_ns": after(3600), "as_of_ns": after(n)}
        for event in events
        for n in range(assessments)
        for op in ("insert", "retract")
        if op == "insert" or n < assessments - 1
    ]
    commit(lake, CONJUNCTION_ASSESSMENTS, said)
    alerts = [{**event, "sequence": 0, "op": "insert"} for event in events]
    commit(lake, CONJUNCTION_ALERTS, [*alerts, {**events[-1], "sequence": 0, "op": "retract"}])
    metadata = metadata_of(lake)
    assert metadata["current_alerts"] == 6
    pictures = [metadata[f"alert_{place}"].value for place in range(1, SHOWN + 1)]
    assert [text[2:15] for text in pictures] == [f"alert event-{n}" for n in (6, 5, 4, 3, 2)]
    assert metadata["console"].value == "http://127.0.0.1:3100/"
    assert metadata["alert_1_page"].value == "http://127.0.0.1:3100/conjunctions/event-6"
    page = Path(metadata[f"alert_{SHOWN}_report"].value)
    assert page == tmp_path / "pages" / "event-2.html" and "2.00e-06" in page.read_text()
    for text in pictures:
        assert base64.b64decode(text.partition("base64,")[2].rstrip(")")).startswith(b"\x89PNG")


def test_a_red_alert_of_small_pc_comes_first_and_no_red_one_is_cut(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    known = {"sequence": 0, "op": "insert", "tca_time_ns": after(3600), "as_of_ns": after(0), "miss_distance_km": 0.1}
    yellow = [{"event_id": f"yellow-{n}", "risk": "yellow", "collision_probability": 2e-5} for n in range(LISTED)]
    red = [{"event_id": f"red-{n:02}", "risk": "red", "collision_probability": 3e-6} for n in range(LISTED + 5)]
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**known, **event} for event in (*yellow, *red)])
    commit(lake, CONJUNCTION_ALERTS, [{**known, **event} for event in (*yellow, *red)])
    metadata = metadata_of(lake)
    listed = [record.data for record in metadata["alerts"].records]
    assert [row["alert"] for row in listed] == [event["event_id"] for event in red]
    assert metadata["alert_1"].value[2:14] == "alert red-00"


def test_received_cdms_of_encounters_ahead_are_listed_next_to_our_assessments(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    assert "received_cdms" not in metadata_of(lake)
    known = {"norad_id_1": 1, "norad_id_2": 2, "tca_time_ns": after(3600), "collision_probability": 2.5e-6}
    commit(lake, CONJUNCTION_ASSESSMENTS, [{"event_id": "ours", "sequence": 0, "op": "insert", **known}])
    said = {"originator": "18 SDS", "object_name_1": "A", "object_name_2": "B", "stated_probability": 4e-5}
    pairs = [(1, 2, after(3601)), (1, 3, after(7200)), (1, 2, after(-9))]
    facts = [
        {**said, "record_number": n, "norad_id_1": a, "norad_id_2": b, "tca_time_ns": tca_ns}
        for n, (a, b, tca_ns) in enumerate(pairs)
    ]
    commit(lake, RECEIVED_CDMS, facts)
    header, _, first, second = metadata_of(lake)["received_cdms"].value.splitlines()
    assert "stated_probability | own_probability | event_id" in header
    assert first.startswith("| 18 SDS | A | B | 2024-11-01 01:00:01") and first.endswith("| 4e-05 | 2.5e-06 | ours |")
    assert second.startswith("| 18 SDS | A | B | 2024-11-01 02:00:00") and "2.5e-06" not in second


def test_without_alerts_nothing_is_drawn(tmp_path: Path) -> None:
    assert report(lake_at(tmp_path), tmp_path / "pages").metadata == {"current_alerts": 0}
