"""Whether a table that has no log is new or lost, and whether its last commit was lost.

It is new only if no other table's manifest names it and its zones gave it no records (see `landing.table_zones`). A
lost table that was taken for a new one would start again at sequence 1, without the rows that others consumed.
"""

from collections.abc import Iterable, Sequence

from deltalake.exceptions import DeltaError

from sda_platform.lake import delta_log
from sda_platform.lake.errors import InvariantError, TableLost
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table


def require_new(log: TableLog, loss: str | None) -> None:
    """Raise TableLost if ``loss`` shows that the table of ``log`` existed before, and it does not exist.

    A table that another run creates meanwhile is not lost.
    """
    if loss and log.version() < 0:
        raise TableLost(f"{loss}. {remedy(log)}")


def require_no_lost_commit(log: TableLog, version: int) -> None:
    """Raise InvariantError where ``version``, the next to be made, was made before.

    Delta keeps a checksum file that is there. Later commits would take the files of the lost one for the table's.
    """
    if delta_log.is_lost(log.uri, version):
        raise InvariantError(
            f"{log.table.name}: version {version} is missing, and its checksum file is there: a commit was lost. "
            "Stop the platform and start it again; the start repairs the table"
        )


def shown_by_consumers(table: Table, others: Iterable[TableLog]) -> str | None:
    """Return how the logs of ``others`` show that ``table``, which has no log, existed before; None if they do not."""
    named_by = consumers(others, table)
    return f"{table.name} is missing, but {', '.join(named_by)} consumed it: it was lost" if named_by else None


def remedy(log: TableLog) -> str:
    """Return what a person does about a table whose rows are gone."""
    return (
        "Restore the lake from a backup (`sda lake restore`). Or run "
        f"`sda lake verify --repair --rebuild {log.table.name}`: it sets the table aside with all that was made from "
        "it, puts the archived segments back, and the platform makes them anew"
    )


def made_from(tables: Sequence[Table], table: Table) -> list[Table]:
    """``table`` and every table that consumes or reads it, directly or through others, in the order of ``tables``."""
    names = {table.name}
    while True:
        found = {t.name for t in tables if names & {source.name for source in t.inputs}} - names
        if not found:
            return [each for each in tables if each.name in names]
        names |= found


def consumers(logs: Iterable[TableLog], source: Table, after_sequence: int = 0) -> list[str]:
    """Return the tables of ``logs`` that have, or may have, read commits of ``source`` after this sequence.

    Of a table whose newest version is damaged the commit before counts. A commit is only planned on commits that are on
    disk, so the damaged one did not read what a power loss took; by other damage it is lost as well.
    """
    found = []
    for log in logs:
        try:
            commit = _newest_readable(log)
        except (InvariantError, DeltaError):
            found.append(f"perhaps {log.table.name}, which is damaged itself")
            continue
        read = commit.manifest.inputs() if commit else ()
        if any(each.table == source.name and each.sequence > after_sequence for each in read):
            found.append(log.table.name)
    return found


def _newest_readable(log: TableLog) -> Commit | None:
    """Return the newest commit, or the one before where the newest version is damaged; None before the first.

    Raises InvariantError, DeltaError where more than the newest version is damaged.
    """
    try:
        return log.head().commit
    except (InvariantError, DeltaError):
        return next(log.commits_from(log.version() - 1), None)
