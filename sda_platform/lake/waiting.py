"""The commits that wait for a reader."""

from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table


def waiting_commits(lake: Lake, source: Table, reader: Table) -> list[Commit]:
    """Return the commits of ``source`` that ``reader`` has not consumed, newest first; without those that a finding
    withholds.

    That finding is a fault of its own, and its consumers stop by rule.
    """
    commit, readable = lake.log(reader).head().commit, lake.readable(source)
    window = commit.manifest.window(source.name) if commit else None
    waiting = lake.log(source).commits(None, after=window.upto_sequence if window else 0)
    return [each for each in waiting if not readable.withheld or each.sequence <= readable.head.sequence]
