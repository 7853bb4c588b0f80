"""What the decisions on alerts had read of their objects, kept after old versions have expired.

Rows of most tables stay, so the versions that a decision read select them for ever. Of a table whose rows are replaced,
an old version lives for days. So the maintenance copies from it the rows of the objects of each batch of alerts,
before it removes files: one file for each table and night.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from upath import UPath

from sda_platform import failpoints
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.history.errors import VersionExpired
from sda_platform.history.version_vector import decision_vector
from sda_platform.lake import durable
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.errors import InvariantError, VersionGone
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.retention import Retention
from sda_platform.lake.storage import content_of, location
from sda_platform.lake.table import Table
from sda_platform.units import DAY_MS, HOUR_MS

_OBJECT = "norad_id"
_BATCH = "alerts_sequence"
"""The commit of `conjunction_alerts` that a copied row belongs to."""
_NAME = re.compile(r"(\d{20})-(\d{20})-(\d+)\.parquet")
_OBJECTS = b"objects"
"""Names the `Objects` of whose batches a file has the rows; of another object or batch nothing is known from it."""
Objects = Mapping[int, Sequence[int]]
"""By the sequence of a batch the numbers of the objects of its alerts."""


class AlertStates:
    """Those of the lake at ``lake_uri``: of a table the file ``FIRST-LAST-TIME``, batches and time (Unix, ms)."""

    def __init__(self, lake_uri: str) -> None:
        self._directory = location(lake_uri) / "_alert_states"

    def keep(self, lake: Lake, tables: Mapping[str, Table], *, now_ms: int, retention: Retention) -> int:
        """Copy what the batches of the time that can still be read have read; returns how many batches are new.

        Killed at any point, it is repeated: a table's file has all batches up to its last, or is not there.
        """
        log = lake.log(CONJUNCTION_ALERTS)
        since_ms = now_ms - retention.data_files_h * HOUR_MS
        recent = list(takewhile(lambda commit: commit.timestamp_ms >= since_ms, log.commits_from(log.version())))[::-1]
        replaced = [t for t in tables.values() if t.replaces_rows and _OBJECT in t.arrow_schema.names]
        done = {table.name: max((last for _, last, _, _ in self._files(table.name)), default=0) for table in replaced}
        new = [commit for commit in recent if commit.sequence > min(done.values(), default=0)]
        if not new:
            return 0
        objects = _objects(lake, new)
        vectors = {c.sequence: self._vector(lake, tables, c) for c in new if c.sequence in objects}
        for table in replaced:
            missing = [commit.sequence for commit in new if commit.sequence > done[table.name]]
            if missing:
                read = {n: vectors[n][table.name] for n in missing if table.name in vectors.get(n, {})}
                rows = _rows_read(lake, table, read, objects)
                name = f"{missing[0]:020d}-{missing[-1]:020d}-{now_ms}.parquet"
                self._write(table.name, name, rows)
                failpoints.hit("alert_states.kept", table.name)
        return sum(bool(each) for each in vectors.values())

    def rows(self, table: str, sequence: int, objects: Collection[int]) -> pa.Table | None:
        """Return the rows of ``table`` that a batch read of its objects; None where it or one of ``objects`` is not
        kept.
        """
        for first, last, _, file in self._files(table):
            if first <= sequence <= last:
                try:
                    found = pq.read_table(pa.BufferReader(content_of(file)), page_checksum_verification=True)
                except (pa.ArrowException, OSError) as error:
                    raise InvariantError(f"{file} is damaged ({error}); restore it from a backup") from error
                kept = json.loads(found.schema.metadata[_OBJECTS]).get(str(sequence), ())
                rows = found.filter(pc.equal(found[_BATCH], sequence)).drop_columns(_BATCH)
                return rows if set(objects) <= set(kept) else None
        return None

    def expire(self, *, now_ms: int, retention: Retention) -> int:
        """Remove the files that are older than records are kept; returns how many."""
        old = [
            file
            for directory in self._tables()
            for _, _, made_ms, file in self._files(directory.name)
            if made_ms < now_ms - retention.record_days * DAY_MS
        ]
        for file in old:
            file.unlink(missing_ok=True)
        return len(old)

    @staticmethod
    def _vector(lake: Lake, tables: Mapping[str, Table], commit: Commit) -> Mapping[str, TableSnapshot]:
        """Return what a batch had read; nothing where a log was cut before manifests were kept."""
        try:
            return decision_vector(lake, tables, CONJUNCTION_ALERTS, commit).snapshots
        except VersionExpired:
            return {}

    def _write(self, table: str, name: str, rows: pa.Table) -> None:
        stream = pa.BufferOutputStream()
        pq.write_table(rows, stream, compression="zstd", write_page_checksum=True)
        durable.write(self._directory / table / name, stream.getvalue().to_pybytes())

    def _tables(self) -> list[UPath]:
        return list(self._directory.iterdir()) if self._directory.exists() else []

    def _files(self, table: str) -> list[tuple[int, int, int, UPath]]:
        directory = self._directory / table
        files = directory.iterdir() if directory.exists() else ()
        found = [(name, file) for file in files if (name := _NAME.fullmatch(file.name))]
        return sorted((int(name[1]), int(name[2]), int(name[3]), file) for name, file in found)


def _objects(lake: Lake, batches: Sequence[Commit]) -> Objects:
    span = (batches[0].sequence - 1, batches[-1].sequence)
    names = ["commit_sequence", "norad_id_1", "norad_id_2"]
    found: dict[int, set[int]] = {}
    for row in lake.log(CONJUNCTION_ALERTS).rows_of(span, names, where=ds.field("op") == INSERT).to_pylist():
        numbers = {row["norad_id_1"], row["norad_id_2"]} - {None}
        found.setdefault(row["commit_sequence"], set()).update(numbers)
    return {sequence: sorted(numbers) for sequence, numbers in found.items()}


def _rows_read(lake: Lake, table: Table, read: Mapping[int, TableSnapshot], objects: Objects) -> pa.Table:
    """Return the rows of the objects of each batch, in the order of batches; a version is read once for all of them."""
    by_version: dict[int, list[int]] = {}
    for sequence, snapshot in read.items():
        by_version.setdefault(snapshot.version if snapshot.sequence else -1, []).append(sequence)
    schema = table.arrow_schema.append(pa.field(_BATCH, pa.int64()))
    parts, kept = [schema.empty_table()], {}
    for version, sequences in by_version.items():
        numbers = sorted({number for sequence in sequences for number in objects[sequence]})
        try:
            rows = _rows(lake, table, version, numbers)
        except VersionGone:
            continue  # it expired before the maintenance came, and cannot be kept any more
        for sequence in sequences:
            own = rows.filter(pc.is_in(rows[_OBJECT], pa.array(objects[sequence], rows[_OBJECT].type)))
            parts.append(own.append_column(_BATCH, pa.array([sequence] * own.num_rows, pa.int64())).cast(schema))
            kept[sequence] = objects[sequence]
    return pa.concat_tables(parts).replace_schema_metadata({_OBJECTS: json.dumps(kept)})


def _rows(lake: Lake, table: Table, version: int, numbers: Sequence[int]) -> pa.Table:
    """Return the rows of these objects; before the first version there is none."""
    if version < 0:
        return table.arrow_schema.empty_table()
    return lake.log(table).rows(where=ds.field(_OBJECT).isin(numbers), version=version)
