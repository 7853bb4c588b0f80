"""From segments to bronze rows: one row per record, good or bad, each with where it came from."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.observations import decode_segments
from sda_platform.formats.segments import Origin, SegmentMeta
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.contract import violations
from sda_platform.landing.decode_attempts import DecodeAttempts
from sda_platform.landing.decoding import DecodedBatch, decode_batch
from sda_platform.landing.owners import Owners
from sda_platform.landing.segments import LoadedSegment
from sda_platform_tests.support.segments import after, described, radar_payloads, radar_segment

DATA = radar_segment(3)


def loaded(
    data: bytes, *, name: str = "a", meta: SegmentMeta | None = None, defect: str | None = None
) -> LoadedSegment:
    return LoadedSegment("radar", name, hashlib.sha256(data).hexdigest(), data, meta or described(data), defect)


def decoded(*segments: LoadedSegment) -> DecodedBatch:
    return decode_batch(RAW_RECORDS, segments, decode_segments)


def records(batch: DecodedBatch) -> dict[str, int]:
    return {name: batch.counts[name] for name in ("landed", "valid", "dead")}


def facts(batch: DecodedBatch, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in batch.rows.select(columns).to_pylist()]


def test_each_record_is_a_row_with_its_provenance() -> None:
    batch = decoded(loaded(DATA))
    sha256 = hashlib.sha256(DATA).hexdigest()
    assert facts(batch, "segment_sha256", "segment_name", "record_number", "feed", "error") == [
        (sha256, "a", n, "radar", None) for n in range(3)
    ]
    assert batch.rows.column("payload").to_pylist() == radar_payloads(3)
    assert records(batch) == {"landed": 3, "valid": 3, "dead": 0}


def test_the_rows_have_the_tables_columns_and_keep_its_contract() -> None:
    batch = decoded(loaded(DATA), loaded(b"", name="b", defect="b: metadata without data"))
    declared = [f for f in RAW_RECORDS.arrow_schema if f.name != "commit_sequence"]
    assert [(f.name, f.type) for f in batch.rows.schema] == [(f.name, f.type) for f in declared]
    stamped = batch.rows.append_column("commit_sequence", pa.array([1] * batch.rows.num_rows, pa.int64()))
    assert violations(RAW_RECORDS, stamped) == []


def test_a_record_that_cannot_be_read_says_file_record_and_reason() -> None:
    good, _, last = radar_payloads(3)
    batch = decoded(loaded(pack_records([good, b"short", last], [after(1)] * 3)))
    assert facts(batch, "record_number", "error_kind", "error") == [
        (0, None, None),
        (1, "bad_length", "radar/a record 1: radar frame has 5 bytes, must have 60"),
        (2, None, None),
    ]
    assert records(batch) == {"landed": 3, "valid": 2, "dead": 1}


@pytest.mark.parametrize("claimed", [2, 4])
def test_a_segment_with_another_number_of_records_than_promised_is_one_row_that_says_so(claimed: int) -> None:
    meta = replace(described(DATA), records=claimed)
    batch = decoded(loaded(DATA, meta=meta))
    assert facts(batch, "record_number", "error_kind", "error") == [
        (-1, "undecodable_segment", f"radar/a: the decoder ends with 3 records, metadata says {claimed}")
    ]
    assert [(s.records, s.defect) for s in batch.segments] == [
        (1, f"a: the decoder ends with 3 records, metadata says {claimed}")
    ]


def test_a_defective_segment_is_one_row_and_the_others_are_whole() -> None:
    batch = decoded(loaded(b"torn", name="bad", defect="bad: truncated"), loaded(DATA))
    assert facts(batch, "segment_name", "record_number", "error") == [
        ("bad", -1, "radar/bad: truncated"),
        *(("a", n, None) for n in range(3)),
    ]
    assert records(batch) == {"landed": 4, "valid": 3, "dead": 1}


def test_a_source_is_sound_if_at_most_one_in_eight_of_its_records_cannot_be_read() -> None:
    def of(source: str, good: int, bad: int, defect: str | None = None) -> LoadedSegment:
        data = pack_records([*radar_payloads(good), *[b"short"] * bad], [after(1)] * (good + bad))
        meta = replace(described(data), origins=(Origin(good + bad, source),))
        return loaded(data, name=f"{source} {good}", meta=meta, defect=defect)

    segments = [of("few", 7, 1), of("more", 6, 1), of("whole", 2, 0), of("torn", 1, 0, "torn 1: metadata without data")]
    segments += [of("two", 9, 0), of("two", 0, 1), of("none", 0, 0)]
    assert decoded(*segments).sound_sources == {"few", "whole", "two"}
    assert decoded(loaded(DATA)).sound_sources == {"radar/"}, "of unknown senders the zone"


def test_the_next_run_knows_which_sources_were_sound(tmp_path: Path) -> None:
    note, owners = UPath(tmp_path) / ".decoding" / "table.json", Owners()
    assert DecodeAttempts.load(note, owners).sound_sources == ()
    begun = DecodeAttempts(limit=2, sound_sources=("old",)).begin(note, [loaded(DATA)], owners.own())
    assert DecodeAttempts.load(note, owners).sound_sources == ("old",), "while a batch is decoded"
    begun.end(note, {"b", "a"})
    found = DecodeAttempts.load(note, owners)
    assert (found.sound_sources, found.limit, found.is_open) == (("a", "b"), 4, False)
    for torn in (b"[]", b"{", b'{"sound_sources": 7}'):
        note.write_bytes(torn)
        assert DecodeAttempts.load(note, owners) == DecodeAttempts()


def test_no_segments_are_no_rows() -> None:
    assert decoded().rows.num_rows == 0


@given(st.lists(st.tuples(st.binary(max_size=200), st.booleans()), max_size=4))
def test_any_bytes_become_as_many_rows_as_they_have_records(contents: Sequence[tuple[bytes, bool]]) -> None:
    segments = [loaded(data, name=str(n), defect="torn" if torn else None) for n, (data, torn) in enumerate(contents)]
    batch = decoded(*segments)
    assert batch.counts["landed"] == batch.rows.num_rows == batch.counts["valid"] + batch.counts["dead"]
    for ref in batch.segments:
        assert pc.sum(pc.equal(batch.rows.column("segment_name"), ref.name)).as_py() in (ref.records, None)
