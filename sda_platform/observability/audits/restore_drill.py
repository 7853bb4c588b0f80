"""The restore drill: an *older* state of the lake, opened elsewhere, verified, and compared with today's.

A restored backup is always older than the lake. So the copy's logs are cut at one mission time within the newest
commits of the lake. Its tables must fit together, every row of it must be in today's lake, and every delivery of it in
today's ledger.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from sda_platform.delivery.ledger import last_delivered, stamps
from sda_platform.lake import delta_log
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import Table
from sda_platform.observability.audits.outcome import AuditOutcome, AuditScope
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.log_files import LogFiles
from sda_platform.recovery.repair import recover
from sda_platform.recovery.setting_aside import files_from
from sda_platform.registry import TABLES

_DRILL_BYTES = 2 * 2**30


def drill(scope: AuditScope, shadow: Callable[[AuditScope], AbstractContextManager[str]]) -> AuditOutcome:
    """Restore an older state of the lake beside it, the smallest tables first, up to a budget of bytes."""
    began_s, source = time.perf_counter(), Path(scope.settings.lake_uri)
    if not source.is_dir():
        return AuditOutcome(is_done=False, skipped=("the lake is not on a local disk, or empty",))
    chosen, size, left = _within_budget(source)
    skipped = [f"{', '.join(left)}: more than {_DRILL_BYTES:,} bytes together; restore your own backup"] if left else []
    if not chosen:
        return AuditOutcome(is_done=False, skipped=tuple(skipped or ["the lake has no table"]))
    with shadow(scope) as uri:
        for table in chosen:
            shutil.copytree(source / table.name, Path(uri) / table.name)
        restored = Lake(uri, scope.lake.clock, without_session)
        lost = _cut(restored, chosen)
        if not lost:
            skipped.append("the logs hold no older state that all tables have: the copy is of now")
        restored = Lake(uri, scope.lake.clock, without_session)
        found = recover(restored, chosen, {}, depth=Depth.COLUMNS, repair=False, wait=lambda _seconds: None)
        problems = [f"{each.examination.table}: {problem}" for each in found for problem in each.problems]
        problems += [] if problems else [*_differences(scope.lake, restored, chosen)]
        rows = sum(restored.log(table).row_count() for table in chosen) if not problems else 0
    seconds = round(time.perf_counter() - began_s, 1)
    facts = {"bytes": size, "rows": rows, "tables": len(chosen), "commits_lost": lost, "seconds": seconds}
    return AuditOutcome(tuple(problems), facts, skipped=tuple(skipped))


def _within_budget(lake: Path) -> tuple[list[Table], int, list[str]]:
    """Return the tables to drill in the order of the data flow, their bytes, and the names of those that are
    left out.
    """
    sizes = {
        t.name: _bytes_below(lake / t.name) for t in TABLES if delta_log.log_directory(str(lake / t.name)).exists()
    }
    budget = min(_DRILL_BYTES, shutil.disk_usage(lake.parent).free // 2)
    taken, total = set(), 0
    for name in sorted(sizes, key=lambda each: sizes[each]):
        if total + sizes[name] > budget:
            break
        taken.add(name)
        total += sizes[name]
    return [t for t in TABLES if t.name in taken], total, sorted(set(sizes) - taken)


def _bytes_below(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _cut(copy: Lake, tables: Sequence[Table]) -> int:
    """Cut the logs of ``copy`` in the middle of their newest commits; returns how many commits are gone, or 0."""
    logs = [copy.log(table) for table in tables]
    times = sorted(commit.manifest.as_of_ns for log in logs for commit in log.commits())
    moments = [at for at in dict.fromkeys(times) if at < times[-1]]
    if not moments:
        return 0
    at_ns = moments[len(moments) // 2]
    firsts = {log.table.name: _first_after(log, at_ns) for log in logs}
    if not all(_is_legible_below(log, firsts[log.table.name]) for log in logs):
        return 0
    lost = sum(commit.manifest.as_of_ns > at_ns for log in logs for commit in log.commits(None))
    for log in logs:
        _forget(log, firsts[log.table.name])
    return lost


def _first_after(log: TableLog, at_ns: int) -> int:
    """Return the version of the first commit after ``at_ns``; beyond the last where there is none."""
    later = [commit.version for commit in log.commits(None) if commit.manifest.as_of_ns > at_ns]
    return min(later, default=log.version() + 1)


def _is_legible_below(log: TableLog, version: int) -> bool:
    files = LogFiles.listed(log.uri)
    return version == 0 or min(files.commits) == 0 or files.checkpoint_below(version - 1) is not None


def _forget(log: TableLog, version: int) -> None:
    directory = Path(str(delta_log.log_directory(log.uri)))
    if version == 0:
        shutil.rmtree(directory.parent)
        return
    for name in files_from(log, version) if version <= log.version() else ():
        (directory / name).unlink()


def _differences(now: Lake, then: Lake, tables: Sequence[Table]) -> Iterator[str]:
    """Yield what the older lake has and today's lacks."""
    for table in tables:
        head = then.log(table).head().sequence
        if table.replaces_rows or not head:
            continue
        older = then.log(table).rows_of((0, head), [table.key[0]]).num_rows
        newer = now.log(table).rows_of((0, head), [table.key[0]]).num_rows
        if older != newer:
            yield f"{table.name}: {older:,} rows up to commit {head} in the restored lake, {newer:,} in the lake"
    known = stamps(last_delivered(now))
    for name, stamp in stamps(last_delivered(then)).items():
        if name not in known or known[name].order < stamp.order:
            yield f"alert_deliveries: the restored ledger delivered {stamp.key}, the lake's has no such entry or later"
