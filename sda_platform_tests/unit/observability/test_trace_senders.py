"""`sda alert trace` shows who brought each record; rows of earlier versions and lost ones have no sender."""

from pathlib import Path

from sda_platform.catalog.tables import EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.landing.senders import with_senders
from sda_platform.observability.trace import _where, trace_alert, trace_lines
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of
from sda_platform_tests.unit.history.lakes import EVENT, add, decide, elements


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
