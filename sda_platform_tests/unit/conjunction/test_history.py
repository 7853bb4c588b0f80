"""What was stated of an event over time, in words and as a picture."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from sda_platform.cli.alert.show import alert_lines, write_picture
from sda_platform.cli.people import PeopleConsole
from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.event_plot import event_figure, event_picture
from sda_platform.conjunction.history import EventHistory
from sda_platform.markdown_elements import picture as in_markdown
from sda_platform.observability.trace import Trace, trace_lines
from sda_platform.setting_sections import AlertSettings

HOUR_NS = 3600 * 10**9
TCA_NS = 1_730_488_470_000_000_000
TASK = {"source_id": "radar-5", "norad_id": 43800, "start_time_ns": 1_730_420_100_000_000_000, "state": "observed",
        "detail": "", "observations": 5, "request": "satisfied", "expected_gain": 1.5,
        "realised_gain": 1.25}  # fmt: skip
EVENT = "0934bc66-614c-5d5a-83bf-42e80668b610"


def entry(sequence: int, op: str, *, hours: float, tca_s: float = 0.0, pc: float = 2e-4) -> dict[str, Any]:
    """An entry of the assessments' journal, so many hours before TCA, which it moves by ``tca_s``."""
    return {
        "event_id": EVENT, "sequence": sequence, "op": op, "as_of_ns": TCA_NS - round(hours * HOUR_NS),
        "norad_id_1": 43800, "norad_id_2": 53718, "object_name_1": "ICEYE-X2", "object_name_2": "STARLINK-4695",
        "tca_time_ns": TCA_NS + round(tca_s * 1e9), "miss_distance_km": 0.489, "relative_speed_km_s": 8.393,
        "radial_miss_km": -0.010, "in_track_miss_km": -0.407, "cross_track_miss_km": 0.271,
        "mahalanobis_distance": 0.52, "collision_probability": pc, "maximum_probability": 5e-4,
        "hard_body_radius_m": 10.0, "radius_1_m": 5.0, "radius_2_m": 5.0,
        "radius_source_1": "fleet file", "radius_source_2": "default by type",
        "risk": "red" if pc >= 1e-4 else "yellow", "is_2d_valid": True, "risk_flags": "",
        "manoeuvre_time_1_ns": None, "manoeuvre_time_2_ns": None, "state_source_1": "element_set",
        "state_source_2": "fused_track", "track_id_1": None, "track_id_2": "t", "degrees_of_freedom_1": 1.2,
    }  # fmt: skip


def journal(*, withdrawn: bool = False) -> list[dict[str, Any]]:
    """Two assessments, the second of which moved the TCA by 1.5 s; as stored, in no order."""
    entries = [
        entry(1, "insert", hours=19.0, tca_s=1.5),
        entry(0, "retract", hours=19.0, pc=8e-5),
        entry(0, "insert", hours=20.0, pc=8e-5),
    ]
    return [*entries, entry(1, "retract", hours=18.0, tca_s=1.5)] if withdrawn else entries


def opinion(hours: float, stated: float | None) -> dict[str, Any]:
    """A message of others, created so many hours before TCA."""
    return {
        "originator": "18 SDS", "message_id": "m-1", "created_time_ns": TCA_NS - round(hours * HOUR_NS),
        "received_time_ns": TCA_NS, "tca_time_ns": TCA_NS + 10**9, "miss_distance_km": 0.613,
        "stated_probability": stated, "recomputed_probability": 3.25e-5,
    }  # fmt: skip


def folded(entries: list[dict[str, Any]], others: Sequence[dict[str, Any]] = (), **levels: float) -> EventHistory:
    return EventHistory.of_correction_log(entries, others, AlertPolicy(AlertSettings(**levels)))


def told(
    assessments: list[dict[str, Any]], op: str, *others: dict[str, Any], width: int = 140, most: int | None = None
) -> str:
    alerts = [{**assessments[0], "op": op}]
    trace = Trace(
        EVENT, alerts, [{}], assessments, [], [{}, {}], [{"fit_id": "t"}], [{"source_id": "radar-5"}] * 7, others,
        tasks=[TASK],
    )  # fmt: skip
    history = folded(assessments, others)
    console = PeopleConsole(width=width, record=True, file=io.StringIO())
    for line in alert_lines(trace, history, most=most):
        console.print(line)
    return console.export_text()


def test_a_journal_folds_to_what_was_said_and_when() -> None:
    history = folded(journal())
    assert history.is_current
    assert history.values("collision_probability") == [8e-5, 2e-4]
    assert history.hours_to_tca == pytest.approx([20.0, 19.0 + 1.5 / 3600])
    gone = folded(journal(withdrawn=True))
    assert not gone.is_current
    assert gone.last == history.last


def test_an_alert_is_reported_with_who_when_how_near_and_how_that_changed() -> None:
    text = told(journal(), "insert")
    assert f"alert {EVENT}: red, Pc 2.00e-04" in text
    assert "43800 ICEYE-X2 (state from its elements)" in text
    assert "53718 STARLINK-4695 (state from its track)" in text
    assert text.count("errors with long tails: Student's t, 1.2 degrees of freedom") == 1, (
        "those of the track have none"
    )
    assert "2024-11-01T19:14:31.500Z, 19.0 h after the last assessment" in text
    assert "0.489 km (radial -0.010, in-track -0.407, cross-track +0.271) at 8.39 km/s" in text
    assert "+1.500" in text, "how far the TCA moved"
    seen = "observed (5 observations), gain 1.25 of 1.50 expected; request satisfied"
    assert f"tasked     radar-5 at 2024-11-01 00:15:00 for 43800: {seen}" in " ".join(text.split(" "))
    assert "rests on 2 element sets, 1 tracks and 7 observations: 7 of radar-5; sda alert trace 0934bc66" in text


