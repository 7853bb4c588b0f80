"""`sda alert trace` shows who brought each record; rows of earlier versions and lost ones have no sender."""

from pathlib import Path

from sda_platform.catalog.tables import EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.landing.senders import with_senders
from sda_platform.observability.trace import _where, trace_alert, trace_lines
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of
from sda_platform_tests.unit.history.lakes import EVENT, add, approach, decide, elements


def test_each_record_shows_the_sender_of_its_landed_row(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    senders = [("north", "192.0.2.1:7"), ("south", None), (None, None)]
    landed = [
        {"segment_sha256": "a" * 64, "segment_name": "a.bin", "record_number": n, "source_name": source, "peer": peer}
        for n, (source, peer) in enumerate(senders)
    ]
    commit(lake, RAW_RECORDS, landed)
    known = [{name: row[name] for name in ("segment_sha256", "segment_name", "record_number")} for row in landed]
    lost = {"segment_sha256": "b" * 64, "segment_name": "b.bin", "record_number": 0}
    rows = rows_of(OBSERVATIONS, [*known, lost]).to_pylist()

    found = with_senders(lake, RAW_RECORDS, rows)

    assert [(row["source_name"], row["peer"]) for row in found] == [*senders, (None, None)]
    ends = [_where(row).partition("…)")[2] for row in found]
    assert ends == [", from north at 192.0.2.1:7", ", from south", "", ""]


def test_a_trace_names_the_ephemerides_that_the_assessments_rest_on(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    add(lake, ORBITAL_CATALOG, elements(7, 100), elements(8, 100, record=1))
    paths = [{"norad_id": 7, "originator": who, "segment_name": f"{who}.oem", "record_number": 0} for who in "ab"]
    for path in paths:
        add(lake, EPHEMERIDES, {**path, "usable_from_ns": 0, "usable_until_ns": 10**9})
    decide(lake, ephemeris_id_1="a.oem:0", elements_epoch_1_ns=555, elements_epoch_2_ns=100, collision_probability=1e-3)
    found = trace_alert(lake, EVENT)
    assert [each["segment_name"] for each in found.ephemerides] == ["a.oem"]
    assert found.rests_on.startswith("1 ephemeris, 2 element sets, ")
    text = "\n".join(trace_lines(found))
    assert "km by ephemeris of 7 and element set of 8" in text and "ephemeris of 7 by a: " in text


def test_a_withdrawn_alert_says_what_became_of_its_event(tmp_path: Path) -> None:
    """An ephemeris lowers the probability below the levels; then the objects do not come near any more."""
    lake = lake_at(tmp_path)
    decide(lake, collision_probability=1e-3, miss_distance_km=1.0)
    assert trace_alert(lake, EVENT).why_withdrawn == ""
    states = {"state_source_1": "operator_ephemeris", "state_source_2": "element_set"}
    lower = approach(EVENT, 1, collision_probability=4.3e-11, miss_distance_km=2.5, **states)
    add(lake, CONJUNCTION_ASSESSMENTS, approach(EVENT, 0, "retract"), lower)
    add(lake, CONJUNCTION_ALERTS, approach(EVENT, 0, "retract", risk="red", miss_distance_km=1.0))
    found = trace_alert(lake, EVENT)
    expected = (
        "Pc 4.30e-11, miss 2.500 km, by ephemeris and element set, model covariance: below the levels of an alert"
    )
    assert found.why_withdrawn == expected
    assert [line.endswith(f"({expected})") for line in trace_lines(found) if "retract 0" in line] == [True]
    add(lake, CONJUNCTION_ASSESSMENTS, {**lower, "op": "retract"})
    assert trace_alert(lake, EVENT).why_withdrawn == "its objects do not come so near any more"
