"""The catalogue of a lake as the source of the serving index; read without an engine."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.gate import are_held, held_upto
from sda_platform.catalog.identities import NO_IDENTITIES
from sda_platform.catalog.identity import SET_KEY, identified, identities_at
from sda_platform.catalog.tables import (
    CATALOG_EDITS,
    ELEMENT_SETS,
    ELEMENTS_FEED,
    HELD_ELEMENT_SETS,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
)
from sda_platform.conjunction.acknowledging import known_acknowledgements
from sda_platform.conjunction.alert_policy import urgency
from sda_platform.conjunction.data_origins import (
    assessments_of,
    data_origins,
    origin_columns,
    origins_of_events,
    with_markings,
)
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.formats.markings import MARKS, of_event
from sda_platform.formats.segments import Origin, describe_segment
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.commit_spans import committed_in
from sda_platform.lake.gate import readable_of
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.ordered_reading import in_order
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.landing.listing import bytes_at
from sda_platform.landing.zone import LandingZone
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.runtime.current_rows import current_rows, row_schema, scheduled_observations
from sda_platform.runtime.known_paths import known_paths
from sda_platform.runtime.served_satellites import ServedSatellites
from sda_platform.serving import micro_segment
from sda_platform.serving.answers import ALERT, CONJUNCTION, SCHEDULED_OBSERVATION
from sda_platform.serving.index import IS_HELD, Binding
from sda_platform.serving.keys import PERIOD_NS
from sda_platform.serving.record import COLUMNS
from sda_platform.serving.satellites import NO_SATELLITES, Satellites
from sda_platform.serving.source import KnownPath, Rows
from sda_platform.tasking.tables import PASS_SCHEDULE

_USABLE: Final = ds.field("error_kind").is_null()
"""The condition on `element_sets` for the usable sets."""
_AT_ONCE: Final = 300_000
"""So many sets of a whole history are read at a time, up to four times as many where files overlap."""
_FEEDS: Final = {
    "alerts": CONJUNCTION_ALERTS, "conjunctions": CONJUNCTION_ASSESSMENTS, "element_sets": ELEMENT_SETS,
    "tracks": TRACKS,
}  # fmt: skip
_NOT_IN_FEEDS: Final = {
    COMMIT_SEQUENCE, "joint_covariance", "innovation", "innovation_size", "unexplained_windows", "streak",
    *(name for name in TRACKS.arrow_schema.names if name.startswith("kept_")),
}  # fmt: skip


class LakeSource:
    """See `serving.source.CatalogueSource`. Only verified commits of the catalogue are served."""

    def __init__(self, lake: Lake, landing_uri: str) -> None:
        self._lake = lake
        self._zone = LandingZone(landing_uri, ELEMENTS_FEED)
        self._hashes: dict[str, str] = {}
        self._edits_sequence, self._identities = 0, NO_IDENTITIES
        self._satellites = ServedSatellites(lake)

    def newest(self) -> Binding | None:
        head = self._readable(ORBITAL_CATALOG)
        if head is None or head.commit is None:
            return None
        manifest = head.commit.manifest
        edits = manifest.window(CATALOG_EDITS.name)
        if (edits.upto_sequence if edits else 0) != self._edits_sequence:
            self._identities = identities_at(self._lake, manifest)
            self._edits_sequence = edits.upto_sequence if edits else 0
        consumed, holds = manifest.window(ELEMENT_SETS.name), manifest.window(HELD_ELEMENT_SETS.name)
        return Binding(
            version=head.commit_version,
            sequence=head.sequence,
            manifest_sha256=head.manifest_sha256,
            elements_sequence=consumed.upto_sequence if consumed else 0,
            as_of_ns=manifest.as_of_ns,
            committed_wall_ms=head.commit.timestamp_ms,
            identities=self._identities.digest,
            holds_sequence=holds.upto_sequence if holds else 0,
        )

    def holds(self, binding: Binding) -> bool:
        commit = self._lake.log(ORBITAL_CATALOG).commit_at(binding.version)
        return commit is not None and commit.manifest_sha256 == binding.manifest_sha256

    def catalogue(self, binding: Binding, *, after_sequence: int = 0) -> pa.Table:
        written = (after_sequence, binding.sequence)
        return self._lake.log(ORBITAL_CATALOG).rows_of(written, COLUMNS, binding.version)

    def element_sets(self, binding: Binding) -> Iterator[pa.Table]:
        log, held = self._lake.log(ELEMENT_SETS), held_upto(self._lake, self._manifest(binding))
        usable = _USABLE & committed_in((0, binding.elements_sequence))
        for sets in in_order(log, "epoch_time_ns", COLUMNS, usable, step=PERIOD_NS, rows=_AT_ONCE):
            yield _marked(self.identified(sets), held)

    def new_element_sets(self, binding: Binding, after_sequence: int) -> pa.Table | None:
        written = (after_sequence, binding.elements_sequence)
        sets = self._lake.log(ELEMENT_SETS).some_rows_of(written, _AT_ONCE, COLUMNS, _USABLE)
        if sets.num_rows == _AT_ONCE:
            return None
        return _marked(self.identified(sets), held_upto(self._lake, self._manifest(binding)))

    def changed_holds(self, binding: Binding, after_sequence: int, new_sets: pa.Table) -> pa.Table:
        manifest = self._manifest(binding)
        window = manifest.window(HELD_ELEMENT_SETS.name) if manifest else None
        changed = self._lake.log(HELD_ELEMENT_SETS).rows_of(
            (after_sequence, binding.holds_sequence),
            [*SET_KEY, "epoch_time_ns"],
            window.upto_version if window else -1,
        )
        changed = changed.filter(pc.invert(are_held(changed, new_sets)))
        if not changed.num_rows:
            return new_sets.slice(0, 0)
        # By the bounds of their files few are read.
        epochs, segments = pc.min_max(changed["epoch_time_ns"]), pc.unique(changed["segment_sha256"])
        epoch = ds.field("epoch_time_ns")
        are_near = (epoch >= epochs["min"]) & (epoch <= epochs["max"]) & ds.field("segment_sha256").isin(segments)
        sets = self._lake.log(ELEMENT_SETS).rows(
            COLUMNS, _USABLE & committed_in((0, binding.elements_sequence)) & are_near
        )
        sets = self.identified(sets)
        return _marked(sets.filter(are_held(sets, changed)), held_upto(self._lake, manifest))

    def _manifest(self, binding: Binding) -> CommitManifest | None:
        commit = self._lake.log(ORBITAL_CATALOG).commit_at(binding.version)
        return commit.manifest if commit else None

    def held_between(self, after_sequence: int, upto_sequence: int) -> Sequence[int]:
        if after_sequence == upto_sequence:
            return []
        rows = self._lake.log(HELD_ELEMENT_SETS).rows_of((after_sequence, upto_sequence), ["norad_id"])
        return sorted(set(rows["norad_id"].to_pylist()))

    def received_between(self, binding: Binding, span_ns: tuple[int, int], most: int) -> pa.Table:
        received = ds.field("received_time_ns")
        where = _USABLE & (received >= span_ns[0]) & (received <= span_ns[1])
        consumed = (0, binding.elements_sequence)
        sets = self.identified(self._lake.log(ELEMENT_SETS).some_rows_of(consumed, most, COLUMNS, where))
        return sets.filter(pc.invert(are_held(sets, held_upto(self._lake, self._manifest(binding)))))

    def identified(self, sets: pa.Table) -> pa.Table:
        return identified(sets, self._identities)

    def satellites(self) -> Satellites:
        head = self._readable(SATELLITE_CATALOG)
        return self._satellites.newest(head.commit) if head is not None and head.commit is not None else NO_SATELLITES

    def _readable(self, table: Table) -> Head | None:
        log = self._lake.log(table)
        return None if log.version() < 0 else readable_of(log, self._lake.verdicts.read(log), log.head()).head

    def unconsumed(self, binding: Binding | None, known: Iterable[str]) -> dict[str, pa.Table]:
        known_hashes = set(known)
        found: dict[str, pa.Table] = {}
        waiting = [name for name in self._zone.pending_names() if name.startswith(micro_segment.PREFIX)]
        for name in waiting:
            if self._hashes.get(name) not in known_hashes:
                found |= self._waiting_segment(name)
        self._hashes = {name: sha256 for name, sha256 in self._hashes.items() if name in set(waiting)}
        # What a commit of `element_sets` holds, but the catalogue does not yet.
        consumed = self._lake.log(ELEMENT_SETS).head().sequence
        seen = binding.elements_sequence if binding else 0
        if consumed > seen:
            is_put = pc.starts_with(pc.field("segment_name"), micro_segment.PREFIX)
            log = self._lake.log(ELEMENT_SETS)
            rows = self.identified(log.rows_of((seen, consumed), COLUMNS, where=_USABLE & is_put))
            for sha256 in rows.column("segment_sha256").unique().to_pylist():
                if sha256 not in known_hashes:
                    found.setdefault(sha256, rows.filter(pc.equal(rows.column("segment_sha256"), sha256)))
        return found

    def row_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        alert, conjunction = row_schema(CONJUNCTION_ALERTS), row_schema(CONJUNCTION_ASSESSMENTS)
        for schema in (alert, conjunction):
            names = (*origin_columns({}, ""), *MARKS)
            schema["properties"] |= {n: {"type": ["string", "null"]} for n in names if n not in schema["properties"]}
        alert["properties"]["acknowledgements"] = {"type": "array", "items": {"type": "object"}}
        return {
            ALERT: alert,
            CONJUNCTION: conjunction,
            SCHEDULED_OBSERVATION: row_schema(PASS_SCHEDULE),
        }

    def feed_heads(self) -> Mapping[str, int]:
        heads = {feed: self._readable(table) for feed, table in _FEEDS.items()}
        return {feed: head.sequence if head else 0 for feed, head in heads.items()}

    def feed_rows(self, feed: str, sequence: int) -> pa.Table:
        table, is_of_commit = _FEEDS[feed], (sequence - 1, sequence)
        if table is ELEMENT_SETS:
            found = self.identified(self._lake.log(table).rows_of(is_of_commit, COLUMNS, where=_USABLE))
            return found.sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")])
        kept = [column.name for column in table.columns if column.name not in _NOT_IN_FEEDS]
        found = self._lake.log(table).rows_of(is_of_commit, kept)
        found = with_markings(found) if table is CONJUNCTION_ASSESSMENTS else found
        return found.sort_by([(name, "ascending") for name in (*table.key, "sequence") if name in kept])

    def conjunctions(self, norad_id: int, as_of_ns: int | None = None) -> Rows:
        is_of_object = (ds.field("norad_id_1") == norad_id) | (ds.field("norad_id_2") == norad_id)
        found = current_rows(self._lake, CONJUNCTION_ASSESSMENTS, "tca_time_ns", as_of_ns, is_of_object)
        # Of the past that is in their history (`sda alert explain`).
        origins = {} if as_of_ns is not None else origins_of_events(self._lake, [row["event_id"] for row in found])
        return [{**origin_columns(origins, row["event_id"]), **row, **of_event(row).columns()} for row in found]

    def alerts(self, as_of_ns: int | None = None) -> Rows:
        found = sorted(current_rows(self._lake, CONJUNCTION_ALERTS, "tca_time_ns", as_of_ns), key=urgency)
        known = known_acknowledgements(self._lake)
        active = [alert for alert in found if alert["status"] != "closed"]
        stated = assessments_of(self._lake, active).values() if as_of_ns is None else ()
        origins = data_origins(self._lake, list(stated))
        last_ns = FOREVER_NS if as_of_ns is None else as_of_ns
        return [
            {
                **alert,
                **origin_columns(origins, alert["event_id"]),
                "acknowledgements": [
                    each for each in known.get(alert["event_id"], []) if each["acknowledged_time_ns"] <= last_ns
                ],
            }
            for alert in active
        ]

    def paths(self, norad_id: int, span_ns: tuple[int, int], as_of_ns: int | None = None) -> Sequence[KnownPath]:
        return known_paths(self._lake, norad_id, span_ns, as_of_ns)

    def schedule(self, as_of_ns: int | None = None) -> Rows:
        return scheduled_observations(self._lake, as_of_ns)

    def land(self, name: str, data: bytes, origins: Sequence[Origin]) -> int:
        """Make a micro-segment durable in the landing zone, and return the mission time of its sealing."""
        now_ns = self._lake.clock.now_ns()
        meta = describe_segment(
            data,
            feed=ELEMENTS_FEED,
            segment_format=micro_segment.FORMAT,
            sealed_time_ns=now_ns,
            sealed_wall_time_ns=time.time_ns(),
        )
        self._zone.seal(name, data, replace(meta, origins=tuple(origins)))
        return now_ns

    def _waiting_segment(self, name: str) -> dict[str, pa.Table]:
        data, described = bytes_at(self._zone.pending_path(name)), self._zone.describe(name)
        if data is None or described is None or described.meta is None:
            return {}  # consumed meanwhile, or a defective one, which the intake reports
        if name != micro_segment.segment_name(data):
            return {}  # a file of this name, which the intake decodes and judges
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 != described.meta.sha256:
            return {}
        self._hashes[name] = sha256
        received_ns = described.meta.sealed_time_ns
        rows = micro_segment.rows(data, received_time_ns=received_ns, origins=described.meta.origins)
        return {sha256: self.identified(rows)}


def _marked(sets: pa.Table, held: pa.Table) -> pa.Table:
    return sets.append_column(IS_HELD, are_held(sets, held))
