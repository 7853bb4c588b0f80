"""Segments to rows: every record of a batch becomes one row, good or bad, that states where it comes from.

A segment that is not what its metadata promises becomes one row (record number -1) that states its defect. So does one
at which the decoder fails: it is found by halving the batch. A second delivery becomes no row. What a record means is
the subject's business: it brings the decoder.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.failpoints import InjectedFault
from sda_platform.formats.markings import MARKS, Marking, stated
from sda_platform.formats.segments import Origin, SegmentMeta
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing.decode_memory import memory_of_the_system
from sda_platform.landing.segments import (
    UNDECODABLE,
    LoadedSegment,
    defect_kind,
    is_known_by_bytes,
    refused_sha256,
)

# Decodes segments into one row per record: record_number, payload, error_kind, error, and the decoded values; the
# column SEGMENT is the number of its segment.
Decoder = Callable[[Sequence[tuple[bytes, SegmentMeta]]], pa.Table]

SEGMENT = "segment"
# What becomes of a segment that a commit consumes.
FATES = ("acknowledged", "duplicate", "conflict", "quarantined")
WHOLE_SEGMENT = -1
_DEFECT_ROW = pa.schema(
    {SEGMENT: pa.int64(), "record_number": pa.int64(), "error_kind": pa.string(), "error": pa.string()}
)
# What fails for the machine's sake, and may succeed later with the same batch.
_OF_THE_MACHINE = (OSError, MemoryError, InjectedFault)
# Small enough that a batch keeps every core busy, large enough that a portion's overhead does not count.
_PORTION_BYTES = 16 * 2**20
_MOST_RECORDS = 2**31
# A sound source has so many records for each that cannot be read: those then take less time than the others.
_RECORDS_FOR_EACH_UNREAD = 8
_NO_ORIGIN = Origin(0, "")


@dataclass(frozen=True)
class DecodedBatch:
    """Rows of one commit, and the segments they came from."""

    rows: pa.Table
    segments: tuple[SegmentRef, ...]
    sound_sources: frozenset[str] = frozenset()
    """Sources that brought records, of which at most one in eight could not be read."""

    @property
    def counts(self) -> dict[str, int]:
        """Records landed, valid and dead, and segments by what became of them.

        valid + dead = landed, and the segments sum up to those discovered; checks verify both.
        """
        dead = self.rows.num_rows - self.rows.column("error_kind").null_count
        records = {"landed": sum(s.records for s in self.segments), "valid": self.rows.num_rows - dead, "dead": dead}
        return records | segment_counts(self.segments)


def segment_counts(segments: Iterable[SegmentRef]) -> dict[str, int]:
    """Return how many of these consumed segments there are, and how many had each fate, see `fate_of`."""
    counts = dict.fromkeys(("discovered", *FATES), 0)
    for segment in segments:
        counts["discovered"] += 1
        counts[fate_of(segment)] += 1
    return {f"{name}_segments": count for name, count in counts.items()}


def fate_of(segment: SegmentRef) -> str:
    """Return what became of a consumed segment: acknowledged, duplicate, conflict or quarantined."""
    if segment.defect is None:
        return "acknowledged"
    if segment.is_duplicate:
        return "duplicate"
    return "conflict" if defect_kind(segment.defect) == "name_conflict" else "quarantined"


@memory_of_the_system()
def decode_batch(table: Table, segments: Sequence[LoadedSegment], decoder: Decoder) -> DecodedBatch:
    """Decode ``segments`` into rows with the columns of ``table``; those that state a defect come first."""
    schema = table.content_schema
    duplicates = [s for s in segments if s.is_duplicate]
    rows, whole, undecodable = _decoded([s for s in segments if s.defect is None], decoder)
    defective = [*(s for s in segments if s.defect is not None and not s.is_duplicate), *undecodable]
    found = np.bincount(rows[SEGMENT].to_numpy(), minlength=len(whole)).tolist()
    valid = _valid_records(rows, len(whole))
    checked = [_checked(*each) for each in zip(whole, found, valid, strict=True)]
    if any(segment.defect for segment in checked):
        keep = np.array([segment.defect is None for segment in checked])
        rows = rows.filter(pa.array(keep[rows[SEGMENT].to_numpy()]))
        defective += [segment for segment in checked if segment.defect is not None]
    parts = [_defect_rows(defective), _with_provenance(rows, checked)]
    refs = [s.ref(1) for s in defective] + [s.ref(0) for s in duplicates]
    refs += [s.ref(records) for s, records in zip(checked, found, strict=True) if s.defect is None]
    sources = _sound_sources(defective, checked, found, valid)
    return DecodedBatch(pa.concat_tables(_conform(part, schema) for part in parts), tuple(refs), sources)


def one_by_one(decode: Callable[[bytes, SegmentMeta], pa.Table]) -> Decoder:
    """Return the decoder of several segments that calls ``decode`` for each."""

    def decode_all(segments: Sequence[tuple[bytes, SegmentMeta]]) -> pa.Table:
        tables = [decode(data, meta) for data, meta in segments]
        numbers = np.repeat(np.arange(len(tables)), [rows.num_rows for rows in tables])
        if not tables:
            return pa.table({SEGMENT: numbers})
        return pa.concat_tables(tables).append_column(SEGMENT, pa.array(numbers))

    return decode_all


def _decoded(
    segments: Sequence[LoadedSegment], decoder: Decoder
) -> tuple[pa.Table, Sequence[LoadedSegment], list[LoadedSegment]]:
    """Return the rows of ``segments``, those that they are of, and those at which the decoder fails, as
    defective ones.
    """
    try:
        return _decode(segments, decoder), segments, []
    except _OF_THE_MACHINE:
        raise
    except Exception:
        failed = {s.sha256: s for s in _failing(segments, decoder)}
    sound = [s for s in segments if s.sha256 not in failed]
    undecodable = [s.refused(f"{s.name}: {UNDECODABLE} {_error_at_any([s], decoder)}") for s in failed.values()]
    return _decode(sound, decoder), sound, undecodable


def _failing(segments: Sequence[LoadedSegment], decoder: Decoder) -> list[LoadedSegment]:
    """Those of ``segments`` at which the decoder fails, found by halving."""
    if not _error_at_any(segments, decoder):
        return []
    if len(segments) == 1:
        return list(segments)
    middle = len(segments) // 2
    return [*_failing(segments[:middle], decoder), *_failing(segments[middle:], decoder)]


def _error_at_any(segments: Sequence[LoadedSegment], decoder: Decoder) -> str:
    """Return how the decoder fails at ``segments``, in one line; empty where it does not."""
    try:
        _decode(segments, decoder)
    except _OF_THE_MACHINE:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    return ""


def _sound_sources(
    defective: Iterable[LoadedSegment], decoded: Sequence[LoadedSegment], found: Sequence[int], valid: Sequence[int]
) -> frozenset[str]:
    records, unread = Counter[str](), Counter(segment.source for segment in defective)
    for segment, all_records, valid_records in zip(decoded, found, valid, strict=True):
        records[segment.source] += all_records
        unread[segment.source] += all_records - valid_records
    least = {source: max(1, _RECORDS_FOR_EACH_UNREAD * count) for source, count in unread.items()}
    return frozenset(source for source, count in records.items() if count >= least[source])


def _valid_records(rows: pa.Table, segments: int) -> list[int]:
    """Return how many records of each segment carry no error."""
    if not rows.num_rows:
        return [0] * segments
    is_valid = pc.is_null(rows["error_kind"]).to_numpy(zero_copy_only=False)
    counts: list[int] = np.bincount(rows[SEGMENT].to_numpy()[is_valid], minlength=segments).tolist()
    return counts


def _decode(segments: Sequence[LoadedSegment], decoder: Decoder) -> pa.Table:
    """Return the rows of ``segments``, decoded in portions side by side: Arrow's part of the work uses every core."""
    portions = [[(s.data, s.meta) for s in portion if s.meta] for portion in _portions(segments)]
    if len(portions) == 1:  # as in a batch of every few seconds, for which threads would only be a cost
        return _renumbered(decoder(portions[0]), 0)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        starts = accumulate(map(len, portions), initial=0)
        return pa.concat_tables(map(_renumbered, threads.map(decoder, portions), starts))


