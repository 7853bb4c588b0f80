"""Every store of the platform, how long it keeps what, and how much it holds now: one table."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from upath import UPath

from sda_platform.archive.dagster_history import RUNS_KEPT_DAYS
from sda_platform.archive.expiry import awaiting
from sda_platform.archive.lifecycle import POLICY
from sda_platform.archive.tags import Tags
from sda_platform.clock import iso
from sda_platform.lake.holds import VersionLeases
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import NEWEST_COMMITS
from sda_platform.lake.retention import RETENTION
from sda_platform.lake.table import Table


@dataclass(frozen=True)
class Store:
    """A store: what it holds, how long, what removes it, and how many files and bytes there are (None: not local)."""

    name: str
    kept: str
    removed_by: str
    files: int | None
    size_bytes: int | None


def stores(lake: Lake, tables: Sequence[Table], home: Path, landing_uri: str) -> Iterator[Store]:
    """Every store of the platform at ``home``, with its lake and its landing zones."""
    at, landing, days = UPath(lake.uri), UPath(landing_uri), RETENTION.data_files_h // 24
    nightly = "nightly maintenance"
    yield _measured("rows of tables", "for ever", "nothing", [at], lambda p: p.suffix == ".parquet" and _is_data(p))
    waiting = [awaiting(lake.log(table)) for table in tables]
    yield Store(
        "expired data files",
        f"{days} days after the last version that has them, then {POLICY.journal_grace_h} h in a journal",
        nightly,
        sum(map(len, waiting)),
        None,
    )
    logs = [at / table.name / "_delta_log" for table in tables]
    yield _measured(
        "Delta logs", f"{RETENTION.log_h // 24} days, and the newest {NEWEST_COMMITS} commits", nightly, logs
    )
    yield _measured("tags", "each until its end, or until it is removed", "`sda retention untag`", [at / "_tags"])
    yield _measured("consumed segments", "for ever", "nothing", sorted(landing.glob("*/archive")))
    yield _measured("quarantined segments", "until a person decides", "a person", sorted(landing.glob("*/quarantine")))
    yield _measured("dead letters", "for ever", "nothing", [at / "dead_letters"])
    receipts = [UPath(home) / "subscriber.sqlite"]
    yield _measured("receipts of the SQLite subscriber", "for ever", "nothing", receipts)
    history = f"finished runs {RUNS_KEPT_DAYS} days, and the latest of each asset and pool; ticks as dagster.yaml says"
    yield _measured("Dagster's history", history, nightly, [UPath(home) / "dagster"])
    yield _measured("process logs", "for ever", "a person", [UPath(home) / "logs"])


def holds(lake: Lake) -> Iterator[str]:
    """The leases and tags of a lake, in words."""
    for lease in VersionLeases(lake.uri).active():
        versions = ", ".join(f"{table}={version}" for table, version in sorted(lease.versions.items()))
        yield f"lease of {lease.holder} ({lease.purpose}) until {iso(lease.until_ms * 1_000_000)}: {versions}"
    tags = Tags(lake.uri)
    for name in tags.names():
        tag = tags.read(name)
        until = f"until {iso(tag.until_ms * 1_000_000)}" if tag.until_ms is not None else "until it is removed"
        yield f"tag {name}, {until}: {tag.moment}"


def _is_data(path: Path) -> bool:
    return not any(part.startswith("_") for part in path.parts)


def _measured(
    name: str,
    kept: str,
    removed_by: str,
    places: Sequence[UPath],
    counts: Callable[[Path], bool] = lambda _path: True,
) -> Store:
    local = [Path(str(place)) for place in places if place.protocol in ("", "file")]
    if len(local) < len(places):
        return Store(name, kept, removed_by, None, None)
    sizes = [size for place in local for path, size in _files(place) if counts(path.relative_to(place))]
    return Store(name, kept, removed_by, len(sizes), sum(sizes))


def _files(place: Path) -> Iterator[tuple[Path, int]]:
    """The files below a directory, or the file itself; what is removed meanwhile is left out."""
    if place.is_file():
        yield place, place.stat().st_size
    for directory, _, names in os.walk(place):
        for name in names:
            path = Path(directory, name)
            try:
                yield path, path.stat().st_size
            except FileNotFoundError:
                continue
