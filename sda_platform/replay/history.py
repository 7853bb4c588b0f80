"""A table's history: which of its commits a replay makes again, and what came before them."""

import sys
from dataclasses import dataclass
from itertools import pairwise

from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import CommitManifest


@dataclass(frozen=True)
class Span:
    """Which commits of a table: by sequence (both ends included), and by ``as_of`` in ``[since_ns, until_ns)``."""

    from_sequence: int = 1
    to_sequence: int = sys.maxsize
    since_ns: int = -sys.maxsize
    until_ns: int = sys.maxsize

    def __contains__(self, manifest: CommitManifest) -> bool:
        return (
            self.from_sequence <= manifest.sequence <= self.to_sequence
            and self.since_ns <= manifest.as_of_ns < self.until_ns
        )


EVERY_COMMIT = Span()


@dataclass(frozen=True)
class History:
    """Consecutive commits of a table, oldest first; ``before`` the first there is that one, if any.

    ``version`` is one of the table that no commit after these has written: a platform may write while it is replayed.
    """

    commits: tuple[Commit, ...]
    before: Commit | None
    reaches_head: bool
    version: int

    @property
    def first(self) -> int:
        """Return the sequence of the first commit."""
        return self.commits[0].sequence

    @property
    def last(self) -> int:
        """Return the sequence of the last commit."""
        return self.commits[-1].sequence

    def predecessor(self, commit: Commit) -> Commit | None:
        """Return the commit before ``commit``."""
        return (self.before, *self.commits)[commit.sequence - self.first]


def history(log: TableLog, span: Span) -> History | None:
    """Return the commits of ``span``, or None where the table has none there.

    Raises NotReplayable when the log lacks one of them, or the one before the first.
    """
    version = log.version()
    known = log.commits(None)[::-1]
    chosen = tuple(c for c in known if c.manifest in span)
    if not chosen:
        return None
    for older, newer in pairwise(c.sequence for c in chosen):
        if newer != older + 1:
            raise NotReplayable(
                f"{log.table.name}: after sequence {older} the next commit in the log is {newer}; "
                f"replay up to {older}, or from {newer + 1}"
            )
    first = chosen[0].sequence
    before = next((c for c in known if c.sequence == first - 1), None)
    if before is None and first > 1:
        raise NotReplayable(
            f"{log.table.name}: the log does not hold sequence {first - 1}, on which {first} builds; replay from "
            f"{first + 1}"
        )
    return History(chosen, before, chosen[-1] is known[-1], version)
