"""Verification of a table's new commits against its promises: the verdict is a state of the table, not of one run.

A review covers every commit since the last that was verified, the newest before it once more, and every commit that
was found wrong before. So a red table stays red however many commits follow, and turns green once its rows keep their
promises again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile

from sda_platform.clock import iso
from sda_platform.lake import delta_log
from sda_platform.lake.contract import schema_differences, violations
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.lake.verdicts import CommitFinding, Position, TableVerdict, Verdicts
from sda_platform.recovery.verification import broken_chain, duplicate_keys, reviewed_span

# What a package adds: the balance of its table against its inputs over these commits, newest first; returns what is
# wrong, in words.
Balance = Callable[[Lake, TableLog, Sequence[Commit]], list[str]]

# Commits that are verified again each time: rows can be lost after they were verified.
NEWEST_AGAIN = 5
REVIEWED = f"Reads new commits, and the newest {NEWEST_AGAIN} again; the nightly audits read older ones"
"""What a review reads and what it leaves out, for people."""
# Bounds of what is verified at once, and of what is looked for beyond commits that are red already.
SPAN_COMMITS = 50
_SPAN_ROWS = 1_000_000
MOST_RED = 20
_PROBLEMS_KEPT = 20


def review(store: Lake, table: Table, balance: Sequence[Balance] = ()) -> TableVerdict:
    """Verify what is new in ``table`` and what was wrong, and store the verdict.

    Costs time by the new commits and the findings, not by the age of the table. Where there is no verdict, the table is
    verified from the oldest commit that its log holds, in spans.
    """
    log, verdicts = store.log(table), store.verdicts
    known = verdicts.read(log)
    again = (each for old in known.findings for each in _again(store, log, old, balance))
    verdict = _stored(verdicts, known, replace(known, findings=tuple(again)))
    before = _start(log, verdict.verified)
    for commits in _spans(log, before):
        if len(verdict.red) >= MOST_RED:
            break
        found = _findings(store, log, commits, before, balance)
        before = Position.of(commits[0])
        verified = max(verdict.verified, before, key=lambda position: position.sequence)
        verdict = _stored(verdicts, verdict, replace(verdict, verified=verified, findings=_joined(verdict, found)))
    return verdict


def _stored(verdicts: Verdicts, known: TableVerdict, verdict: TableVerdict) -> TableVerdict:
    if verdict != known:
        verdicts.write(verdict)
    return verdict


def _joined(verdict: TableVerdict, found: Sequence[CommitFinding]) -> tuple[CommitFinding, ...]:
    """Return the findings of ``verdict`` and those of ``found`` about other commits, oldest first."""
    known = {finding.sequence: finding for finding in (*found, *verdict.findings)}
    return tuple(known[sequence] for sequence in sorted(known))


def _start(log: TableLog, verified: Position) -> Position:
    """Return the commit after which a review of a table that was verified up to ``verified`` begins."""
    if not verified.sequence:
        return verified
    newest = list(islice(log.commits_from(verified.version), NEWEST_AGAIN + 1))
    if not newest:
        return verified
    return Position.of(newest[-1]) if newest[-1].sequence > 1 else Position()


def _again(store: Lake, log: TableLog, old: CommitFinding, balance: Sequence[Balance]) -> list[CommitFinding]:
    """Return what is still wrong of a finding; where the log no longer holds its commits, it stays as it was found."""
    commits = list(takewhile(lambda c: c.sequence > old.before.sequence, log.commits_from(old.last.version)))
    if not commits:
        return [old]
    found = _findings(store, log, commits, old.before, balance)
    return [replace(each, since_utc=old.since_utc) for each in found]


def _findings(
    store: Lake, log: TableLog, commits: Sequence[Commit], before: Position, balance: Sequence[Balance]
) -> list[CommitFinding]:
    """Return the problems of ``commits``, newest first, whose predecessor is ``before``; by single commits if
    possible.
    """
    problems = _problems(store, log, commits, before, balance)
    if not problems:
        return []
    if len(commits) > 1:
        middle = len(commits) // 2
        newer, older = commits[:middle], commits[middle:]
        apart = [
            *_findings(store, log, older, before, balance),
            *_findings(store, log, newer, Position.of(older[0]), balance),
        ]
        if apart:
            return apart
    last, since = Position.of(commits[0]), iso(store.clock.now_ns())
    return [CommitFinding(log.table.name, commits[-1].sequence, before, last, problems, since)]


def _problems(
    store: Lake, log: TableLog, commits: Sequence[Commit], before: Position, balance: Sequence[Balance]
) -> Mapping[str, list[str]]:
    """Return the promises that ``commits`` break, each with its problems: chain, keys, balance, contract."""
    predecessor = log.commit_at(before.version) if before.sequence else None
    rows = log.rows_of(reviewed_span(commits))
    different = schema_differences(log.table, rows.schema)
    found = {
        "chain": broken_chain([*commits, predecessor] if predecessor else commits),
        "keys": duplicate_keys(log, commits),
        "balance": [problem for check in balance for problem in check(store, log, commits)],
        "contract": different or [str(violation) for violation in violations(log.table, rows)],
    }
    return {promise: problems[:_PROBLEMS_KEPT] for promise, problems in found.items() if problems}


def _spans(log: TableLog, verified: Position) -> Iterator[list[Commit]]:
    """Yield the commits after ``verified``, newest first in each span, the oldest span first."""
    first = verified.version + 1 if verified.sequence else delta_log.oldest_version(log.uri)
    span: list[Commit] = []
    for version in range(first, log.version() + 1):
        commit = log.commit_at(version)
        if commit is None:
            continue
        if span and (len(span) == SPAN_COMMITS or sum(c.rows_written for c in (commit, *span)) > _SPAN_ROWS):
            yield span
            span = []
        span = [commit, *span]
    if span:
        yield span
