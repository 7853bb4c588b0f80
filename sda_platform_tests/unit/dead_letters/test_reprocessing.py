"""The way back from dead letters: byte for byte, once, whatever is queried how often (DP5-F8, Q7, G2, I22, I23)."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.dead_letters.rejected import DeadLetterRecord
from sda_platform.dead_letters.reprocessing import DeadLetterFilter, ReprocessReport, Return, put_back, returns_of
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.cutting import can_be_packed, pack_segment, split_records
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.observations import decode_segments
from sda_platform.formats.segments import Origin
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.manifest import GENESIS, CommitManifest
from sda_platform.landing import intake
from sda_platform.landing.decoding import DecodedBatch, decode_batch
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.segments import after, catalogue_of, described, land, radar_payloads

LETTER = DeadLetterRecord(
    commit_sequence=1,
    stage="raw_records",
    feed="radar",
    segment_sha256="s",
    segment_name="a",
    record_number=0,
    received_time_ns=after(1),
    error_kind="bad_length",
    error="radar/a record 0: radar frame has 5 bytes, must have 60",
    payload=b"short",
    error_class="permanent",
    source_id=None,
    segment_format="radar-frames",
    source_name=None,
    peer=None,
    rejected_time_ns=after(2),
    retry_count=0,
)


def letters_of(*payloads: bytes, **values: object) -> list[DeadLetterRecord]:
    return [replace(LETTER, record_number=n, payload=p, **values) for n, p in enumerate(payloads)]  # type: ignore[arg-type]


def records(batch: DecodedBatch) -> dict[str, int]:
    return {name: batch.counts[name] for name in ("landed", "valid", "dead")}


def bring_back(letters: Sequence[DeadLetterRecord], root: Path) -> ReprocessReport:
    return put_back(*returns_of(letters, str(root)), str(root))


class Zone:
    """A landing zone and a table that takes what waits in it, without an engine."""

    def __init__(self, root: Path, feed: str = "radar") -> None:
        self.zone = LandingZone(str(root), feed)
        self.head = Head()
        self.observed: set[str] = set()

    def take(self) -> DecodedBatch:
        """Consume what waits; the observations it holds are remembered."""
        segments = intake.take([self.zone], self.head, max_segments=10**4, max_bytes=10**9)
        batch = decode_batch(RAW_RECORDS, segments, decode_segments)
        manifest = CommitManifest(
            RAW_RECORDS.name, self.head.sequence + 1, GENESIS, 0, "run", "n", segments=batch.segments
        )
        self.head = Head(manifest.sequence, manifest.sequence, Commit(manifest.sequence, 0, 0, manifest))
        intake.finish_last_commit([self.zone], self.head)
        self.observed |= set(batch.rows.column("observation_id").drop_null().to_pylist())
        return batch

    def letters(self, batch: DecodedBatch) -> list[DeadLetterRecord]:
        """The dead letters of a batch, as its commit would have them."""
        dead = [r for r in batch.rows.to_pylist() if r["error_kind"]]
        return [
            replace(
                LETTER,
                commit_sequence=self.head.sequence,
                **{name: r[name] for name in ("feed", "segment_sha256", "segment_name", "record_number", "payload")},
                **{name: r[name] for name in ("received_time_ns", "error_kind", "error", "segment_format")},
                **{name: r[name] for name in ("source_name", "peer")},
                retry_count=r["reprocess_count"] or 0,
            )
            for r in dead
        ]


def test_records_go_back_byte_for_byte_with_their_times_and_say_how_often(tmp_path: Path) -> None:
    assert bring_back(letters_of(b"one", b"two"), tmp_path) == ReprocessReport(2, 0, ())
    (segment,) = LandingZone(str(tmp_path), "radar").pending()
    assert segment.meta is not None
    assert (segment.meta.reprocess_count, segment.meta.sealed_time_ns) == (1, after(1))
    data = (tmp_path / "radar/pending" / segment.name).read_bytes()
    assert [(r.payload, r.received_time_ns) for r in split_records(data, "radar-frames")] == [
        (b"one", after(1)), (b"two", after(1)),
    ]  # fmt: skip


def test_records_go_back_as_what_their_source_brought_with_its_rank(tmp_path: Path) -> None:
    zone, data = Zone(tmp_path), pack_records([b"a", b"b", b"c"], [after(1)] * 3)
    origins = (Origin(2, "north", "192.0.2.1:7", rank=20), Origin(1, "south"))
    zone.zone.seal("bad", data, replace(described(data), origins=origins))
    assert bring_back(zone.letters(zone.take()), tmp_path).reprocessed == 3
    (segment,) = zone.zone.pending()
    assert segment.meta is not None
    assert segment.meta.origins == origins


def test_asking_twice_changes_nothing_before_and_after_the_records_were_taken__DP5_Q7(tmp_path: Path) -> None:
    zone, letters = Zone(tmp_path), letters_of(*radar_payloads(3))
    assert bring_back(letters, tmp_path).reprocessed == 3
    assert bring_back(letters, tmp_path) == ReprocessReport(0, 3, ())
    assert records(zone.take()) == {"landed": 3, "valid": 3, "dead": 0}
    assert bring_back(letters, tmp_path) == ReprocessReport(0, 3, ())
    assert zone.zone.pending_names() == []


def test_a_record_that_is_refused_again_does_not_multiply(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    land(zone.zone, "all bad", pack_records([b"short", b"shorter"], [after(1)] * 2))
    letters = zone.letters(zone.take())
    assert bring_back(letters, tmp_path).reprocessed == 2, "its bytes are those of the first delivery, yet it returns"
    letters += zone.letters(zone.take())
    assert [letter.retry_count for letter in letters] == [0, 0, 1, 1]
    again = bring_back(letters, tmp_path)
    assert (again.reprocessed, again.had_already) == (0, 2)
    assert {each.reason for each in again.skipped} == {"an earlier letter has the same bytes"}
    for _ in range(3):  # a request for the newest letters only goes one round further, and then no more
        newest = [letter for letter in letters if letter.commit_sequence == zone.head.sequence]
        bring_back(newest, tmp_path)
        batch = zone.take()
        letters += zone.letters(batch)
    assert len(letters) <= 10


def test_letters_that_come_later_do_not_bring_the_earlier_ones_back_again(tmp_path: Path) -> None:
    first = letters_of(b"one", b"two")
    bring_back(first, tmp_path)
    later = letters_of(b"three", commit_sequence=2)
    assert bring_back([*first, *later], tmp_path) == ReprocessReport(1, 2, ())


def test_ten_thousand_letters_make_no_new_observation_where_all_were_known__DP5_G2(tmp_path: Path) -> None:
    zone, payloads = Zone(tmp_path), radar_payloads(10_000)
    land(zone.zone, "live", pack_records(payloads, [after(9)] * 10_000))
    zone.take()
    known = set(zone.observed)
    report = bring_back(letters_of(*payloads, error_kind="late_observation", received_time_ns=after(9)), tmp_path)
    assert report.reprocessed == 10_000
    assert zone.take().counts["valid"] == 10_000
    assert zone.observed == known


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (DeadLetterFilter(), [0, 1, 2]),
        (DeadLetterFilter(kinds=frozenset({"bad_json"})), [1]),
        (DeadLetterFilter(stages=frozenset({"element_sets"})), [2]),
        (DeadLetterFilter(sources=frozenset({"radar-7"})), [0]),
        (DeadLetterFilter(sources=frozenset({"radar", "optical"})), [0, 1]),
        (DeadLetterFilter(since_ns=20), [1, 2]),
        (DeadLetterFilter(until_ns=20), [0, 1]),
        (DeadLetterFilter(since_ns=20, until_ns=20), [1]),
        (DeadLetterFilter(kinds=frozenset({"bad_json"}), until_ns=19), []),
    ],
)
def test_filters_are_inclusive_and_an_empty_one_takes_all__DP5_F8(
    chosen: DeadLetterFilter, expected: list[int]
) -> None:
    letters = [
        replace(LETTER, record_number=0, source_id="radar-7", rejected_time_ns=10),
        replace(LETTER, record_number=1, feed="optical", error_kind="bad_json", rejected_time_ns=20),
        replace(LETTER, record_number=2, feed="elements", stage="element_sets", rejected_time_ns=30),
    ]
    assert [letter.record_number for letter in letters if chosen.takes(letter)] == expected
    read = rows_of(DEAD_LETTERS, [asdict(letter) for letter in letters])
    left = read if chosen.where is None else read.filter(chosen.where)
    assert set(left["record_number"].to_pylist()) >= set(expected), "what a reader leaves out was not chosen"
    assert len(left) < 3 or not (chosen.kinds or chosen.stages)


def test_a_line_of_a_csv_gets_the_header_of_the_segment_it_came_in(tmp_path: Path) -> None:
    zone, data = LandingZone(str(tmp_path), "elements"), catalogue_of([25544, 20580])
    header, first, second = data.splitlines()
    land(zone, "sets.csv", data)
    (taken,) = intake.take([zone], Head(), max_segments=1, max_bytes=10**6)
    zone.acknowledge([taken.ref(2)])
    archived = taken.sha256
    facts = {"feed": "elements", "segment_format": "omm-csv", "segment_sha256": archived, "segment_name": "sets.csv"}
    (made,), skipped = returns_of(letters_of(second, **facts), str(tmp_path))
    assert (made.data, skipped) == (header + b"\n" + second + b"\n", [])
    (tmp_path / "elements/archive" / archived).unlink()
    made_now, (left,) = returns_of(letters_of(first, **facts), str(tmp_path))
    assert (made_now, left.reason) == (
        [], "its segment, which has format and header, is not in the archive any more",
    )  # fmt: skip


def test_a_record_that_would_harm_its_neighbours_goes_alone_or_stays(tmp_path: Path) -> None:
    returns, skipped = returns_of(
        letters_of(b'{"a": 1}', b'{"b": ', b'{"c": 3}', feed="elements", segment_format="omm-json"), str(tmp_path)
    )
    assert [each.data for each in returns] == [b'[{"a": 1},\n{"c": 3}]\n', b'{"b": ']
    assert skipped == []
    _, (torn,) = returns_of(letters_of(b"rest", error_kind="torn_record"), str(tmp_path))
    assert torn.reason == "torn: the rest of the record is missing"


def test_a_quarantined_segment_goes_back_only_if_it_is_sound_after_all(tmp_path: Path) -> None:
    """A count that was ours to get wrong, and bytes that are torn for good."""
    zone, data = Zone(tmp_path), pack_records(radar_payloads(2), [after(1)] * 2)
    land(zone.zone, "miscounted", data, records=3)
    land(zone.zone, "torn", data[:-9], bytes=len(data))
    letters = zone.letters(zone.take())
    assert [letter.error_kind for letter in letters] == ["bad_segment"] * 2
    returns, skipped = returns_of(letters, str(tmp_path))
    assert (returns, len(skipped)) == ([], 2)
    (meta_path,) = (tmp_path / "radar/quarantine").glob("miscounted*.meta.json")
    meta_path.write_text(described(data).to_json())
    report = bring_back(letters, tmp_path)
    assert (report.reprocessed, len(report.skipped)) == (1, 1)
    assert report.skipped[0].reason.startswith("still defective: torn: truncated")
    assert records(zone.take()) == {"landed": 2, "valid": 2, "dead": 0}
    assert bring_back(letters, tmp_path).had_already == 1


def test_another_root_takes_the_records_and_the_zones_stay_as_they_are__DP5_Q7(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    returns, skipped = returns_of(letters_of(b"one"), str(here))
    assert put_back(returns, skipped, str(there)).reprocessed == 1
    assert not here.exists()
    assert len(LandingZone(str(there), "radar").pending_names()) == 1


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1).map(lambda t: t.strip().encode())


@given(payloads=st.lists(st.one_of(st.binary(max_size=80), texts), max_size=6), segment_format=st.sampled_from(
    ["radar-frames", "isl-frames", "optical-jsonl", "omm-csv", "omm-json", "tle"]
))  # fmt: skip
def test_what_can_be_packed_comes_out_of_the_segment_as_it_went_in__DP5_I22(
    payloads: list[bytes], segment_format: str
) -> None:
    fit = [p for p in payloads if can_be_packed(p, segment_format, header=b"A,B")]
    data = pack_segment(fit, [1] * len(fit), segment_format, header=b"A,B")
    assert [record.payload for record in split_records(data, segment_format)] == fit


def test_bytes_and_names_follow_from_the_letters_alone(tmp_path: Path) -> None:
    def made(root: Path) -> list[tuple[str, bytes]]:
        returns: list[Return] = returns_of(letters_of(b"one", b"two"), str(root))[0]
        return [(each.name, each.data) for each in returns]

    assert made(tmp_path / "a") == made(tmp_path / "b")
