"""Seals received records into segments, with the truth of every record."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.registry import ZONES
from sda_platform.formats.segments import SegmentMeta
from sda_platform.simulation.corruption import LATENESS_BOUND_NS, Delivery
from sda_platform.simulation.simulated_observations import SimulatedObservations

_STATE = ("x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s")
TRUTH_SCHEMA: Final = pa.schema(
    [
        pa.field("feed", pa.string(), nullable=False),
        pa.field("available_time_ns", pa.int64(), nullable=False),
        pa.field("record_number", pa.int64(), nullable=False),
        pa.field("fault", pa.string(), nullable=False),
        pa.field("observation_id", pa.string()),
        pa.field("payload_sha256", pa.string(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("norad_id", pa.int64(), nullable=False),
        pa.field("true_time_ns", pa.int64(), nullable=False),
        pa.field("sensor_time_ns", pa.int64(), nullable=False),
        pa.field("received_time_ns", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64(), nullable=False) for name in _STATE),
    ]
)
"""One row per landed record; `fault` is none, duplicate or corrupt, and a corrupt record has no observation_id."""


@dataclass(frozen=True)
class SimulatedSegment:
    """A sealed segment, the mission time it reaches its landing zone, and its truth (TRUTH_SCHEMA; not for landing).

    `meta.sealed_wall_time_ns` is mission time too: a simulation has no wall clock.
    """

    feed: str
    segment_format: str
    data: bytes
    meta: SegmentMeta
    available_time_ns: int
    truth: pa.Table


class SegmentCollector:
    """Collects the records of one feed until their segment is sealed."""

    def __init__(self, feed: str, start_time_ns: int, segment_ns: int) -> None:
        self._feed = feed
        self._start_time_ns = start_time_ns
        self._segment_ns = segment_ns
        self._pending: list[tuple[int, int, Delivery, SimulatedObservations]] = []
        self._count = 0

    def receive(self, observations: SimulatedObservations, deliveries: Iterable[Delivery]) -> None:
        """Add deliveries in any order."""
        for delivery in deliveries:
            self._pending.append((delivery.received_time_ns, self._count, delivery, observations))
            self._count += 1

    def seal_until(self, time_ns: int | None) -> Iterator[SimulatedSegment]:
        """Yield the non-empty segments that end at or before `time_ns`; all remaining ones where it is None."""
        self._pending.sort(key=lambda item: item[:2])
        batch: list[tuple[int, int, Delivery, SimulatedObservations]] = []
        end = self._start_time_ns
        kept: list[tuple[int, int, Delivery, SimulatedObservations]] = []
        for position, item in enumerate(self._pending):
            if item[0] >= end:
                if batch:
                    yield self._seal(batch, end)
                batch = []
                end = item[0] - (item[0] - self._start_time_ns) % self._segment_ns + self._segment_ns
                if time_ns is not None and end > time_ns:
                    kept = self._pending[position:]
                    break
            batch.append(item)
        if batch:
            yield self._seal(batch, end)
        self._pending = kept

    def _seal(
        self, batch: list[tuple[int, int, Delivery, SimulatedObservations]], end_time_ns: int
    ) -> SimulatedSegment:
        payloads = [delivery.payload for _, _, delivery, _ in batch]
        if self._feed == "optical":
            data = b"\n".join(payloads) + b"\n"
        else:
            data = pack_records(payloads, [received for received, _, _, _ in batch])
        events = [int(observations.sensor_time_ns[d.row]) for _, _, d, observations in batch if d.fault != "corrupt"]
        meta = SegmentMeta(
            feed=self._feed,
            format=ZONES[self._feed][0],
            bytes=len(data),
            records=len(batch),
            sha256=hashlib.sha256(data).hexdigest(),
            sealed_time_ns=end_time_ns,
            sealed_wall_time_ns=end_time_ns,
            first_event_time_ns=min(events, default=None),
            last_event_time_ns=max(events, default=None),
            source_watermark_ns=end_time_ns - LATENESS_BOUND_NS[self._feed],
        )
        return SimulatedSegment(
            self._feed, meta.format, data, meta, end_time_ns, _truth(self._feed, batch, end_time_ns)
        )


def write_truth(segments: Iterable[SimulatedSegment], path: Path) -> int:
    """Write every record's truth as one Parquet file; returns the number of rows."""
    rows = 0
    with pq.ParquetWriter(path, TRUTH_SCHEMA) as writer:
        for segment in segments:
            writer.write_table(segment.truth)
            rows += segment.truth.num_rows
    return rows


def _truth(
    feed: str, batch: list[tuple[int, int, Delivery, SimulatedObservations]], available_time_ns: int
) -> pa.Table:
    rows = []
    for number, (received, _, delivery, observations) in enumerate(batch):
        row = delivery.row
        state = [*(observations.r_teme_km[row] * 1e3).tolist(), *(observations.v_teme_km_s[row] * 1e3).tolist()]
        rows.append(
            {
                "feed": feed,
                "available_time_ns": available_time_ns,
                "record_number": number,
                "fault": delivery.fault,
                "observation_id": None if delivery.fault == "corrupt" else observations.observation_id[row],
                "payload_sha256": hashlib.sha256(delivery.payload).hexdigest(),
                "source_id": str(observations.source_id[row]),
                "norad_id": int(observations.norad_id[row]),
                "true_time_ns": int(observations.true_time_ns[row]),
                "sensor_time_ns": int(observations.sensor_time_ns[row]),
                "received_time_ns": received,
                **dict(zip(_STATE, state, strict=True)),
            }
        )
    return pa.Table.from_pylist(rows, TRUTH_SCHEMA)
