"""What an alert rested on, read from the lake and its landing zones, as members of an evidence bundle."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.code_version import code_version
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.evidence.bundle import BundleWriter
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.history.explanation import Explanation, as_of_dict, explain_alert
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import SegmentLost
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.selections import Near
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.trace import Trace, trace_event
from sda_platform.plain_rows import plain

Rows = list[dict[str, Any]]
_LANDED_AS = {
    ORBITAL_CATALOG.name: ELEMENT_SETS,
    OBSERVATIONS.name: RAW_RECORDS,
    RECEIVED_CDMS.name: RECEIVED_CDMS,
    EPHEMERIDES.name: EPHEMERIDES,
}
"""By the table whose rows name segments, the one that consumed these."""


@dataclass(frozen=True)
class CollectedEvidence:
    """What was written: the alert and its revision, and how many rows, manifests and segments."""

    alert_id: str
    revision: int
    rows: int
    manifests: int
    segments: int
    absent_segments: int


def collect(
    lake: Lake, landing_uri: str, tables: Mapping[str, Table], alert: str, bundle: BundleWriter
) -> CollectedEvidence:
    """Add to ``bundle`` what the decision on ``alert`` (id or its beginning, with @N its revision N) rested on.

    Rows are those of the versions that it read; of the alert itself and its deliveries also the later ones. Raises
    UnknownAlert, UnknownMoment, VersionExpired.
    """
    explained = explain_alert(lake, tables, alert)
    rows = _rows(lake, explained, trace_event(lake, explained.alert_id))
    named = {name: found for name, found in rows.items() if name in _LANDED_AS}
    needed: dict[str, set[int]] = {name: {read.sequence} for name, read in explained.then.snapshots.items()}
    for name, found in rows.items():
        needed.setdefault(name, set()).update(row[COMMIT_SEQUENCE] for row in found)
    for name, found in named.items():
        bronze = _LANDED_AS[name]
        needed.setdefault(bronze.name, set()).update(_landings(lake, bronze, found))
    runs = {name: _manifests(lake, tables[name], sequences - {0}) for name, sequences in sorted(needed.items())}
    wanted = {row["segment_sha256"] for found in named.values() for row in found}
    segments = [
        _segment(landing_uri, name, commit, ref, bundle)
        for name in sorted({bronze.name for bronze in _LANDED_AS.values()} & runs.keys())
        for commit in runs[name]
        for ref in commit.manifest.segments
        if ref.sha256 in wanted
    ]
    for name, found in sorted(rows.items()):
        bundle.add_json(f"rows/{name}.json", plain(found))
    for name, commits in ((name, commits) for name, commits in runs.items() if commits):
        lines = "".join(f"{commit.manifest.to_json()}\n" for commit in commits)
        bundle.add(f"manifests/{name}.jsonl", lines.encode())
    bundle.add_json("segments.json", segments)
    gone = {
        name: sorted(needed[name] - {0} - {commit.sequence for commit in commits}) for name, commits in runs.items()
    }
    gone_segments = sorted(wanted - {each["sha256"] for each in segments})
    bundle.add_json("decision.json", {**_decision(explained), "gone_manifests": gone, "gone_segments": gone_segments})
    return CollectedEvidence(
        explained.alert_id,
        int(explained.then.facts["revision"]),
        sum(map(len, rows.values())),
        sum(map(len, runs.values())),
        len(segments),
        sum(1 for each in segments if each["is_absent"]),
    )


def facts_of(made: CollectedEvidence, made_ns: int) -> dict[str, Any]:
    """Return what the contents of a bundle say of it besides its members; ``made_ns``: Unix time, wall time."""
    return {
        "alert_id": made.alert_id, "revision": made.revision, "made_time_ns": made_ns, "made_by": code_version(),
    }  # fmt: skip


def _decision(explained: Explanation) -> dict[str, Any]:
    """Name the rows and versions that the decision read: the assessment by its sequence, if there was one."""
    assessment = _then(explained, "assessment")
    facts = as_of_dict(explained.then)
    return {**facts, "assessment": None if assessment is None else assessment["sequence"]}


def _rows(lake: Lake, explained: Explanation, story: Trace) -> dict[str, Rows]:
    """By table the rows of the alert's story up to its decision; of the alert and its deliveries all."""
    upto = {name: snapshot.sequence for name, snapshot in explained.then.snapshots.items()}

    def read(table: Table, rows: Sequence[Mapping[str, Any]]) -> Rows:
        return [dict(row) for row in rows if row[COMMIT_SEQUENCE] <= upto.get(table.name, 0)]

    assessed = _then(explained, "assessment") or {}
    objects = {ORBITAL_CATALOG.name: "element set", TRACKS.name: "track"}
    messages = _landed(lake, RECEIVED_CDMS, story.messages)
    found = {
        CONJUNCTION_ALERTS.name: story.alerts,
        ALERT_DELIVERIES.name: story.deliveries,
        CONJUNCTION_ASSESSMENTS.name: read(CONJUNCTION_ASSESSMENTS, story.assessments),
        CONJUNCTION_CANDIDATES.name: read(CONJUNCTION_CANDIDATES, story.candidates),
        FUSED_TRACKS.name: read(FUSED_TRACKS, story.tracks),
        OBSERVATIONS.name: read(OBSERVATIONS, story.observations),
        RECEIVED_CDMS.name: read(RECEIVED_CDMS, messages),
        EPHEMERIDES.name: read(EPHEMERIDES, _ephemerides(lake, assessed)),
        **{
            name: [dict(fact.then) for fact in explained.facts if fact.then and fact.what.startswith(what)]
            for name, what in objects.items()
        },
    }
    return {name: rows for name, rows in found.items() if rows}