def _portions(segments: Sequence[LoadedSegment]) -> list[Sequence[LoadedSegment]]:
    """``segments`` in order, cut into portions of about _PORTION_BYTES; at least one, empty where there are none."""
    ends = np.cumsum([len(s.data) for s in segments])
    cuts = np.searchsorted(ends, np.arange(_PORTION_BYTES, sum(len(s.data) for s in segments), _PORTION_BYTES)) + 1
    edges = sorted({0, *cuts.tolist(), len(segments)})
    return [segments[first:last] for first, last in pairwise(edges)] or [[]]


def _renumbered(rows: pa.Table, start: int) -> pa.Table:
    position = rows.column_names.index(SEGMENT)
    return rows.set_column(position, SEGMENT, pc.add(rows[SEGMENT], start))


def _checked(segment: LoadedSegment, found: int, valid: int) -> LoadedSegment:
    """``segment`` as what its ``found`` records, ``valid`` of them without an error, show it to be."""
    if segment.meta is None:
        return segment
    if found != segment.meta.records:
        return segment.refused(f"{segment.name}: {UNDECODABLE} {found} records, metadata says {segment.meta.records}")
    if found and not valid and is_known_by_bytes(segment.name, None):
        # Of the bytes as they were sealed: a segment that is read again is known as refused already.
        return replace(segment, sha256=refused_sha256(segment.zone, segment.meta.format, segment.meta.sha256))
    return segment


