"""A table's log, read without a JVM: head, manifests, rows.

Sensors, checks, planning and the command line read here. Only `lake.commit` writes, through Spark.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from sda_platform.lake import delta_log
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.log_commits import Commit, Head, commit_in
from sda_platform.lake.manifest import GENESIS, TableWindow
from sda_platform.lake.table_rows import TableRows

# Default length of a list of commits.
NEWEST_COMMITS = 100


class TableLog(TableRows):
    """The log of one table; it keeps the commits that it read last, which do not change."""

    def head(self) -> Head:
        """The table's newest state, however many commits of others (OPTIMIZE, VACUUM) came after the platform's last.

        Raises InvariantError when the log lost a commit, UnreadableManifest when the newest manifest is damaged.
        """
        version, newest, is_emptied = self.version(), None, False
        for number, text in self._texts.from_version(version):
            newest = commit_in(self.table, number, text)
            if newest is not None:
                break
            is_emptied = is_emptied or not text.strip()
        if version >= 0 and (newest is None or is_emptied):
            self._require_newest(newest.sequence if newest else 0, version)
        self._seen = max(self._seen, (version, newest.sequence if newest else 0))
        return Head(version, newest.sequence if newest else 0, newest)

    def _require_newest(self, sequence: int, version: int) -> None:
        """Raise InvariantError unless the table's newest transaction of ours up to ``version`` is ``sequence``.

        Delta's own checkpoint keeps the transaction of a commit whose file was emptied or removed.
        """
        delta = self.open(version)
        known = delta.transaction_version(self.table.app_id) if delta else None
        if (known or 0) != sequence:
            raise InvariantError(
                f"{self.table.name}: the log records that sequence {known} was committed, but its newest manifest is "
                f"{sequence or 'none'}: a commit was lost or emptied; restore {self.uri} from a backup"
            )

    def commits(self, limit: int | None = NEWEST_COMMITS, *, after: int = 0) -> list[Commit]:
        """Return the platform's newest commits, newest first: at most ``limit``, of sequences above ``after``.

        Commits of others do not count. Where the log was cut, the list ends there.
        """
        newer = takewhile(lambda commit: commit.sequence > after, self.commits_from(self.version()))
        return list(islice(newer, limit))

    def find(self, sequence: int) -> Commit | None:
        """Return the commit with this sequence number, if the log holds it or it was kept."""
        found = _of_sequence(self.commits(after=sequence - 1), sequence)  # the newest ones stay in the log
        if found is None and (version := self.kept.version_of(sequence)) is not None:
            found = self.commit_at(version)
        return found or _of_sequence(self.commits(None, after=sequence - 1), sequence)

    def end_of(self, window: TableWindow) -> Commit | None:
        """Return the commit at which ``window`` on this table ended; None before the first."""
        return self.commit_at(window.upto_version)

    def commit_at(self, version: int) -> Commit | None:
        """The platform's commit with this Delta version; None where it is another's, or not in the log any more."""
        text = next(self._texts.from_version(version), None)
        return commit_in(self.table, *text) if text else None

    def confirm(self, window: TableWindow) -> None:
        """Raise InvariantError unless the log still holds the commit at which ``window`` on this table ended.

        A commit that was lost and made again has another nonce, hence another hash.
        """
        end = self.end_of(window)
        if (end.manifest_sha256 if end else GENESIS) != window.upto_sha256:
            raise InvariantError(
                f"{self.table.name}: commit {window.upto_sequence} (version {window.upto_version}) is not the one that "
                "was consumed: it was lost, or the table was restored or replaced; what consumed it must be rebuilt"
            )

    def commits_from(self, version: int) -> Iterator[Commit]:
        """The platform's commits from ``version`` downwards, newest first, down to sequence 1 or where the log was cut.

        Each is read on demand. Raises InvariantError, UnreadableManifest for what cannot be read.
        """
        for number, text in self._texts.from_version(version):
            commit = commit_in(self.table, number, text)
            if commit is not None:
                self._seen = max(self._seen, (version, commit.sequence))
                yield commit
                if commit.sequence == 1:
                    return

    def first_unproven(self, head: Head) -> int:
        """Return the oldest version that may be unsynced: the first after the commit before that of ``head``.

        The plan of the newest commit had synced everything up to the commit before. The run that wrote the newest
        commit syncs it together with versions of other tools in between, unless the run was killed first.
        """
        first = max(head.commit_version, 0)
        for number, text in self._texts.from_version(head.commit_version - 1):
            if delta_log.sequence_in(text, self.table.app_id) is not None:
                break
            first = number
        return first

    def make_durable(self, first_version: int, last_version: int) -> None:
        """Return once these versions would survive a power loss; see `delta_log.make_durable`."""
        delta_log.make_durable(self.uri, first_version, last_version)

    def properties(self) -> dict[str, str | None]:
        """Return the Delta properties of the stored table."""
        delta = self.open()
        return dict(delta.metadata().configuration) if delta else {}

    def operations(self) -> Iterator[tuple[str, int]]:
        """Operation and time (Unix time, ms) of each version of any writer, newest first."""
        for _, text in self.versions():
            for _, info in delta_log.actions(text, "commitInfo"):
                yield str(info.get("operation", "")), int(info.get("timestamp", 0))

    def versions(self) -> Iterator[tuple[int, str]]:
        """Number and text of each version of any writer, newest first, as far as the log reaches."""
        return self._texts.from_version(self.version())


def _of_sequence(commits: Iterable[Commit], sequence: int) -> Commit | None:
    return next((commit for commit in commits if commit.sequence == sequence), None)
