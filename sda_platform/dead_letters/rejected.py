"""Dead letters: how they are written (always the newest layout), and how every documented layout is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

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
    """The class of an error of this kind: the column ``error_class``."""
    return _CLASS_OF_KIND.get(error_kind, Disposition.PERMANENT.value)


def rejected_records(bronze: DataFrame, stage: str, as_of_ns: int) -> DataFrame:
    """The rows of a bronze table that carry an error, as dead letters of ``stage`` that was refused at ``as_of_ns``."""
    dead = bronze.where(F.col("error_kind").isNotNull())
    classes = F.create_map(*(F.lit(text) for pair in _CLASS_OF_KIND.items() for text in pair))
    added = {
        "schema_version": F.lit(DEAD_LETTER_VERSION),
        "stage": F.lit(stage),
        "error_class": F.coalesce(F.try_element_at(classes, F.col("error_kind")), F.lit(Disposition.PERMANENT.value)),
        "rejected_time_ns": F.lit(as_of_ns).cast("long"),
        "retry_count": F.coalesce(F.col("reprocess_count"), F.lit(0).cast("long")),
    }
    if "source_id" not in dead.columns:
        added["source_id"] = F.lit(None).cast("string")
    return dead.withColumns(added).select(*COLUMNS)


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
    same: dict[str, Any] = {
        "schema_version": DEAD_LETTER_VERSION,
        "stage": stage,
        "error_kind": "late_observation",
        "error_class": _CLASS_OF_KIND["late_observation"],
        "rejected_time_ns": as_of_ns,
        "retry_count": 0,
    }
    columns = {name: pa.array([value] * both.num_rows) for name, value in same.items()} | {"error": text}
    found = [columns[name] if name in columns else both[name] for name in COLUMNS]
    declared = pa.schema([DEAD_LETTERS.arrow_schema.field(name) for name in COLUMNS])
    return pa.table(dict(zip(COLUMNS, found, strict=True))).cast(declared)


def refused_letters(store: Lake, windows: Iterable[tuple[Table, TableWindow]], as_of_ns: int) -> pa.Table:
    """The rows that the commits of these windows left out because they break their table's contract, as dead letters.

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
