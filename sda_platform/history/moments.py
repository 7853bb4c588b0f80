"""``--as-of``: from what a person writes to a version vector.

A time is a commit time (wall clock), or with ``mission:`` in front a mission time (``as_of_ns`` of the commits). The
newest commit at or before the time counts, and a commit at that very time belongs to it. Before a table's first commit
it has no rows; after the newest commit the newest state holds.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from sda_platform.clock import iso, parse_iso_ns
from sda_platform.conjunction.alert_ids import UnknownAlert, complete_alert_id
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.history.alert_states import AlertStates
from sda_platform.history.errors import UnknownMoment, VersionExpired
from sda_platform.history.pinned_files import is_readable
from sda_platform.history.tags import Tags
from sda_platform.history.version_vector import (
    KeptTable,
    VersionVector,
    decision_vector,
    given_vector,
    newest_vector,
    vector_at,
)
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table

NOW = "now"
_TIME = re.compile(r"\d{4}-\d\d-\d\d")
_MISSION = "mission:"
_TAG = "tag:"
_VECTOR = re.compile(r"\w+=\d+(,\w+=\d+)*$")


def vector_of(lake: Lake, tables: Mapping[str, Table], text: str = NOW) -> VersionVector:
    """Return the version vector that ``text`` means: ``now``, a time, an alert, versions (``a=3,b=7``), a tag
    (``tag:NAME``), or a file of versions.

    An alert is an id or its beginning, with ``@N`` at the end its revision N (default: the newest). Raises
    UnknownMoment, UnknownAlert, VersionExpired.
    """
    if text == NOW:
        return newest_vector(lake, tables)
    if _TIME.match(text.removeprefix(_MISSION)):
        return _at_time(lake, tables, text)
    if Path(text).suffix == ".json":
        return _of_versions(lake, tables, _stored(Path(text)), text)
    if text.startswith(_TAG):
        return Tags(lake.uri).vector(text.removeprefix(_TAG))
    if _VECTOR.match(text):
        versions = {name: int(version) for name, version in (part.split("=") for part in text.split(","))}
        return _of_versions(lake, tables, versions, text)
    return vector_of_alert(lake, tables, text)


def vector_of_alert(lake: Lake, tables: Mapping[str, Table], text: str) -> VersionVector:
    """Derive the versions that the decision on an alert had read; ``facts`` name alert, revision and commit."""
    prefix, _, revision = text.partition("@")
    if not re.fullmatch(r"[0-9a-f-]+", prefix) or (revision and not revision.isdigit()):
        raise UnknownMoment(
            f"{text!r} is no moment: write a time (2026-05-01T12:00Z, mission:2026-05-01T12:00Z), an alert (id or its "
            "beginning, with @N its revision N), versions (tracks=12,orbital_catalog=3), a tag (tag:NAME) or a "
            ".json file of versions"
        )
    alert_id = complete_alert_id(lake, prefix)
    entries = lake.log(CONJUNCTION_ALERTS).rows(
        ["sequence", "op", "commit_sequence", "norad_id_1", "norad_id_2"], where=ds.field("event_id") == alert_id
    )
    revisions = {row["sequence"]: row for row in entries.to_pylist() if row["op"] == INSERT}
    chosen = int(revision) if revision else max(revisions)
    if chosen not in revisions:
        raise UnknownAlert(
            f"alert {alert_id} has no revision {chosen}; it has {', '.join(map(str, sorted(revisions)))}"
        )
    commit = lake.log(CONJUNCTION_ALERTS).find(revisions[chosen]["commit_sequence"])
    if commit is None:
        reason = "its log was cut after the retention"
        raise VersionExpired(CONJUNCTION_ALERTS.name, f"the decision on alert {alert_id[:8]}@{chosen}", reason)
    vector = decision_vector(lake, tables, CONJUNCTION_ALERTS, commit)
    facts = {"alert_id": alert_id, "revision": chosen, "commit_sequence": commit.sequence}
    decided = f"the decision on alert {alert_id[:8]}@{chosen} of {iso(commit.manifest.as_of_ns)}"
    objects = {revisions[chosen][name] for name in ("norad_id_1", "norad_id_2")} - {None}
    kept = dict(_kept_of_objects(lake, tables, vector, commit.sequence, objects))
    if kept:
        decided += f"; of {', '.join(sorted(kept))} only the rows of objects of alerts were kept"
    return replace(vector, moment=decided, facts=facts, kept=kept, now_ns=commit.manifest.as_of_ns)


def _kept_of_objects(
    lake: Lake, tables: Mapping[str, Table], vector: VersionVector, sequence: int, objects: Collection[int]
) -> Iterator[tuple[str, KeptTable]]:
    """Yield what was kept for a batch of alerts of those tables whose version has expired."""
    states = AlertStates(lake.uri)
    for name, snapshot in vector.snapshots.items():
        log = lake.log(tables[name])
        if not is_readable(log, snapshot) and (rows := states.rows(name, sequence, objects)) is not None:
            yield name, KeptTable(log.kept.columns_at(snapshot.version) or log.table.arrow_schema.names, rows=rows)


def _at_time(lake: Lake, tables: Mapping[str, Table], text: str) -> VersionVector:
    try:
        time_ns = parse_iso_ns(text.removeprefix(_MISSION))
    except ValueError:
        raise UnknownMoment(f"{text!r} is no ISO 8601 instant") from None
    if text.startswith(_MISSION):
        found, now_ns = vector_at(lake, tables, text, lambda commit: commit.manifest.as_of_ns <= time_ns), time_ns
    else:
        found = vector_at(lake, tables, text, lambda commit: commit.timestamp_ms * 1_000_000 <= time_ns)
        now_ns = lake.clock.now_ns(time_ns)
    found = replace(found, now_ns=now_ns)
    has_rows = any(each.sequence for each in found.snapshots.values())
    if not has_rows and any(each.sequence for each in newest_vector(lake, tables).snapshots.values()):
        other = "" if text.startswith(_MISSION) else f"; {_MISSION}{text} is the mission time"
        return replace(found, moment=f"{text}, when no table had a commit{other}")
    return found


def _of_versions(lake: Lake, tables: Mapping[str, Table], versions: Mapping[str, int], text: str) -> VersionVector:
    unknown = sorted(set(versions) - set(tables))
    if unknown:
        raise UnknownMoment(f"no table is named {', '.join(unknown)}; there are: {', '.join(sorted(tables))}")
    return given_vector(lake, tables, versions, text)


def _stored(file: Path) -> dict[str, int]:
    """Versions from a file that `sda query --json` or `sda alert explain --json` wrote, or that holds them alone."""
    try:
        facts: dict[str, Any] = json.loads(file.read_text())
        versions = facts.get("as_of", facts)
        return {name: int(version) for name, version in versions.get("versions", versions).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UnknownMoment(f"{file} is no file of versions: {error}") from None