def _then(explained: Explanation, what: str) -> Mapping[str, Any] | None:
    return next(fact.then for fact in explained.facts if fact.what == what)


def _ephemerides(lake: Lake, assessed: Mapping[str, Any]) -> Rows:
    """Return the received ephemerides that the states of an assessment are from."""
    used = {assessed.get(f"ephemeris_id_{n}") for n in (1, 2)} - {None}
    numbers = [assessed[f"norad_id_{n}"] for n in (1, 2) if assessed.get(f"ephemeris_id_{n}")]
    log = lake.log(EPHEMERIDES)
    if not used or log.version() < 0:
        return []
    rows = log.rows(where=ds.field("norad_id").isin(numbers)).to_pylist()
    return [row for row in rows if f"{row['segment_name']}:{row['record_number']}" in used]


def _landed(lake: Lake, table: Table, named: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the whole rows of the records that ``named`` rows name."""
    if not named:
        return []
    records = {(row["segment_sha256"], row["record_number"]) for row in named}
    where = ds.field("segment_sha256").isin(sorted({sha256 for sha256, _ in records}))
    rows = lake.log(table).rows(where=where).to_pylist()
    return [row for row in rows if (row["segment_sha256"], row["record_number"]) in records]


def _landings(lake: Lake, bronze: Table, rows: Rows) -> set[int]:
    """Return the commits of ``bronze`` that consumed the segments that ``rows`` name."""
    if not rows:
        return set()
    near = Near("received_time_ns", pa.chunked_array([[row["received_time_ns"] for row in rows]], pa.int64()))
    where = near.expression() & ds.field("segment_sha256").isin(sorted({row["segment_sha256"] for row in rows}))
    return set(lake.log(bronze).rows([COMMIT_SEQUENCE], where)[COMMIT_SEQUENCE].to_pylist())


def _manifests(lake: Lake, table: Table, sequences: set[int]) -> list[Commit]:
    """Return the commits from the first to the last of ``sequences``, oldest first; as far as they are kept."""
    log = lake.log(table)
    last = log.find(max(sequences)) if sequences else None
    if last is None:
        return []
    return list(takewhile(lambda commit: commit.sequence >= min(sequences), log.commits_from(last.version)))[::-1]


def _segment(landing_uri: str, table: str, commit: Commit, ref: SegmentRef, bundle: BundleWriter) -> dict[str, Any]:
    """Add the bytes of a consumed segment, and return what the bundle says of it."""
    member, loaded = f"segments/{ref.sha256}", None
    with suppress(SegmentLost):
        loaded = LandingZone(landing_uri, ref.zone).load_consumed(ref)
    if loaded and member not in bundle.members:
        bundle.add(member, loaded.data)
    return {
        "table": table, "commit_sequence": commit.sequence, "zone": ref.zone, "name": ref.name, "sha256": ref.sha256,
        "bytes": ref.bytes, "defect": ref.defect, "format": loaded.meta.format if loaded and loaded.meta else None,
        "is_absent": loaded is None,
    }  # fmt: skip
