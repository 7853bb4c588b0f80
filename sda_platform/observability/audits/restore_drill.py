"""The restore drill: an *older* state of the lake, opened elsewhere, verified, and compared with today's.

It is the newest backup, where the platform makes backups; files of it that are not opened are compared with what was
backed up. Without backups it is a copy of the lake. A restored backup is always older than the lake, so the copy's logs
are cut at one mission time within the newest commits. The tables must fit together, every row must be in today's lake,
and every delivery in today's ledger.
"""

import hashlib
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sda_platform.delivery.ledger import last_delivered, stamps
from sda_platform.lake import delta_log
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import Table
from sda_platform.observability.audits.outcome import AuditOutcome, AuditScope
from sda_platform.recovery.backups import LAKE, contents_of, newest_backup
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.log_files import LogFiles
from sda_platform.recovery.repair import recover
from sda_platform.recovery.setting_aside import files_from
from sda_platform.registry import TABLES
from sda_platform.replay.shadow import temporary_shadow
from sda_platform.units import DAY_NS

_DRILL_BYTES = 2 * 2**30


def drill(scope: AuditScope) -> AuditOutcome:
    """Restore an older state of the lake beside it, the smallest tables first, up to a budget of bytes."""
    began_s, source, backup = time.perf_counter(), Path(scope.settings.lake_uri), None
    if place := scope.settings.retention.backup:
        backup = newest_backup(Path(place))
        if backup is None:
            return AuditOutcome((f"{place} has no complete backup: `sda backup` makes one",))
        source = backup / LAKE
    if not source.is_dir():
        return AuditOutcome(is_done=False, skipped=("the lake is not on a local disk, or empty",))
    chosen, size, left = _within_budget(source)
    skipped = [f"{', '.join(left)}: more than {_DRILL_BYTES:,} bytes together; restore your own backup"] if left else []
    if not chosen:
        return AuditOutcome(is_done=False, skipped=tuple(skipped or ["the lake has no table"]))
    with temporary_shadow(scope.lake.uri, "audit") as uri:
        for table in chosen:
            shutil.copytree(source / table.name, Path(uri) / table.name)
        lost, changed = 0, []
        if backup is not None:
            changed = list(_changed_files(backup, scope.day_ns))
        else:
            lost = _cut(Lake(uri, scope.lake.clock, without_session), chosen)
            if not lost:
                skipped.append("the logs hold no older state that all tables have: the copy is of now")
        restored = Lake(uri, scope.lake.clock, without_session)
        found = recover(restored, chosen, {}, depth=Depth.COLUMNS, repair=False, wait=lambda _seconds: None)
        problems = [*changed, *(f"{each.examination.table}: {line}" for each in found for line in each.problems)]
        problems += [] if problems else [*_differences(scope.lake, restored, chosen)]
        rows = sum(restored.log(table).row_count() for table in chosen) if not problems else 0
    seconds = round(time.perf_counter() - began_s, 1)
    facts: dict[str, Any] = {"restored": str(backup or source), "bytes": size, "rows": rows, "seconds": seconds}
    facts |= {"tables": len(chosen), "commits_lost": lost}
    return AuditOutcome(tuple(problems), facts, skipped=tuple(skipped))


def _changed_files(backup: Path, day_ns: int) -> Iterator[str]:
    """Yield the files of ``backup`` that are not as they were backed up.

    They are drawn by the day's own seed, up to the budget of bytes, so that a large backup is read within some nights.
    """
    try:
        files = contents_of(backup)["files"]
    except InvalidRequest as error:
        yield str(error)
        return
    names, read = sorted(files), 0
    random.Random(day_ns // DAY_NS).shuffle(names)
    for name in names:
        size, sha256, _ = files[name]
        read += size
        if read > _DRILL_BYTES:
            return
        try:
            with (backup / name).open("rb") as stream:
                is_same = hashlib.file_digest(stream, "sha256").hexdigest() == sha256
        except OSError:
            is_same = False
        if not is_same:
            yield f"{backup / name} is not as it was backed up: `sda backup {backup.parent} --whole` copies all anew"


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
