"""Which commits still wait for a table that consumes them: told from the logs alone, whatever Dagster remembers."""

from collections.abc import Mapping

from sda_platform.lake.log import Head
from sda_platform.lake.table import Table


def unread_commits(table: Table, heads: Mapping[str, Head]) -> dict[str, int]:
    """How many commits of each table upstream ``table`` has not consumed yet; without those that it is level with.

    ``heads``: of every table, by name. A table that has no commit does not tell what it consumes.
    """
    commit = heads[table.name].commit
    windows = commit.checkpoint.windows if commit else ()
    waiting = {window.table: heads[window.table].sequence - window.upto_sequence for window in windows}
    return {name: commits for name, commits in waiting.items() if commits > 0}
