"""Judgement of a commit's rows by the table's contract, before they are committed.

What is kept goes into the commit. In a table of landed records, a row that breaks the contract becomes one with an
error. In a table that refuses rows, it is left out, and `refused_rows` keeps it. Any other table takes all or nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from sda_platform.lake.arrow_frames import frame_of
from sda_platform.lake.contract import reasons
from sda_platform.lake.correction_log import CorrectionLogModel
from sda_platform.lake.errors import BrokenContract
from sda_platform.lake.log import TableLog
from sda_platform.lake.refused_rows import REFUSED, write_refused
from sda_platform.lake.table import COMMIT_SEQUENCE, LandingColumns, Provenance, Table, TableModel

BROKEN_CONTRACT: Final = "broken_contract"
"""The ``error_kind`` of such a record."""

Counts = Mapping[str, int] | None
_REASON = "_broken_rules"
_OF_ITS_KEY = "its {} has a refused entry in this commit"
_MOST_SHOWN = 3
_KEPT_OF_RECORDS = {
    name for model in (TableModel, Provenance, LandingColumns) for name in model.to_schema().columns
}  # fmt: skip


def admit(log: TableLog, rows: pa.Table, nonce: str, counts: Counts) -> tuple[pa.Table, Counts]:
    """Return the rows that the commit with this nonce writes, and its counts, with the number of refused rows if any.

    Raises BrokenContract where the table may not leave a row out.
    """
    table = log.table
    broken = reasons(table, rows)
    if not broken:
        return rows, counts
    if issubclass(table.model, LandingColumns):
        return _with_errors(table, rows, broken), counts
    if not table.refuses_rows:
        raise BrokenContract(_refusal(table, rows, broken))
    broken = _with_their_corrections(table, rows, broken)
    numbers = sorted(broken)
    write_refused(log, nonce, rows.take(numbers), [broken[number] for number in numbers])
    return _without(rows, numbers), {**(counts or {}), REFUSED: len(numbers)}


@contextmanager
def admitted(log: TableLog, rows: Any, nonce: str, counts: Counts) -> Iterator[tuple[Any, Counts]]:
    """`admit` for Arrow rows or a frame of the engine; a frame is computed once, and kept until the block ends."""
    if isinstance(rows, pa.Table):
        yield admit(log, rows, nonce, counts)
        return
    if issubclass(log.table.model, LandingColumns):
        yield rows.mapInArrow(partial(_marked, log.table), rows.schema), counts
        return
    reason = T.StructField(_REASON, T.StringType())
    judged = rows.mapInArrow(partial(_judged, log.table), T.StructType([*rows.schema.fields, reason])).persist()
    try:
        yield _admit_frame(log, judged, nonce, counts)
    finally:
        judged.unpersist()


def _admit_frame(log: TableLog, judged: DataFrame, nonce: str, counts: Counts) -> tuple[DataFrame, Counts]:
    table, is_broken = log.table, F.col(_REASON).isNotNull()
    refused = judged.where(is_broken).toArrow()
    kept = judged.where(~is_broken)
    if not refused.num_rows:
        return kept.drop(_REASON), counts
    if not table.refuses_rows:
        why = {number: [text] for number, text in enumerate(refused[_REASON].to_pylist())}
        raise BrokenContract(_refusal(table, refused, why))
    if issubclass(table.model, CorrectionLogModel):
        key = table.key[0]
        keys = frame_of(judged.sparkSession, refused.select([key]).group_by(key).aggregate([]))
        others = kept.join(F.broadcast(keys), key, "left_semi").select(*judged.columns).toArrow()
        kept = kept.join(F.broadcast(keys), key, "left_anti").select(*judged.columns)
        refused = pa.concat_tables([refused, _with_reason(others, [_OF_ITS_KEY.format(key)] * others.num_rows)])
    write_refused(log, nonce, refused.drop_columns([_REASON]), [[why] for why in refused[_REASON].to_pylist()])
    return kept.drop(_REASON), {**(counts or {}), REFUSED: refused.num_rows}


def _marked(table: Table, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`_with_errors` for the rows of a landing table."""
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        broken = reasons(table, rows)
        yield from (_with_errors(table, rows, broken).combine_chunks().to_batches() if broken else [batch])


def _judged(table: Table, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        broken = reasons(table, rows)
        why = ["; ".join(broken[number]) if number in broken else None for number in range(rows.num_rows)]
        yield from _with_reason(rows, why).combine_chunks().to_batches()


def _with_reason(rows: pa.Table, why: Sequence[str | None]) -> pa.Table:
    columns = [name for name in rows.column_names if name != _REASON]
    return rows.select(columns).append_column(_REASON, pa.array(why, pa.string()))


def _with_errors(table: Table, rows: pa.Table, broken: Mapping[int, list[str]]) -> pa.Table:
    """``rows``, of which the broken ones keep only where they come from, their bytes, and an error.

    Raises BrokenContract where that itself is broken.
    """
    is_broken = pa.array([number in broken for number in range(rows.num_rows)])
    where = (rows["feed"], "/", rows["segment_name"], " record ", pc.cast(rows["record_number"], pa.string()), ": ")
    why = pa.array(["; ".join(broken.get(number, ())) for number in range(rows.num_rows)], pa.string())
    error = {"error_kind": pa.scalar(BROKEN_CONTRACT), "error": pc.binary_join_element_wise(*where, why, "")}
    columns = []
    for field in rows.schema:
        if field.name in error:
            said = pc.coalesce(rows[field.name], error[field.name])
            columns.append(pc.if_else(is_broken, said, rows[field.name]))
        elif field.name in _KEPT_OF_RECORDS:
            columns.append(rows[field.name])
        else:
            columns.append(_nulled(rows[field.name], is_broken))
    found = pa.table(columns, rows.schema)
    still = reasons(table, found)
    if still:
        raise BrokenContract(_refusal(table, found, still))
    return found


def _nulled(column: pa.ChunkedArray, is_broken: pa.Array) -> pa.ChunkedArray:
    kept = pa.array(range(len(column)), pa.int64(), mask=is_broken.to_numpy(zero_copy_only=False))
    return column.take(kept)


def _with_their_corrections(table: Table, rows: pa.Table, broken: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """With the other entries of their keys in a correction log: what a refused entry would replace stays current."""
    if not issubclass(table.model, CorrectionLogModel):
        return dict(broken)
    keys = rows[table.key[0]].to_pylist()
    refused = {keys[number] for number in broken}
    same = _OF_ITS_KEY.format(table.key[0])
    return {number: broken.get(number, [same]) for number, key in enumerate(keys) if key in refused}


def _without(rows: pa.Table, numbers: list[int]) -> pa.Table:
    left_out = set(numbers)
    return rows.filter(pa.array([number not in left_out for number in range(rows.num_rows)]))


def _refusal(table: Table, rows: pa.Table, broken: Mapping[int, list[str]]) -> str:
    names = [name for name in table.key if name != COMMIT_SEQUENCE]
    first = sorted(broken)[:_MOST_SHOWN]
    shown = zip(rows.select(names).take(first).to_pylist(), (broken[number] for number in first), strict=True)
    return (
        f"{table.name}: {len(broken)} rows break the contract, so that nothing was committed: "
        + "; ".join(f"{key}: {', '.join(why)}" for key, why in shown)
        + ". This is a defect of what made them: correct it, and start the run again"
    )
