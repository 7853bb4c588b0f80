"""What `sda land` states of a file beside its segments: the records that no table will use, and why.

The decoders are those of the tables, so that a record that is refused here becomes a dead letter there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog import decoding as element_sets
from sda_platform.catalog import edit_decoding, ephemeris_decoding, satellites
from sda_platform.catalog.orbits import catalogued, designated
from sda_platform.catalog.sites import SiteKeys
from sda_platform.catalog.tables import EDITS_FEED, ELEMENTS_FEED, EPHEMERIDES_FEED, SATELLITES_FEED
from sda_platform.clock import iso_to_second
from sda_platform.conjunction import acknowledgement_decoding, cdm_decoding
from sda_platform.conjunction.tables import ACKNOWLEDGEMENTS_FEED, MESSAGES_FEED
from sda_platform.counts import counted
from sda_platform.formats.segments import SegmentMeta
from sda_platform.fusion.lateness import first_open_window_ns
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import unlisted
from sda_platform.ingest import decoding as observations
from sda_platform.ingest.feeds import LANDING_FEEDS
from sda_platform.lake.lake import Lake
from sda_platform.landing.record_rows import SegmentDecoder
from sda_platform.list_settings import SensorFile
from sda_platform.orbits.sensing.sensors import SensorNetwork

MOST_SHOWN: Final = 5
_OBSERVATIONS: Final = tuple(feed.name for feed in LANDING_FEEDS)


@dataclass
class RefusedRecords:
    """Counts the refused records of segments of ``lake``'s landing zones, and keeps the first reasons.

    ``keys`` judge the signatures of edits, and ``sensors`` says where ground sensors are listed.
    """

    lake: Lake
    keys: SiteKeys = field(default_factory=dict)
    sensors: SensorFile = field(default_factory=SensorFile)
    count: int = 0
    reasons: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What no table will use of records that are used, and what is assumed of them."""
    late: int = 0
    """Number of observations of windows that are closed."""

    def examine(self, data: bytes, meta: SegmentMeta, first_record: int) -> None:
        """Decode a segment whose first record is number ``first_record`` of its file."""
        decode = self._decoders().get(meta.feed)
        rows = decode(data, meta) if decode else None
        for number, reason in _refused(rows, meta) if rows else ():
            self.count += 1
            if len(self.reasons) < MOST_SHOWN:
                self.reasons.append(f"record {first_record + number}, {reason}")
        if rows and meta.feed == EPHEMERIDES_FEED:
            for row in rows.to_pylist():
                remarks = ephemeris_decoding.remarks(row)
                self.remarks += [f"record {first_record + row['record_number']}, {each}" for each in remarks]
        if rows and meta.feed in _OBSERVATIONS:
            sources = pc.unique(rows["source_id"].filter(pc.is_null(rows["error_kind"]))).drop_null().to_pylist()
            found = [self.sensors.why_not_used(name) for name in unlisted(sources, self._network)]
            self.remarks += [remark for remark in found if remark not in self.remarks]
            if self._open_ns is not None:
                self.late += int(pc.sum(pc.less(rows["sensor_time_ns"], self._open_ns)).as_py() or 0)

    def lines(self) -> Iterator[str]:
        """Write the reasons of refused records, for people."""
        yield from self.reasons
        if self.count > len(self.reasons):
            yield f"and {self.count - len(self.reasons):,} more"
        yield from self.remarks[:MOST_SHOWN]
        if len(self.remarks) > MOST_SHOWN:
            yield f"and {len(self.remarks) - MOST_SHOWN:,} more such remarks"
        if self.late and self._open_ns is not None:
            yield (
                f"{counted(self.late, 'observation')} before {iso_to_second(self._open_ns)}, in closed windows: they "
                "become dead letters, and `sda lake reprocess --kind late_observation` then has them fitted"
            )

    def _decoders(self) -> Mapping[str, SegmentDecoder]:
        return {
            ELEMENTS_FEED: element_sets.decode,
            EPHEMERIDES_FEED: ephemeris_decoding.decoder(self._numbers, self._is_catalogued),
            EDITS_FEED: edit_decoding.decoder(self.keys),
            SATELLITES_FEED: satellites.decode,
            MESSAGES_FEED: cdm_decoding.decoder(self._numbers),
            ACKNOWLEDGEMENTS_FEED: acknowledgement_decoding.decode,
            **dict.fromkeys(_OBSERVATIONS, _observations),
        }

    @cached_property
    def _open_ns(self) -> int | None:
        return first_open_window_ns(self.lake)

    @cached_property
    def _network(self) -> SensorNetwork:
        return FusionResource(**self.sensors.model_dump()).network()

    @cached_property
    def _designated(self) -> Mapping[str, Sequence[int]]:
        return designated(self.lake)

    @cached_property
    def _catalogued(self) -> frozenset[int]:
        return catalogued(self.lake)

    def _is_catalogued(self, number: int) -> bool:
        return number in self._catalogued

    def _numbers(self, designator: str) -> Sequence[int]:
        return self._designated.get(designator, ())


def _observations(data: bytes, meta: SegmentMeta) -> pa.Table:
    return observations.decode([(data, meta)])


def _refused(rows: pa.Table, meta: SegmentMeta) -> Iterator[tuple[int, str]]:
    if meta.feed == EPHEMERIDES_FEED:
        for row in rows.to_pylist():
            if reason := ephemeris_decoding.why_not_used(row, meta.sealed_time_ns):
                yield row["record_number"], reason
        return
    refused = rows.filter(pc.is_valid(rows["error_kind"])).select(["record_number", "error"])
    for row in refused.to_pylist():
        yield row["record_number"], row["error"] or "it cannot be used"
