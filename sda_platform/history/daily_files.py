"""The day's catalogue, alerts and conjunction data messages as files, with checksums: for mirrors and archives.

One directory a day below ``<home>/daily``, written beside and then named in one step, so that a reader never sees half
of it. `latest` is a link to the newest. The manifest names the commits that the files are of.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import dagster as dg
from upath import UPath

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import known_acknowledgements
from sda_platform.conjunction.alert_messages import assessment_message
from sda_platform.conjunction.data_origins import data_origins
from sda_platform.conjunction.stated_objects import stated_objects
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.fleet import ProtectedObject
from sda_platform.lake import durable
from sda_platform.lake.correction_log import current_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.serving.record import COLUMNS, StoredElements
from sda_platform.serving.rendering import NotAcceptable, json_rows, rendered
from sda_platform.spark.pools import Pool

DIRECTORY: Final = "daily"
LATEST: Final = "latest"
MANIFEST, CHECKSUMS = "manifest.json", "SHA256SUMS"
_CATALOGUE: Final = {"catalogue.json": "json", "catalogue.csv": "csv", "catalogue.3le": "3le"}
_TABLES: Final = (ORBITAL_CATALOG, CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS)


@dataclass(frozen=True)
class DailyFiles:
    """What was written: where, how many objects, alerts and messages, and the bytes of all files."""

    path: Path
    objects: int
    alerts: int
    messages: int
    size_bytes: int


def write_daily_files(
    lake: Lake, home: Path, fleet: Iterable[ProtectedObject] = (), retention: Retention = RETENTION
) -> DailyFiles:
    """Write the files of the mission day, in place of earlier ones of that day, and remove those beyond their age.

    ``fleet`` states which objects can manoeuvre.
    """
    now = iso(lake.clock.now_ns())
    day, above = now[:10], home / DIRECTORY
    partial = above / f".{day}.partial"
    _clear_interrupted(above)
    (partial / "cdms").mkdir(parents=True)
    heads = {table.name: lake.readable(table).head for table in _TABLES}
    versions = {name: head.commit_version for name, head in heads.items()}
    sets = lake.log(ORBITAL_CATALOG).rows(COLUMNS, version=versions[ORBITAL_CATALOG.name]).sort_by("norad_id")
    records = [StoredElements(**row) for row in sets.to_pylist()]
    alerts = _current(lake, CONJUNCTION_ALERTS, versions[CONJUNCTION_ALERTS.name])
    active = [alert for alert in alerts if alert["status"] != "closed"]
    files = {name: body for name, kind in _CATALOGUE.items() if (body := _rendered(kind, records)) is not None}
    files["alerts.json"] = json_rows(active)
    assessed = _current(lake, CONJUNCTION_ASSESSMENTS, versions[CONJUNCTION_ASSESSMENTS.name])
    messages = dict(_messages(lake, assessed, {alert["event_id"] for alert in active}, fleet))
    files |= messages
    entries = {name: {"sha256": sha256(data).hexdigest(), "bytes": len(data)} for name, data in sorted(files.items())}
    commits = {
        name: {"commit_sequence": head.sequence, "manifest_sha256": head.manifest_sha256}
        for name, head in heads.items()
    }
    files[CHECKSUMS] = "".join(f"{each['sha256']}  {name}\n" for name, each in entries.items()).encode()
    files[MANIFEST] = json.dumps({"mission_time": now, "commits": commits, "files": entries}, indent=1).encode()
    for name, data in files.items():
        (partial / name).write_bytes(data)
    durable.sync([*(UPath(partial / name) for name in files), UPath(partial / "cdms"), UPath(partial)])
    _put_in_place(above, day, retention.operations_days)
    return DailyFiles(above / day, len(records), len(active), len(messages), sum(map(len, files.values())))


def daily_files_asset(key: dg.AssetKey, group: str, home: Path, retention: Retention) -> dg.AssetsDefinition:
    """Return the asset whose materialization writes the files of the day below ``home``."""

    @dg.asset(
        key=key,
        group_name=group,
        deps=[table.name for table in _TABLES],
        kinds={"python"},
        pool=Pool.MAINTENANCE,
        required_resource_keys={"lake", "screening"},
        description="The day's catalogue (OMM in JSON and CSV, two-line sets), active alerts, and their conjunction "
        f"data messages as files below `<home>/{DIRECTORY}`, with checksums and the commits that they are of.",
    )
    def history_daily_files(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        resources = context.resources
        members = resources.screening.members()
        written = write_daily_files(resources.lake.open(), home.absolute(), members, retention)
        return dg.MaterializeResult(
            metadata={
                "files": dg.MetadataValue.path(written.path),
                "objects": written.objects,
                "alerts": written.alerts,
                "conjunction_data_messages": written.messages,
                "size_mb": written.size_bytes / 1e6,
            }
        )

    return history_daily_files


def _rendered(kind: str, records: list[StoredElements]) -> bytes | None:
    """Return the sets in a format; None where it holds none of them, as two lines do of numbers above 339,999."""
    try:
        return rendered(kind, records)[0]
    except NotAcceptable:
        return None


def _current(lake: Lake, table: Table, version: int) -> list[dict[str, Any]]:
    if version < 0:
        return []
    found = current_rows(lake.log(table).rows(version=version), "event_id").drop_columns([COMMIT_SEQUENCE])
    rows: list[dict[str, Any]] = found.sort_by("event_id").to_pylist()
    return rows


def _messages(
    lake: Lake, assessed: list[dict[str, Any]], wanted: set[str], fleet: Iterable[ProtectedObject]
) -> Iterator[tuple[str, bytes]]:
    """Make the message of each of the ``wanted`` events of which states are known, by the name of its file."""
    rows = [row for row in assessed if row["event_id"] in wanted and row["state_1"]]
    if not rows:
        return
    known, objects, origins = known_acknowledgements(lake), stated_objects(lake, rows, fleet), data_origins(lake, rows)
    for row in rows:
        seen: list[Mapping[str, Any]] = list(known.get(row["event_id"], []))
        message = assessment_message(row, row["as_of_ns"], seen, objects, origins)
        yield f"cdms/{row['event_id']}.cdm", encode_cdm(message, "kvn")


def _clear_interrupted(above: Path) -> None:
    """Undo what a killed run left: the former files of a day get their name back, half-written ones are removed."""
    for left in sorted(above.glob(".*")):
        day = above / left.stem[1:]
        if left.suffix == ".former" and not day.exists():
            left.rename(day)
        elif left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)


def _put_in_place(above: Path, day: str, most_days: int) -> None:
    """Give the directory of a day its name, point `latest` to it, and keep the newest ``most_days``."""
    former = above / f".{day}.former"
    if (above / day).exists():
        (above / day).rename(former)
    (above / f".{day}.partial").rename(above / day)
    if former.exists():
        shutil.rmtree(former)
    link = above / f".{LATEST}.partial"
    link.unlink(missing_ok=True)
    link.symlink_to(day)
    link.replace(above / LATEST)
    durable.sync([UPath(above)])
    days = sorted(each for each in above.iterdir() if not each.is_symlink() and not each.name.startswith("."))
    for old in days[:-most_days]:
        shutil.rmtree(old)
