"""Every store of the platform, how long it keeps what, how much it holds, and how old that is: one table."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from upath import UPath

from sda_platform import json_lines
from sda_platform.clock import iso
from sda_platform.history.daily_files import DIRECTORY
from sda_platform.history.expiry import awaiting
from sda_platform.history.growth import yearly_bytes
from sda_platform.history.lifecycle import POLICY
from sda_platform.history.tags import Tags
from sda_platform.lake.lake import Lake
from sda_platform.lake.retention import RETENTION, Retention, days_text
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.landing.listing import changed_s
from sda_platform.landing.zone import LandingZone
from sda_platform.list_settings import KEPT_LISTS
from sda_platform.units import DAY_S

_LATE_DAYS = 3
"""What a nightly removal may be behind: a night that was missed, and the day in the deletion list."""


@dataclass(frozen=True)
class Store:
    """A store: what it holds, how long, what removes it, and how many files and bytes there are (None: not local).

    ``most_days`` is the age at which its content is removed, ``oldest_days`` that of its oldest content; None where
    another rule holds. ``yearly_bytes``: growth of what is kept for ever, None where it is not measured.
    """

    name: str
    kept: str
    removed_by: str
    files: int | None
    size_bytes: int | None
    most_days: float | None = None
    oldest_days: float | None = None
    yearly_bytes: float | None = None

    @property
    def is_late(self) -> bool:
        """Whether it holds what should have been removed."""
        if self.most_days is None or self.oldest_days is None:
            return False
        return self.oldest_days > self.most_days + _LATE_DAYS


def stores(
    lake: Lake, tables: Sequence[Table], home: Path, landing_uri: str, retention: Retention = RETENTION
) -> Iterator[Store]:
    """Every store of the platform at ``home``, with its lake and its landing zones, under ``retention``."""
    at, days = location(lake.uri), retention.data_files_h // 24
    nightly, archive = "nightly maintenance", "for ever: they are the archive"
    rows = _measured("rows of tables", archive, "nothing", [at], lambda p: p.suffix == ".parquet" and _is_data(p))
    yield replace(rows, yearly_bytes=yearly_bytes(lake.log(table) for table in tables))
    yield _awaiting_deletion(
        lake, tables, f"{days} days after the last version, then {POLICY.deletion_grace_h} h in the deletion list"
    )
    logs = [at / table.name / "_delta_log" for table in tables]
    kept = f"{retention.log_h // 24} days, the newest {retention.newest_commits} commits, and what a consumer needs"
    yield _measured("Delta logs", kept, nightly, logs)
    places = [at / table.name / "_commits" for table in tables]
    yield _measured("manifests of commits", days_text(retention.record_days), nightly, places)
    kept = days_text(retention.record_days)
    yield _measured("states of alerted objects", kept, nightly, [at / "_alert_states"])
    yield _measured("tags", "each until its end, or until it is removed", "`sda lake untag`", [at / "_tags"])
    zones = [LandingZone(landing_uri, feed) for table in tables for feed in table.zones]
    for name, number in (("consumed segments", 0), ("quarantined segments", 1)):
        places = [zone.consumed_segments.places[number] for zone in zones]
        kept = f"{days_text(retention.evidence_days)}, then an empty mark of each"
        yield _measured(name, kept, nightly, places, most_days=retention.evidence_days)
    letters = _measured("dead letters", archive, "nothing", [at / "dead_letters"])
    of_letters = (lake.log(table) for table in tables if table.name == "dead_letters")
    yield replace(letters, yearly_bytes=yearly_bytes(of_letters))
    receipts = f"{retention.operations_days} days, and the newest {retention.receipt_batches:,} batches"
    yield _measured("receipts of the SQLite subscriber", receipts, "each delivery", [UPath(home) / "subscriber.sqlite"])
    history = (
        f"finished runs {retention.operations_days} days, succeeded ones the newest {retention.succeeded_runs:,}, and "
        "the latest of each asset and pool; ticks as dagster.yaml says"
    )
    yield _measured("Dagster's history", history, nightly, [UPath(home) / "dagster"])
    logged = f"{retention.process_log_bytes >> 20} MiB of each, and as much before it"
    yield _measured("process logs", logged, nightly, [UPath(home) / "logs"])
    yield _measured(
        "audit log", "for ever: a line for each audit and repair", "a person", [UPath(home) / json_lines.AUDIT_LOG]
    )
    faults = "the newest 16 MiB: a line for each fault that began or was over"
    yield _measured("past faults", faults, "each fault", [UPath(home) / json_lines.PAST_FAULTS])
    kept = "for ever: they are small, and replays need them"
    yield _measured("lists that commits used", kept, "nothing", [UPath(home) / KEPT_LISTS])
    daily = f"the newest {retention.operations_days} days"
    yield _measured("daily files", daily, "`history/daily_files`", [UPath(home) / DIRECTORY])
    yield _measured("index of the catalogue", "the versions in use", "`sda catalog serve`", [UPath(home) / "serving"])


def leases_and_tags(lake: Lake) -> Iterator[str]:
    """Describe the version leases and tags of a lake, for people."""
    for lease in VersionLeases(lake.uri).active():
        versions = ", ".join(f"{table}={_span(held)}" for table, held in sorted(lease.versions.items()))
        yield f"lease of {lease.holder} ({lease.purpose}) until {iso(lease.until_ms * 1_000_000)}: {versions}"
    tags = Tags(lake.uri)
    for name in tags.names():
        tag = tags.read(name)
        until = f"until {iso(tag.until_ms * 1_000_000)}" if tag.until_ms is not None else "until it is removed"
        yield f"tag {name}, {until}: {tag.moment}"


def _span(versions: Sequence[int]) -> str:
    first, last = versions[0], versions[-1]
    return str(first) if first == last else f"{first}…{last}"


def _is_data(path: Path) -> bool:
    return not any(part.startswith("_") for part in path.parts)


def _awaiting_deletion(lake: Lake, tables: Sequence[Table], kept: str) -> Store:
    found_ms = [found for table in tables for found in awaiting(lake.log(table)).values()]
    oldest = _age_days(min(found_ms) / 1000) if found_ms else None
    grace_days = POLICY.deletion_grace_h / 24
    return Store("expired data files", kept, "nightly maintenance", len(found_ms), None, grace_days, oldest)


def _measured(
    name: str,
    kept: str,
    removed_by: str,
    places: Sequence[UPath],
    counts: Callable[[Path], bool] = lambda _path: True,
    most_days: float | None = None,
) -> Store:
    local = [Path(str(place)) for place in places if place.protocol in ("", "file")]
    if len(local) < len(places):
        return Store(name, kept, removed_by, None, None)
    found = [status for place in local for path, status in _files(place) if counts(path.relative_to(place))]
    oldest_s = min((changed_s(each) for each in found if each.st_size), default=None)
    oldest = None if most_days is None or oldest_s is None else _age_days(oldest_s)
    return Store(name, kept, removed_by, len(found), sum(each.st_size for each in found), most_days, oldest)


def _age_days(since_s: float) -> float:
    return round((time.time() - since_s) / DAY_S, 1)  # deterministic: shown to people; no row of the lake holds it


def _files(place: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below a directory, or the file itself; what is removed meanwhile is left out."""
    if place.is_file():
        yield place, place.stat()
    for directory, _, names in os.walk(place):
        for name in names:
            path = Path(directory, name)
            try:
                yield path, path.stat()
            except FileNotFoundError:
                continue
