"""Removal of the old files of a table's log, as a part of the maintenance; Delta's own clean-up is off.

What is removed is older than the retention, and below everything that is read again: the newest commits (the head, the
chain that checks follow), the versions at which consumers' windows end, what a red finding needs, and leased versions.
Its manifests are kept elsewhere first (`lake.kept_commits`), for as long as `lake.retention` says.
It is removed from the oldest version up to one of Delta's checkpoints, so what is left is a whole log, wherever the
removal ends. Of what is left, old commits lose the checksums that are kept with them: Spark and delta-rs list the whole
directory each time they open a local table.
"""

from collections.abc import Iterable, Iterator, Sequence

from sda_platform import failpoints
from sda_platform.lake import delta_log
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.log import TableLog
from sda_platform.lake.retention import Retention
from sda_platform.lake.verdicts import TableVerdict
from sda_platform.recovery.log_files import LogFiles, is_checksum
from sda_platform.units import HOUR_MS


def clean_log(
    log: TableLog,
    others: Iterable[TableLog],
    verdict: TableVerdict,
    *,
    now_ms: int,
    retention: Retention,
    held: Sequence[int] = (),
) -> int:
    """Remove what the log of a table need not hold any more; returns how many versions that were.

    ``others`` are the logs of all tables that may consume this one. ``verdict`` is the one on this table, ``held`` are
    the versions that are leased. ``now_ms``: Unix time. Raises InvariantError where a log cannot be read; then nothing
    is removed.
    """
    commits = log.commits(retention.newest_commits)
    if not commits:
        return 0
    needed = min([commits[-1].version, *_consumed_versions(log, others), *verdict.needed_versions, *held])
    files = LogFiles.listed(log.uri)
    expired_ms = now_ms - retention.log_h * HOUR_MS
    older = (v for v in sorted(files.commits) if v < needed)
    oldest_kept = next((v for v in older if _made_ms(files, v) >= expired_ms), needed)
    base = files.checkpoint_below(oldest_kept) or 0
    _keep(log, files, base)
    failpoints.hit("log.kept", log.table.name)
    for name in files.names_below(commits[-1].version):
        version = files.version_of(name)
        if version < base or is_checksum(name):
            (files.directory / name).unlink(missing_ok=True)
    return sum(1 for version in files.commits if version < base)


def _made_ms(files: LogFiles, version: int) -> int:
    try:
        return delta_log.timestamp_ms(files.text(version))
    except ValueError as error:
        raise InvariantError(f"version {version} of the log cannot be read ({error}), so the log is not cut") from error


def _keep(log: TableLog, files: LogFiles, base: int) -> None:
    """Keep the commits below ``base`` that are not kept yet; a clean-up that was killed may have kept some already."""
    first = max(log.kept.next_version, min(files.commits))
    if first < base:
        texts = ((version, files.text(version)) for version in range(first, base))
        log.kept.keep(log.table.app_id, log.kept.columns_at(first), texts)


def _consumed_versions(log: TableLog, others: Iterable[TableLog]) -> Iterator[int]:
    """Yield the versions of the table that the newest manifests of ``others`` name; 0 where one has consumed nothing
    yet.
    """
    for commit in (other.head().commit for other in others):
        if commit is not None:
            read = commit.manifest.inputs()
            yield from (max(each.version, 0) for each in read if each.table == log.table.name)
