"""Dead letters: how they are written (always the newest layout), and how every documented layout is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.registry import ZONES
from sda_platform.lake.admission import BROKEN_CONTRACT
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.refused_rows import refused_in
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.orchestration.dispositions import RECORD_KINDS, Disposition

DEAD_LETTER_VERSION: Final = 2
_CLASS_OF_KIND: Final = MappingProxyType({kind: entry.disposition.value for kind, entry in RECORD_KINDS.items()})
LETTER_COLUMNS: Final = ("feed", "payload", "segment_format", "source_name", "peer")
"""What a letter takes from the row of a record that a later stage rejects."""
COLUMNS: Final = tuple(c.name for c in DEAD_LETTERS.columns if c.name != COMMIT_SEQUENCE)


@dataclass(frozen=True)
class DeadLetterRecord:
    """One dead letter in the newest layout; the columns of `dead_letters`."""

    commit_sequence: int
    stage: str
    feed: str
    segment_sha256: str
    segment_name: str
    record_number: int
    received_time_ns: int
    error_kind: str
    error: str
    payload: bytes | None
    error_class: str
    source_id: str | None
    segment_format: str | None
    source_name: str | None
    peer: str | None
    rejected_time_ns: int
    retry_count: int

    @property
    def source(self) -> str:
        """The sender: the sensor, or the landing zone if the record names no sensor."""
        return self.source_id or self.feed


def class_of(error_kind: str) -> str:
    """Return the class of an error of this kind: the column ``error_class``."""
    return _CLASS_OF_KIND.get(error_kind, Disposition.PERMANENT.value)


def all_letters(others: pa.Table, *landed: pa.Table, stages: Sequence[str], as_of_ns: int) -> pa.Table:
    """Return the rows with an error of the landing tables ``stages``, as dead letters that were refused at
    ``as_of_ns``, and the letters of ``others``.
    """
    letters = [_letters(rows, stage, as_of_ns) for rows, stage in zip(landed, stages, strict=True)]
    return pa.concat_tables([*letters, others])


def _letters(rows: pa.Table, stage: str, as_of_ns: int) -> pa.Table:
    dead = rows.filter(pc.is_valid(rows["error_kind"]))
    added = {
        "schema_version": DEAD_LETTER_VERSION,
        "stage": stage,
        "error_class": pa.array([class_of(kind) for kind in dead["error_kind"].to_pylist()], pa.string()),
        "rejected_time_ns": as_of_ns,
        "retry_count": pc.fill_null(dead["reprocess_count"], 0),
    }
    return _with_constants(dead, added)


def late_letters(late: pa.Table, raw: pa.Table, stage: str, as_of_ns: int) -> pa.Table:
    """Observations that came ``late``, each with its bytes from ``raw``, as dead letters of ``stage``."""
    key = ["segment_sha256", "record_number"]
    both = late.join(raw.select([*key, *LETTER_COLUMNS]), key, join_type="inner").sort_by(
        [(name, "ascending") for name in key]
    )
    sensor_times = pc.cast(both["sensor_time_ns"], pa.string())
    text = pc.binary_join_element_wise(
        both["feed"], "/", both["segment_name"], " record ", pc.cast(both["record_number"], pa.string()),
        ": measured at sensor_time_ns ", sensor_times, ", after its window was closed", "",
    )  # fmt: skip
    added = {
        "schema_version": DEAD_LETTER_VERSION,
        "stage": stage,
        "error_kind": "late_observation",
        "error_class": _CLASS_OF_KIND["late_observation"],
        "rejected_time_ns": as_of_ns,
        "retry_count": 0,
        "error": text,
    }
    return _with_constants(both, added)


def _with_constants(rows: pa.Table, added: Mapping[str, Any]) -> pa.Table:
    """Return the columns of a dead letter from ``rows`` and ``added``, whose values may be one of all rows;
    else null.
    """
    schema, columns = DEAD_LETTERS.content_schema, []
    for field in schema:
        if field.name in added:
            value = added[field.name]
            is_column = isinstance(value, pa.Array | pa.ChunkedArray)
            columns.append(value if is_column else pa.array([value] * rows.num_rows, field.type))
        elif field.name in rows.column_names:
            columns.append(rows[field.name])
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.table(columns, schema.names).cast(schema)


def refused_letters(store: Lake, windows: Iterable[tuple[Table, TableWindow]], as_of_ns: int) -> pa.Table:
    """Return the rows that the commits of these windows left out because they break their table's contract, as dead
    letters.

    Their bytes are JSON.
    """
    rows = chain.from_iterable(refused_in(store.log(table), window) for table, window in windows)
    letters = [
        {
            "schema_version": DEAD_LETTER_VERSION,
            "stage": row.table,
            "feed": row.table,
            "segment_sha256": row.sha256,
            "segment_name": f"{row.table} commit {row.commit.sequence}",
            "record_number": row.number,
            "received_time_ns": row.commit.manifest.as_of_ns,
            "error_kind": BROKEN_CONTRACT,
            "error": f"{row.table} commit {row.commit.sequence}, {row.key}: {row.reason}",
            "payload": None if row.values is None else row.values.encode(),
            "error_class": class_of(BROKEN_CONTRACT),
            "rejected_time_ns": as_of_ns,
            "retry_count": 0,
        }
        for row in rows
    ]
    return pa.Table.from_pylist(letters, DEAD_LETTERS.content_schema)


def read_dead_letters(rows: pa.Table) -> tuple[list[DeadLetterRecord], int]:
    """Read the dead letters in ``rows`` of `dead_letters`, of every documented layout version, in canonical order.

    Also returns the number of rows that a later version of the platform wrote in an unknown layout.
    """
    letters = []
    for row in rows.to_pylist():
        read = _READERS.get(row["schema_version"])
        if read:
            letters.append(read(row))
    letters.sort(key=lambda letter: (letter.commit_sequence, letter.stage, letter.segment_sha256, letter.record_number))
    return letters, rows.num_rows - len(letters)


def migrated_from_v1(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of version 1 in the layout of version 2: what it did not record follows from its kind, feed and time."""
    formats: Sequence[str] = ZONES.get(row["feed"], ())
    return {
        **row,
        "schema_version": 2,
        "error_class": class_of(row["error_kind"]),
        "source_id": None,
        "segment_format": formats[0] if len(formats) == 1 else None,
        "source_name": None,
        "peer": None,
        "rejected_time_ns": row["received_time_ns"],
        "retry_count": 0,
    }


def _letter(row: Mapping[str, Any]) -> DeadLetterRecord:
    return DeadLetterRecord(**{field.name: row[field.name] for field in fields(DeadLetterRecord)})


_READERS: Final[Mapping[int, Callable[[Mapping[str, Any]], DeadLetterRecord]]] = MappingProxyType(
    {1: lambda row: _letter(migrated_from_v1(row)), DEAD_LETTER_VERSION: _letter}
)
