"""Compaction of a table: the small files of neighbouring commits become one file, which stops for alerts.

Each merged file is committed by itself, so what was merged before a stop stays merged.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.history.footers import HEALTHY_BYTES
from sda_platform.history.lifecycle import POLICY
from sda_platform.history.parquet_profile import file_format
from sda_platform.lake import delta_checkpoints
from sda_platform.lake.lake import Lake
from sda_platform.lake.merge_process import MergeRequest, Span
from sda_platform.lake.merging import MergeStopped
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

_SIZE, _FIRST, _LAST = "size_bytes", f"min.{COMMIT_SEQUENCE}", f"max.{COMMIT_SEQUENCE}"


class StoppedForAlerts(Exception):
    """A run that leads to alerts came; the compaction is to be repeated after it."""


def compact(
    lake: Lake,
    table: Table,
    alerts_wait: Callable[[], bool] | None = None,
    *,
    healthy_bytes: int = HEALTHY_BYTES[0],
    target_bytes: int = POLICY.target_file_bytes,
) -> int:
    """Compact one table into files of its Parquet profile; returns how many files were replaced.

    Files below ``healthy_bytes`` are merged into files of at most ``target_bytes``. The result is on disk on return.
    Raises StoppedForAlerts once ``alerts_wait`` returns True (without it nothing stops it), and MergeFailed.
    """
    log = lake.log(table)
    files = log.file_bounds()
    small = files.filter(pc.less(files.column(_SIZE), healthy_bytes))
    if small.num_rows < 2:
        return 0
    spans = [None] if table.replaces_rows else list(mergeable(files, healthy_bytes, target_bytes))
    stored_bytes, rows = pc.sum(small.column(_SIZE)).as_py(), pc.sum(small.column("num_records")).as_py()
    request = MergeRequest(log.uri, spans, target_bytes, file_format(table, stored_bytes / max(rows or 0, 1)))
    try:
        replaced = lake.merge(request, alerts_wait or (lambda: False)) if spans else 0
    except MergeStopped as stop:
        raise StoppedForAlerts from stop
    delta_checkpoints.write_if_due(log, lake.head(table).version)
    return replaced


def mergeable(files: pa.Table, healthy_bytes: int, target_bytes: int) -> Iterator[Span | None]:
    """Yield the spans of commit sequences whose files, two at least, are to become one file.

    ``files`` is `TableLog.file_bounds`. A span has small files only, of ``target_bytes`` together at most. Neighbours
    in sequence are neighbours in time too, so the bounds of merged files are narrow. Files whose bounds another writer
    omitted cannot be divided, which None means.
    """
    if _FIRST not in files.column_names or pc.any(pc.is_null(files.column(_FIRST))).as_py():
        yield None
        return
    ordered = files.sort_by([(_FIRST, "ascending"), (_LAST, "ascending")])
    bounds = list(zip(*(ordered.column(name).to_pylist() for name in (_FIRST, _LAST, _SIZE)), strict=True))
    healthy = [(first, last) for first, last, size in bounds if size >= healthy_bytes]
    span, count, total = (0, 0), 0, 0
    for first, last, size in bounds:
        if size >= healthy_bytes:
            continue
        wider = (span[0], max(span[1], last))
        if count and total + size <= target_bytes and not _meets(wider, healthy):
            span, count, total = wider, count + 1, total + size
            continue
        if count > 1:
            yield span
        span, count, total = (first, last), int(not _meets((first, last), healthy)), size
    if count > 1:
        yield span


def _meets(span: Span, others: list[Span]) -> bool:
    """Return whether a span has a sequence in common with one of the others."""
    return any(first <= span[1] and last >= span[0] for first, last in others)
