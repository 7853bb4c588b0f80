"""Which commits a window has, and which still wait for a table: from the logs alone, without Dagster's records."""

from collections.abc import Mapping

from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.table import Table


def unconsumed_commits(
    table: Table, heads: Mapping[str, Head], upto: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return how many commits of each table upstream ``table`` has not consumed yet; without those that it is level
    with.

    ``heads``: of every table, by name. A table that has no commit consumed nothing of those that it is made of.
    ``upto``: by name, the last sequence that counts where that is not the head's.
    """
    ends = {name: head.sequence for name, head in heads.items()} | dict(upto or {})
    commit = heads[table.name].commit
    if commit is None:
        consumed = {source.name: 0 for source in table.consumed}
    else:
        consumed = {window.table: window.upto_sequence for window in commit.manifest.windows}
    waiting = {name: ends[name] - sequence for name, sequence in consumed.items()}
    return {name: commits for name, commits in waiting.items() if commits > 0}


def commits_of(log: TableLog, window: TableWindow) -> list[Commit]:
    """Return the commits of ``window`` on the table of ``log``, newest first."""
    newer = [] if window.is_empty else log.commits(None, after=window.after_sequence)
    return [commit for commit in newer if commit.sequence <= window.upto_sequence]