def _defect_rows(segments: Sequence[LoadedSegment]) -> pa.Table:
    rows = [
        {
            SEGMENT: number,
            "record_number": WHOLE_SEGMENT,
            "error_kind": defect_kind(segment.defect or ""),
            "error": f"{segment.zone}/{segment.defect}",
        }
        for number, segment in enumerate(segments)
    ]
    return _with_origin(pa.Table.from_pylist(rows, schema=_DEFECT_ROW), segments)


def _with_provenance(rows: pa.Table, segments: Sequence[LoadedSegment]) -> pa.Table:
    if not rows.num_rows or rows["error"].null_count == rows.num_rows:
        return _with_origin(rows, segments)
    begin = pa.array([f"{s.zone}/{s.name} record " for s in segments], pa.string()).take(rows[SEGMENT])
    numbers = pc.cast(rows["record_number"], pa.string())
    text = pc.binary_join_element_wise(begin, numbers, pa.scalar(": "), rows["error"], "")
    return _with_origin(rows.set_column(rows.column_names.index("error"), "error", text), segments)


def _with_origin(rows: pa.Table, segments: Sequence[LoadedSegment]) -> pa.Table:
    origin = {
        "segment_sha256": pa.array([s.sha256 for s in segments], pa.string()),
        "segment_name": pa.array([s.name for s in segments], pa.string()),
        "segment_format": pa.array([s.meta.format if s.meta else None for s in segments], pa.string()),
        "reprocess_count": pa.array([s.meta.reprocess_count if s.meta else None for s in segments], pa.int64()),
        "feed": pa.array([s.zone for s in segments], pa.string()),
        "received_time_ns": pa.array([s.meta.sealed_time_ns if s.meta else 0 for s in segments], pa.int64()),
    }
    for name, values in origin.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, values.take(rows[SEGMENT].combine_chunks()))
    return _with_senders(rows, segments)


def _with_senders(rows: pa.Table, segments: Sequence[LoadedSegment]) -> pa.Table:
    """Add who brought each record. A segment as a whole has a sender where all its records have the same."""
    if not rows.num_rows:
        return rows
    origins = [(s.meta.origins if s.meta else None) or (_NO_ORIGIN,) for s in segments]
    # The segment as a whole, then its runs.
    runs = [Origin(0, *_common(each), False, None, None, *stated(run.marking for run in each)) for each in origins]
    ends = np.array([number * _MOST_RECORDS for number in range(len(segments))], np.int64)
    for number, each in enumerate(origins):
        inside = np.cumsum([run.records for run in each])
        inside[-1] = _MOST_RECORDS - 1
        ends = np.append(ends, number * _MOST_RECORDS + inside)
        runs += each
    order = np.argsort(ends, kind="stable")
    places = rows[SEGMENT].to_numpy() * _MOST_RECORDS + rows["record_number"].to_numpy()
    chosen = pa.array(order[np.searchsorted(ends[order], places, side="right")])
    for name, values in (("source_name", [run.source or None for run in runs]), ("peer", [run.peer for run in runs])):
        rows = rows.append_column(name, pa.array(values, pa.string()).take(chosen))
    markings = [run.marking for run in runs]
    return _with_markings(rows, markings, chosen) if any(map(any, markings)) else rows


def _with_markings(rows: pa.Table, markings: Sequence[Marking], chosen: pa.Array) -> pa.Table:
    """Add to what each record states of itself what its source states: the one of ``markings`` that is ``chosen``."""
    if own := [name for name in MARKS if name in rows.column_names]:
        facts = rows.select(own).to_pylist()
        markings = [
            stated((Marking.of(row), markings[run])) for row, run in zip(facts, chosen.to_pylist(), strict=True)
        ]
        rows, chosen = rows.drop_columns(own), pa.array(np.arange(rows.num_rows))
    for name in MARKS:
        values = pa.array([getattr(marking, name) for marking in markings], pa.string())
        rows = rows.append_column(name, values.take(chosen))
    return rows


def _common(origins: Sequence[Origin]) -> tuple[str, str | None]:
    """Source and peer that all ``origins`` share; empty and None where they differ."""
    sources, peers = {run.source for run in origins}, {run.peer for run in origins}
    return sources.pop() if len(sources) == 1 else "", peers.pop() if len(peers) == 1 else None


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        pc.cast(rows.column(f.name), f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
