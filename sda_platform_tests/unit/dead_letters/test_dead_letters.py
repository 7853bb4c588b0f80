"""Dead letters of every version are read, unknown ones are omitted, and each names the remedy (DP5-Q3)."""

import pyarrow as pa

from sda_platform.dead_letters.rejected import all_letters, late_letters, migrated_from_v1, read_dead_letters
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.ingest.tables import RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.lake.contract import violations
from sda_platform_tests.support.delta_tables import row, rows_of


def letter(version: int, number: int = 0, **values: object) -> dict[str, object]:
    """A row of dead_letters as this version wrote it."""
    kept = {"feed": "radar", "stage": "raw_records", "error_kind": "bad_length", "segment_sha256": "s", "payload": b"x"}
    newer = {"error_class": "permanent", "rejected_time_ns": 9, "retry_count": 1, "segment_format": "radar-frames"}
    layout = {**kept, **(newer if version > 1 else {}), **values}
    return row(DEAD_LETTERS, schema_version=version, record_number=number, received_time_ns=5, **layout)


def test_letters_of_both_versions_are_read_in_the_newest_layout__DP5_Q3() -> None:
    rows = rows_of(DEAD_LETTERS, [letter(2, 1, source_id="radar-7"), letter(1, 0)])
    (first, second), unknown = read_dead_letters(rows)
    assert unknown == 0
    assert (first.error_class, first.segment_format, first.rejected_time_ns, first.retry_count, first.source) == (
        "permanent", "radar-frames", 5, 0, "radar",
    )  # fmt: skip
    assert (second.rejected_time_ns, second.retry_count, second.source) == (9, 1, "radar-7")


def test_a_letter_of_a_version_that_no_one_here_knows_is_left_out_and_counted__DP5_Q3() -> None:
    letters, unknown = read_dead_letters(rows_of(DEAD_LETTERS, [letter(3, 0), letter(2, 1), letter(99, 2)]))
    assert ([each.record_number for each in letters], unknown) == ([1], 2)


def test_a_migrated_letter_keeps_the_contract_of_the_newest_version__DP5_Q3() -> None:
    migrated = migrated_from_v1(letter(1))
    assert migrated["schema_version"] == 2
    assert violations(DEAD_LETTERS, rows_of(DEAD_LETTERS, [migrated])) == []


def test_a_v1_letter_of_a_feed_with_several_formats_does_not_guess_which() -> None:
    assert migrated_from_v1(letter(1, feed="elements"))["segment_format"] is None


def test_a_kind_that_no_one_classified_breaks_the_contract__DP5_F13() -> None:
    (violation,) = violations(DEAD_LETTERS, rows_of(DEAD_LETTERS, [letter(2, error_kind="new_kind")]))
    assert violation.column == "error_kind"


def test_a_late_observation_becomes_a_letter_with_its_bytes_and_says_why() -> None:
    key = {"segment_sha256": "s", "segment_name": "a", "received_time_ns": 8}
    late = rows_of(RAW_RECORDS, [{**key, "record_number": 3, "sensor_time_ns": 4, "source_id": "radar-7"}])
    raw = rows_of(
        RAW_RECORDS,
        [
            {**key, "record_number": n, "payload": b"%d" % n, "feed": "radar", "segment_format": "radar-frames"}
            for n in range(5)
        ],
    )
    columns = ["segment_sha256", "segment_name", "record_number", "received_time_ns", "source_id", "sensor_time_ns"]
    told = late_letters(late.select(columns), raw, "fused_tracks", 9)
    stamped = told.append_column("commit_sequence", pa.array([1], pa.int64()))
    ((found,), _) = read_dead_letters(stamped)
    assert (found.payload, found.error_kind, found.stage, found.source, found.rejected_time_ns) == (
        b"3", "late_observation", "fused_tracks", "radar-7", 9,
    )  # fmt: skip
    assert found.error == "radar/a record 3: measured at sensor_time_ns 4, after its window was closed"


def test_every_error_and_nothing_else_is_a_dead_letter() -> None:
    kinds = [None, "bad_json", "a kind of a later version"]
    raw = rows_of(
        RAW_RECORDS,
        [{"record_number": n, "error_kind": k, "error": k, "reprocess_count": n or None} for n, k in enumerate(kinds)],
    )
    frames = rows_of(TELEMETRY_FRAMES, [{"record_number": 7, "error_kind": "bad_length", "error": "short"}])
    others = rows_of(DEAD_LETTERS, [letter(2, 9)]).select(DEAD_LETTERS.content_schema.names)
    letters = all_letters(others, raw, frames, stages=["raw_records", "telemetry_frames"], as_of_ns=7)
    assert letters.schema == DEAD_LETTERS.content_schema
    columns = ("stage", "record_number", "error_kind", "error_class", "rejected_time_ns", "retry_count")
    assert [tuple(each[name] for name in columns) for each in letters.to_pylist()] == [
        ("raw_records", 1, "bad_json", "permanent", 7, 1),
        ("raw_records", 2, "a kind of a later version", "permanent", 7, 2),
        ("telemetry_frames", 7, "bad_length", "permanent", 7, 0),
        ("raw_records", 9, "bad_length", "permanent", 9, 1),
    ]
    assert {each["schema_version"] for each in letters.to_pylist()} == {2}
