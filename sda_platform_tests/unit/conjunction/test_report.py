"""The report of the most dangerous alerts: from the journals to the pictures."""

import base64
from pathlib import Path

import pytest

from sda_platform.conjunction.report import SHOWN, report
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform_tests.delta_tables import commit, lake_at
from sda_platform_tests.segments import after


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
    metadata = report(lake).metadata or {}
    assert metadata["standing_alerts"] == 6
    pictures = [metadata[f"alert_{place}"].value for place in range(1, SHOWN + 1)]
    assert [text[2:15] for text in pictures] == [f"alert event-{n}" for n in (6, 5, 4, 3, 2)]
    for text in pictures:
        assert base64.b64decode(text.partition("base64,")[2].rstrip(")")).startswith(b"\x89PNG")


def test_without_alerts_nothing_is_drawn(tmp_path: Path) -> None:
    assert report(lake_at(tmp_path)).metadata == {"standing_alerts": 0}
