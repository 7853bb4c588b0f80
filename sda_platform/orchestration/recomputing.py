"""Commits made again as if an input had never come, or had been another: all tables together, in their own order.

The runner is that of a replay. A commit is made once all commits that it had read are made.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.orchestration.replaying import Progress, detached, read_again, run_again
from sda_platform.replay.counterfactual import CounterfactualLake, Made, OtherInput
from sda_platform.replay.fork import fork
from sda_platform.replay.history import History, Span, history


def recompute(
    live: Lake,
    shadow_uri: str,
    resources: Mapping[str, Any],
    *,
    since: Sequence[tuple[Table, int]],
    other: OtherInput,
    report: Progress = lambda *_: None,
) -> Mapping[str, TableLog]:
    """Fork each table of ``since`` before that sequence, make its later commits again, and return the forks' logs.

    ``since`` has every table that would hold something else, down to those that are asked for. The live lake stays as
    it is; leases hold what is read. Raises NotReplayable when an input is gone, SegmentLost for an archived segment.
    """
    known = ((table, history(live.log(table), Span(from_sequence=first))) for table, first in since)
    chosen = {table.name: (table, found) for table, found in known if found is not None}
    forks = {name: TableLog(table, f"{shadow_uri}/{name}") for name, (table, _) in chosen.items()}
    made: Made = {name: {} for name in chosen}
    for table, found in chosen.values():
        report(table, 0, len(found.commits))
    with ExitStack() as opened:
        read = [each for table, found in chosen.values() for each in read_again(table, found)]
        opened.enter_context(VersionLeases(live.uri).held(read, "impact"))
        apart = {n: opened.enter_context(detached(t, live, found, resources)) for n, (t, found) in chosen.items()}
        for name, (table, found) in chosen.items():
            if found.before is not None:
                fork(live.log(table), forks[name], found.before.version)
                made[name][found.before.sequence] = found.before
        for table, commit in _inputs_first(chosen.values()):
            name, found = table.name, chosen[table.name][1]
            lake = CounterfactualLake(live, table, shadow_uri, found, commit, made, other.left_out.get(name, ""))
            run_again(lake, table, commit, apart[name], other.corrected)
            made[name][commit.sequence] = lake.made()
            report(table, commit.sequence - found.first + 1, len(found.commits))
    return forks


def _inputs_first(histories: Iterable[tuple[Table, History]]) -> Iterator[tuple[Table, Commit]]:
    """All commits of ``histories``, each after those of the others that it had read."""
    waiting = [(table, deque(found.commits)) for table, found in histories]
    done = {table.name: commits[0].sequence - 1 for table, commits in waiting}

    def is_ready(commit: Commit) -> bool:
        return all(each.sequence <= done.get(each.table, each.sequence) for each in commit.manifest.inputs())

    while any(commits for _, commits in waiting):
        before = dict(done)
        for table, commits in waiting:
            while commits and is_ready(commits[0]):
                yield table, commits[0]
                done[table.name] = commits.popleft().sequence
        if done == before:
            stuck = ", ".join(f"{table.name} {commits[0].sequence}" for table, commits in waiting if commits)
            raise NotReplayable(f"the log does not have any more what these commits read: {stuck}")
