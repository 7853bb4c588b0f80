"""The gate between a table and its consumers: no consumer reads an unverified or red commit.

All plans pass it, in every job, so a red table stops its consumers wherever they run.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sda_platform.lake.errors import InvariantError, TableIsRed
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.table import Table
from sda_platform.lake.verdicts import CommitFinding, Position, TableVerdict


@dataclass(frozen=True)
class Readable:
    """The ``head`` of a table that a consumer may see, its ``newest`` one, and the first red finding, if any."""

    table: Table
    head: Head
    newest: Head
    red: CommitFinding | None = None

    @property
    def withheld(self) -> str | None:
        """Why red commits are not read; None: there are none."""
        if self.red is None or self.head.sequence >= self.newest.sequence:
            return None
        state = f"{self.red} (since {self.red.since_utc})"
        return f"{state}. Repair its rows and run its checks, or accept them with `sda lake accept {self.table.name}`"


def readable_of(log: TableLog, verdict: TableVerdict, newest: Head, previous: CommitManifest | None = None) -> Readable:
    """Return what a consumer may see of the table of ``log``, whose head is ``newest``.

    What its commit ``previous`` has read stays read: a finding about that changes nothing that flows any more.
    """
    red = next(iter(verdict.red), None)
    position = max(verdict.readable, _read_before(log.table, previous), key=lambda each: each.sequence)
    if newest.sequence <= position.sequence:
        return Readable(log.table, newest, newest, red)
    return Readable(log.table, _head_at(log, position), newest, red)


def refuse_red(consumer: Table, inputs: Iterable[Readable]) -> None:
    """Raise TableIsRed when one of ``inputs`` has commits for ``consumer`` that it must not read."""
    reasons = [each.withheld for each in inputs if each.withheld]
    if reasons:
        raise TableIsRed(f"{consumer.name} does not read on: {'; '.join(reasons)}")


def _read_before(source: Table, previous: CommitManifest | None) -> Position:
    """Return the commit of ``source`` up to which a consumer's commit ``previous`` read it."""
    if previous is None:
        return Position()
    read = [Position(each.sequence, each.version) for each in previous.inputs() if each.table == source.name]
    return max([Position(), *read], key=lambda each: each.sequence)


def _head_at(log: TableLog, position: Position) -> Head:
    """Return the head that the table had when ``position`` was its newest commit."""
    if position.sequence == 0:
        return Head()
    commit = next(log.commits_from(position.version), None)
    if commit is None:
        raise InvariantError(
            f"{log.table.name}: commit {position.sequence}, up to which it may be read, was cleaned from the log: "
            f"repair or acknowledge what is red of it (`sda status`), then start the job by hand"
        )
    return Head(position.version, position.sequence, commit)
