"""Rows that a commit left out because they break the contract of their table, with the reasons.

They are in a file beside the table's data, whose name is the nonce of the commit. It is durable before the commit, and
counts only if the commit landed: an attempt that failed leaves a file that no commit names. VACUUM leaves it alone, as
everything below a directory whose name begins with an underscore.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.storage import location
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.lake.unconsumed import commits_of

REFUSED: Final = "refused"
"""The count of such rows in a manifest."""

_PLACE = "_refused"


@dataclass(frozen=True)
class RefusedRow:
    """One row that ``commit`` left out.

    ``values``: the row as JSON, None where its file is lost. ``sha256`` identifies the refused rows of a commit: it
    depends on table, sequence, rows and reasons alone, so that a repeated commit has the same.
    """

    table: str
    commit: Commit
    sha256: str
    number: int
    key: str
    reason: str
    values: str | None


def write_refused(log: TableLog, nonce: str, rows: pa.Table, reasons: Sequence[Sequence[str]]) -> None:
    """Keep these rows of the commit with this nonce, each with its reasons, in the order of their contents."""
    names = [name for name in log.table.key if name != COMMIT_SEQUENCE]
    content = rows.select([name for name in rows.column_names if name != COMMIT_SEQUENCE])
    lines = sorted(
        _json({"key": {name: row[name] for name in names}, "reason": "; ".join(why), "values": row})
        for row, why in zip(content.to_pylist(), reasons, strict=True)
    )
    path = _file(log, nonce)
    durable.make_directory(path.parent)
    durable.write(path, "\n".join(lines).encode())


def refused_in(log: TableLog, window: TableWindow) -> Iterator[RefusedRow]:
    """Return the rows that the commits of ``window`` on the table left out."""
    return refused_rows(log, commits_of(log, window))


def refused_rows(log: TableLog, commits: Iterable[Commit]) -> Iterator[RefusedRow]:
    """Yield the rows that these commits of the table left out."""
    for commit in commits:
        count = commit.manifest.counts.get(REFUSED, 0)
        if count:
            yield from _of(log, commit, count)


def excused(log: TableLog, commits: Iterable[Commit], column: str, expected: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the ``expected`` values of ``column`` without those of rows that these commits of the table left out."""
    values = [json.loads(row.values)[column] for row in refused_rows(log, commits) if row.values]
    return expected.filter(pc.invert(pc.is_in(expected, pa.array(values, expected.type)))) if values else expected


def _of(log: TableLog, commit: Commit, count: int) -> Iterator[RefusedRow]:
    path, name = _file(log, commit.manifest.nonce), log.table.name
    place = f"{name}/{commit.sequence}/".encode()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        sha256, why = hashlib.sha256(place).hexdigest(), f"not known any more: {path} is lost"
        for number in range(count):
            yield RefusedRow(name, commit, sha256, number, "an unknown key", why, None)
        return
    # Equal rows of two commits are two letters.
    sha256 = hashlib.sha256(place + data).hexdigest()
    for number, line in enumerate(data.decode().splitlines()):
        row = json.loads(line)
        key = ", ".join(f"{column} {value}" for column, value in row["key"].items())
        yield RefusedRow(name, commit, sha256, number, key, row["reason"], _json(row["values"]))


def _file(log: TableLog, nonce: str) -> UPath:
    return location(log.uri) / _PLACE / f"{nonce}.jsonl"


def _json(values: Any) -> str:
    return json.dumps(values, sort_keys=True, default=_text)


def _text(value: Any) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
