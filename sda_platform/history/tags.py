"""Tags: named states of the lake that are kept beyond the retention, each complete in itself.

A tag has the version vector and the columns that each table had. It has a copy of the data files of the tables whose
rows are replaced. Rows of the other tables stay where they are. So a tag needs no old log, and holds nothing back: data
files and logs expire as usual. Copies are verified by checksum and row count before the tag is written, which is the
last step.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.parquet as pq
from upath import UPath

from sda_platform import failpoints
from sda_platform.history.errors import UnknownMoment
from sda_platform.history.pinned_files import pinned_files
from sda_platform.history.version_vector import KeptTable, VersionVector
from sda_platform.lake import delta_log, durable
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ABANDONED_MS = 24 * 3_600_000


@dataclass(frozen=True)
class CopiedFile:
    """A data file of a tag: its name, SHA-256 and rows."""

    name: str
    sha256: str
    rows: int


@dataclass(frozen=True)
class Tag:
    """A named state: what it is of, its snapshots ``[version, sequence]``, columns and copies, by table.

    Times are Unix time in ms, wall clock; without ``until_ms`` it is kept until it is removed.
    """

    name: str
    moment: str
    created_ms: int
    until_ms: int | None
    snapshots: Mapping[str, tuple[int, int]]
    columns: Mapping[str, list[str]]
    files: Mapping[str, list[CopiedFile]]


class Tags:
    """The tags of the lake at ``lake_uri``."""

    def __init__(self, lake_uri: str) -> None:
        self._directory = location(lake_uri) / "_tags"
        self._leases = VersionLeases(lake_uri)

    def names(self) -> list[str]:
        """Return the names of all tags."""
        return sorted(file.stem for file in self._directory.glob("*.json")) if self._directory.exists() else []

    def create(
        self,
        lake: Lake,
        tables: Mapping[str, Table],
        vector: VersionVector,
        name: str,
        *,
        until_ms: int | None = None,
        now_ms: int | None = None,
    ) -> Tag:
        """Keep ``vector`` as ``name``; leave a tag of this name with equal versions as it is.

        Raises UnknownMoment for a name that cannot be used, VersionExpired where the state is gone already.
        """
        if not _NAME.fullmatch(name):
            raise UnknownMoment(f"{name!r} is no name of a tag: use lower-case letters, digits, - and _")
        snapshots = {each.table: (each.version, each.sequence) for each in vector.snapshots.values()}
        if name in self.names():
            if self.read(name).snapshots == snapshots:
                return self.read(name)
            raise UnknownMoment(f"tag {name} exists, of {self.read(name).moment}; choose another name, or remove it")
        columns: dict[str, list[str]] = {}
        files: dict[str, list[CopiedFile]] = {}
        with self._leases.held(vector.snapshots.values(), _purpose(name)):
            for snapshot in vector.snapshots.values():
                log = lake.log(tables[snapshot.table])
                columns[snapshot.table] = list(pinned_files(log, snapshot).columns)
                if log.table.replaces_rows and snapshot.sequence:
                    sources = delta_log.data_files(log.uri, log.open(snapshot.version))
                    files[snapshot.table] = [self._copy(source, name, log) for source in sources]
            failpoints.hit("tag.copied", name)
            created_ms = now_ms if now_ms is not None else time.time_ns() // 1_000_000
            tag = Tag(name, vector.moment, created_ms, until_ms, snapshots, columns, files)
            durable.write(self._file(name), json.dumps(asdict(tag), indent=1).encode())
        return tag

    def read(self, name: str) -> Tag:
        """Return the tag ``name``. Raises UnknownMoment, InvariantError where its file is damaged."""
        try:
            facts: dict[str, Any] = json.loads(self._file(name).read_text())
        except FileNotFoundError:
            known = ", ".join(self.names()) or "none"
            raise UnknownMoment(f"no tag is named {name!r}; there are: {known}") from None
        except ValueError as error:
            raise InvariantError(f"{self._file(name)} is damaged ({error}); restore it from a backup") from None
        facts["snapshots"] = {table: (version, sequence) for table, (version, sequence) in facts["snapshots"].items()}
        facts["files"] = {table: [CopiedFile(**each) for each in files] for table, files in facts["files"].items()}
        return Tag(**facts)

    def vector(self, name: str) -> VersionVector:
        """Return the state that a tag keeps."""
        tag = self.read(name)
        snapshots = {table: TableSnapshot(table, *pin) for table, pin in tag.snapshots.items()}
        kept = {
            table: KeptTable(columns, [str(self._copies(name, table) / f.name) for f in tag.files.get(table, ())])
            for table, columns in tag.columns.items()
        }
        return VersionVector(snapshots, f"tag {name} ({tag.moment})", {"tag": name}, kept)

    def verify(self, name: str) -> None:
        """Read every copy of a tag, as a restore would. Raises InvariantError, naming each that is not as copied."""
        bad = [
            str(path)
            for table, files in self.read(name).files.items()
            for each in files
            if not _is_as_copied(path := self._copies(name, table) / each.name, each)
        ]
        if bad:
            raise InvariantError(f"tag {name}: {', '.join(bad)} is missing or damaged; restore it from a backup")

    def verify_all(self) -> int:
        """Verify every tag; returns how many there are. Raises InvariantError for all that are damaged."""
        names, damaged = self.names(), []
        for name in names:
            try:
                self.verify(name)
            except InvariantError as error:
                damaged.append(str(error))
        if damaged:
            raise InvariantError("; ".join(damaged))
        return len(names)

    def remove(self, name: str) -> None:
        """Remove a tag: first its name, then its copies."""
        self.read(name)
        self._file(name).unlink(missing_ok=True)
        failpoints.hit("tag.unnamed", name)
        _remove_directory(self._directory / name)

    def sweep(self, *, now_ms: int) -> int:
        """Remove the tags that have expired, and copies that belong to no tag since a day; returns how many."""
        expired = [n for n in self.names() if (until := self.read(n).until_ms) is not None and until <= now_ms]
        for name in expired:
            self.remove(name)
        abandoned = list(self._abandoned(now_ms))
        for directory in abandoned:
            _remove_directory(directory)
        return len(expired) + len(abandoned)

    def _abandoned(self, now_ms: int) -> Iterator[UPath]:
        """Directories without a tag. A repeated tagging goes on in an old one: its lease is read before the names."""
        directories = list(self._directory.iterdir()) if self._directory.exists() else []
        at_work = {lease.purpose for lease in self._leases.active()}
        known = set(self.names())
        for directory in directories:
            is_old = directory.stat().st_mtime * 1000 < now_ms - _ABANDONED_MS
            is_used = directory.name in known or _purpose(directory.name) in at_work
            if directory.is_dir() and is_old and not is_used:
                yield directory

    def _copy(self, source: UPath, name: str, log: TableLog) -> CopiedFile:
        data = source.read_bytes()
        copied = CopiedFile(source.name, hashlib.sha256(data).hexdigest(), _rows(source))
        target = self._copies(name, log.table.name) / source.name
        if not _is_as_copied(target, copied):
            durable.make_directory(target.parent)
            durable.write(target, data)
        if not _is_as_copied(target, copied):
            raise InvariantError(f"{target} is not as it was written; nothing was tagged")
        return copied

    def _copies(self, name: str, table: str) -> UPath:
        return self._directory / name / table

    def _file(self, name: str) -> UPath:
        return self._directory / f"{name}.json"


def _purpose(name: str) -> str:
    """Return the purpose of the lease of a tagging."""
    return f"tag {name}"


def _rows(file: UPath) -> int:
    with file.open("rb") as stream:
        return int(pq.ParquetFile(stream).metadata.num_rows)


def _is_as_copied(file: UPath, copied: CopiedFile) -> bool:
    if not file.exists():
        return False
    return hashlib.sha256(file.read_bytes()).hexdigest() == copied.sha256 and _rows(file) == copied.rows


def _remove_directory(directory: UPath) -> None:
    if directory.exists():
        directory.fs.rm(directory.path, recursive=True)
