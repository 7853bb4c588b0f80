"""The audit of encodings: what a column costs with each encoding, and what breaks a rule."""

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from sda_platform.archive.encoding_audit import TableAudit, audit_encodings, audit_rows, json_lines_bytes, write_encoded
from sda_platform.archive.footers import ColumnLayout, table_layout
from sda_platform.archive.parquet_profile import UNREADABLE, candidates, encoding_of, file_format
from sda_platform.cli.main import main
from sda_platform.definitions import build_defs
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.registry import TABLES
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, lake_at


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two thousand observations of three radars."""
    lake, chance = lake_at(tmp_path_factory.mktemp("lake")), random.Random(7)
    for number in range(2):
        commit(
            lake,
            OBSERVATIONS,
            [
                {
                    "observation_id": f"{chance.getrandbits(128):032x}", "source_id": f"radar-{chance.randrange(9)}",
                    "segment_sha256": f"{number:064d}", "segment_name": f"radar-segment-{number}", "record_number": n,
                    "sensor_time_ns": (1_000 * number + n) * 10**8, "range_m": chance.uniform(4e5, 4e6),
                }
                for n in range(1_000)
            ],
        )  # fmt: skip
    return lake


@pytest.fixture(scope="module")
def audit(lake: Lake) -> TableAudit:
    (found,) = audit_encodings(lake, TABLES)
    return found


def test_every_column_has_an_encoding_that_its_type_allows_and_the_engine_reads__DL1_A9() -> None:
    for table in TABLES:
        for column in table.columns:
            chosen = encoding_of(table, column)
            assert chosen not in UNREADABLE
            assert chosen in (candidates(column) or ("DICTIONARY",))
    by_name = {column.name: encoding_of(OBSERVATIONS, column) for column in OBSERVATIONS.columns}
    assert by_name["sensor_time_ns"] == by_name["commit_sequence"] == "DELTA_BINARY_PACKED"
    assert (by_name["observation_id"], by_name["source_id"]) == ("DELTA_BYTE_ARRAY", "DICTIONARY")
    written = file_format(OBSERVATIONS, bytes_per_row=64.0)
    assert written.encodings == by_name
    assert (written.codec, written.codec_level, written.row_group_rows) == ("ZSTD", 3, 2**18)


def test_the_audit_measures_each_encoding_that_a_type_allows__DL1_I9(audit: TableAudit) -> None:
    columns = {each.name: each for each in audit.columns}
    assert audit.rows == 2_000
    times = columns["sensor_time_ns"]
    assert set(times.sizes) == {"DICTIONARY", "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"}
    assert (times.chosen, times.best, times.loss_bytes) == ("DELTA_BINARY_PACKED", "DELTA_BINARY_PACKED", 0)
    assert times.sizes["DELTA_BINARY_PACKED"] < times.sizes["PLAIN"] / 5
    assert columns["source_id"].best == "DICTIONARY"
    assert columns["range_m"].best != "BYTE_STREAM_SPLIT", "the engine does not read it"
    assert (audit.choice_problems, audit.reading_problems) == ([], [])
    assert audit.profile_bytes < audit.default_bytes


def test_gzipped_json_lines_hold_the_same_rows__DL1_A7(lake: Lake, audit: TableAudit) -> None:
    rows = lake.log(OBSERVATIONS).rows()
    lines = [{name: v for name, v in row.items() if v is not None} for row in rows.to_pylist()]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    assert json_lines_bytes(rows) == len(gzip.compress(text.encode(), 6, mtime=0)) == audit.json_bytes
    assert audit.gain == audit.json_bytes / audit.profile_bytes
    larger = replace(audit, json_bytes=audit.profile_bytes * 3 // 4)
    assert larger.gain_problems == ["observations: gzipped JSON lines would be 75% of its size"]
    assert replace(larger, rows=999).gain_problems == [], "too few to judge"


def test_a_choice_that_is_no_longer_the_best_is_reported__DL1_I9(audit: TableAudit) -> None:
    times = next(each for each in audit.columns if each.name == "sensor_time_ns")
    changed = replace(audit, columns=[replace(times, chosen="PLAIN")])
    (problem,) = changed.choice_problems
    assert problem.startswith("observations.sensor_time_ns: DELTA_BINARY_PACKED would take ")
    assert problem.endswith("of the table less than PLAIN")


def test_files_that_the_engine_does_not_read_are_reported__DL1_I9(audit: TableAudit) -> None:
    stored = ColumnLayout("range_m", 1, 1, {"BYTE_STREAM_SPLIT", "RLE"}, {"ZSTD"})
    changed = replace(audit, layout=replace(audit.layout, columns=[stored]))
    assert changed.reading_problems == ["observations.range_m: BYTE_STREAM_SPLIT"]


def test_rows_are_the_same_whatever_their_encoding__DL1_A2(lake: Lake, tmp_path: Path) -> None:
    rows = lake.log(OBSERVATIONS).rows()
    write_encoded(rows, str(tmp_path / "profile"), {c.name: encoding_of(OBSERVATIONS, c) for c in OBSERVATIONS.columns})
    assert pq.read_table(tmp_path / "profile").equals(rows)
    again = audit_rows(OBSERVATIONS, rows, table_layout(lake.log(OBSERVATIONS)))
    assert again.profile_bytes == audit_rows(OBSERVATIONS, rows, again.layout).profile_bytes


def test_the_audit_is_an_asset_and_a_command(lake: Lake) -> None:
    settings = Settings(home=Path(lake.uri).parent / "home", lake=lake.uri)
    job = build_defs(settings=settings).resolve_job_def("archive_encodings")
    result = job.execute_in_process(instance=dg.DagsterInstance.ephemeral())
    checks = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert checks == dict.fromkeys(("encodings_are_best", "engine_reads_encodings", "smaller_than_json_lines"), True)
    (made,) = result.asset_materializations_for_node("archive__encoding_audit")
    assert "| observations | 2,000 | " in str(made.metadata["tables"].value)
    assert "| observations | 2 | 2 | " in str(made.metadata["footers"].value)
    runner, options = CliRunner(), {"SDA_LAKE": lake.uri, "SDA_HOME": f"{lake.uri}/../home"}
    shown = runner.invoke(main, ["layout", "observations", "--encodings"], env=options).stdout
    assert "observations: 2,000 rows in " in shown
    assert "DELTA_BINARY_PACKED" in shown
    (facts,) = json.loads(runner.invoke(main, ["layout", "all", "--encodings", "--json"], env=options).stdout)
    assert (facts["table"], facts["rows"], facts["columns"][0]["chosen"]) == (
        "observations",
        2_000,
        "DELTA_BINARY_PACKED",
    )
