"""`sda alert trace` shows who brought each record; rows of earlier versions and lost ones have no sender."""

from pathlib import Path

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.landing.senders import with_senders
from sda_platform.observability.trace import _where
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of


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
