"""The commits that have left a table's log: kept for years, because versions, inputs and settings follow from them.

The maintenance writes them here before it cuts the log, a file for each cut: of every version the actions that name
writer, manifest and columns, not those that name data files. A file's name has its first and last version, and the
sequence of the newest commit of the platform up to there; the file has the columns of the table at its first version.
So a commit is found, with the columns of then, in one file.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from sda_platform.lake import delta_log, durable
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.storage import content_of

_DIRECTORY = "_commits"
_KEPT_ACTIONS = ('{"commitInfo"', '{"txn"', '{"metaData"')
_NAME = re.compile(r"(\d{20})-(\d{20})-(\d{20})\.parquet")
_SCHEMA = pa.schema(
    [("version", pa.int64()), ("sequence", pa.int64()), ("timestamp_ms", pa.int64()), ("text", pa.string())]
)
_COLUMNS = b"columns"
_OPENED_FILES = 4


class _Kept(NamedTuple):
    rows: list[dict[str, Any]]
    columns: list[str] | None


class KeptCommits:
    """Those of the table at ``uri``. They do not change: what was read last is kept in memory."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._directory = delta_log.table_directory(uri) / _DIRECTORY
        self._read = lru_cache(maxsize=_OPENED_FILES)(_read)

    @property
    def next_version(self) -> int:
        """The version after the last that is kept; 0 where there is none."""
        return max((last + 1 for _, last, _, _ in self._files()), default=0)

    def keep(self, app_id: str, columns: Sequence[str] | None, texts: Iterable[tuple[int, str]]) -> None:
        """Keep these versions, which follow each other and what is kept; on disk on return.

        ``app_id``: that of the platform's commits. ``columns``: those of the table at the first of these versions, if
        they are known. Raises InvariantError where a text is torn.
        """
        rows = [_row(app_id, version, text) for version, text in texts]
        if not rows:
            return
        files = self._files()
        before = files[-1][2] if files else 0
        sequence = max((row["sequence"] for row in rows if row["sequence"] is not None), default=before)
        stream = pa.BufferOutputStream()
        schema = _SCHEMA.with_metadata({_COLUMNS: json.dumps(columns)})
        pq.write_table(pa.Table.from_pylist(rows, schema), stream, compression="zstd", write_page_checksum=True)
        name = f"{rows[0]['version']:020d}-{rows[-1]['version']:020d}-{sequence:020d}.parquet"
        durable.write(self._directory / name, stream.getvalue().to_pybytes())

    def from_version(self, version: int) -> Iterator[tuple[int, str]]:
        """Yield versions and texts from ``version`` downwards, without a gap, as far as they are kept."""
        wanted = version
        for first, last, _, file in reversed(self._files()):
            if last < wanted:
                return
            if first > wanted:
                continue
            for row in reversed(self._read(file).rows):
                if row["version"] == wanted:
                    yield wanted, row["text"]
                    wanted -= 1

    def version_of(self, sequence: int) -> int | None:
        """Return the version of the platform's commit with this sequence; None where it is not kept."""
        files = self._files()
        at = bisect_left(files, sequence, key=lambda file: file[2])
        rows = self._read(files[at][3]).rows if at < len(files) else ()
        return next((row["version"] for row in rows if row["sequence"] == sequence), None)

    def columns_at(self, version: int) -> list[str] | None:
        """Return the columns that the table had at ``version``; None where neither the log nor what is kept says."""
        if (in_log := delta_log.column_names(self._uri, version)) is not None:
            return in_log
        for first, last, _, file in self._files():
            if first <= version <= last:
                kept = self._read(file)
                found = kept.columns
                for row in kept.rows:
                    if row["version"] <= version:
                        found = delta_log.columns_in(row["text"]) or found
                return found
        return None

    def expire(self, before_ms: float) -> int:
        """Remove the files of which every commit was made before ``before_ms`` (Unix time); returns how many."""
        expired = []
        for *_, file in self._files():
            if max(row["timestamp_ms"] for row in self._read(file).rows) >= before_ms:
                break  # what is left follows each other
            expired.append(file)
        for file in expired:
            file.unlink(missing_ok=True)
        return len(expired)

    def _files(self) -> list[tuple[int, int, int, UPath]]:
        """First version, last version, newest sequence, and file; oldest first."""
        try:
            found = [(found, file) for file in self._directory.iterdir() if (found := _NAME.fullmatch(file.name))]
        except (FileNotFoundError, NotADirectoryError):  # an object store has no empty directory
            return []
        return sorted((int(name[1]), int(name[2]), int(name[3]), file) for name, file in found)


def _row(app_id: str, version: int, text: str) -> dict[str, Any]:
    try:
        sequence = delta_log.sequence_in(text, app_id)
        timestamp_ms = delta_log.timestamp_ms(text)
    except (ValueError, KeyError) as error:
        raise InvariantError(f"version {version} of the log cannot be read ({error}), so the log is not cut") from error
    kept = "\n".join(line for line in text.split("\n") if line.startswith(_KEPT_ACTIONS))
    return {
        "version": version, "sequence": sequence, "timestamp_ms": timestamp_ms, "text": kept,
    }  # fmt: skip


def _read(file: UPath) -> _Kept:
    try:
        stream = pa.BufferReader(content_of(file))
        found = pq.read_table(stream, page_checksum_verification=True)
        return _Kept(found.to_pylist(), json.loads(found.schema.metadata[_COLUMNS]))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InvariantError(f"{file} is damaged ({error}); restore it from a backup") from error