def test_one_scale_of_levels_applies_to_the_whole_history_and_is_stated() -> None:
    own = folded(journal(), red_pc=5e-5)
    assert own.levels == ["red", "red"], "8e-5 is red by this policy, and yellow on the fixed scale of assessments"
    assert folded(journal(), red_pc=1e-3).levels == ["yellow", "yellow"]
    assert own.thresholds == {"yellow": 1e-5, "red": 5e-5}
    assert "by Pc yellow from 1e-05, red from 0.0001" in " ".join(told(journal(), "insert").split())
    _handles, labels = event_figure(own).axes[0].get_legend_handles_labels()
    assert {"red from 5e-05", "yellow from 1e-05"} <= set(labels)


def test_the_last_rows_are_shown_and_how_many_are_not__48() -> None:
    many = [entry(n, "insert", hours=50.0 - n, pc=1e-5 * (n + 1)) for n in range(20)]
    text = told(many, "insert", *(opinion(n, 3e-4) for n in range(4)), most=3)
    assert "without 17 earlier assessments, see --all" in " ".join(text.split())
    assert "without 1 earlier messages, see --all" in " ".join(text.split())
    assert ("34.00" in text, "33.00" in text) == (False, True), "hours to TCA"
    assert "earlier" not in told(many, "insert")


def test_a_trace_shows_the_last_of_each_kind_and_the_whole_on_request__48() -> None:
    seen = [{"source_id": f"radar-{n}", "sensor_time_ns": TCA_NS + n, "segment_name": "s", "record_number": n,
             "segment_sha256": "ab"} for n in range(20)]  # fmt: skip
    alert = {**entry(0, "insert", hours=1.0), "stated_probability": None, "change": "new"}
    trace = Trace(EVENT, [alert], [], [], [], [], [], seen, tasks=[TASK] * 4)
    lines = list(trace_lines(trace, 3))
    kept = ["…", "radar-17", "radar-18", "radar-19", "…", *["radar-5"] * 3]
    assert [line.split()[0] for line in lines[2:]] == kept
    assert "17 earlier observations, see --all" in lines[2]
    assert "radar-5 was to observe 43800 at 2024-11-01T00:15:00.000Z: observed" in lines[-1]
    assert len(list(trace_lines(trace))) == 2 + len(seen) + 4


def test_several_alerts_are_drawn_in_one_picture__48(tmp_path: Path) -> None:
    one, other = folded(journal()), folded(journal(withdrawn=True))
    write_picture([one, other], tmp_path / "several.png")
    assert (tmp_path / "several.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "several.png").read_bytes() != event_picture(one)


def test_no_number_of_the_history_is_cut_on_eighty_columns() -> None:
    text = told(journal(), "insert", width=80)
    for number in ("20.00", "19.00", "+0.000", "+1.500", "0.489", "8.00e-05", "2.00e-04", "red", "yellow"):
        assert number in text, number
    assert "…" not in text


def test_what_others_say_of_it_stands_beside() -> None:
    lines = told(journal(), "insert", opinion(21.0, 2.5e-5), opinion(18.5, None)).splitlines()
    said = [line.split() for line in lines if line.strip().startswith("18 SDS")]
    assert [line[2:] for line in said] == [
        ["2024-10-31", "22:14:30", "-0.500", "0.613", "2.50e-05", "3.25e-05", "m-1"],
        ["2024-11-01", "00:44:30", "-0.500", "0.613", "none", "3.25e-05", "m-1"],
    ]


def test_a_withdrawn_alert_is_shown_as_withdrawn() -> None:
    text = told(journal(withdrawn=True), "retract")
    assert f"alert {EVENT}: withdrawn" in text
    assert "the event is gone" in text


@pytest.mark.parametrize("entries", [journal(withdrawn=True), journal()[2:]])
def test_any_history_has_a_picture(entries: list[dict[str, Any]]) -> None:
    assert event_picture(folded(entries)).startswith(b"\x89PNG\r\n")


def test_the_picture_is_a_png_that_depends_on_the_history_and_nothing_else() -> None:
    entries = journal()
    picture = event_picture(folded(entries))
    assert picture.startswith(b"\x89PNG\r\n")
    assert picture == event_picture(folded(entries[::-1]))
    moved = [{**row, "miss_distance_km": row["miss_distance_km"] + 0.1} for row in entries]
    assert picture != event_picture(folded(moved))
    silent = {**opinion(18.0, None), "originator": None, "recomputed_probability": None}
    assert picture != event_picture(folded(entries, [opinion(18.0, None), silent]))
    assert in_markdown(picture, "alert x").startswith("![alert x](data:image/png;base64,iVBORw0KGgo")


def test_a_picture_that_cannot_be_written_is_reported_with_the_file_and_the_reason(tmp_path: Path) -> None:
    history = folded(journal())
    with pytest.raises(click.ClickException, match=r"a picture is written as \.png"):
        write_picture([history], tmp_path / "a.jpg")
    with pytest.raises(click.ClickException, match=r"nowhere/a\.png: cannot be written: No such file"):
        write_picture([history], tmp_path / "nowhere" / "a.png")
    write_picture([history], tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
