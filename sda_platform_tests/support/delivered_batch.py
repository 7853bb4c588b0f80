"""A batch on its whole way: raw record → observation → window fit → alert → delivery, as manifests record it."""

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.reconciliation import counts_of
from sda_platform.delivery.subscriber import EntriesMark
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef, TableWindow
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delta_tables import commit


def window(source: str, upto: int = 1) -> TableWindow:
    return TableWindow(source, upto - 1, upto, upto - 2, upto - 1)


def a_delivered_batch(lake: Lake, *, received_s: float) -> None:
    """Raw record → observation → fit → alert → delivery, delivered at the lake's mission time, which is stopped."""
    now_ns = lake.clock.now_ns()
    received_ns = now_ns - round(received_s * SECOND_NS)
    segments = [SegmentRef("radar", "radar-1", "1" * 64, 10, 2)]
    commit(lake, RAW_RECORDS, [{"received_time_ns": received_ns}, {"received_time_ns": now_ns}], segments=segments)
    commit(lake, OBSERVATIONS, [{"observation_id": "o"}], windows=[window("raw_records")])
    counts = {"late": 2, "skewed": 1, "radar_pipeline_lag_ms": 4000}
    marks = {PIPELINE: now_ns - 90 * SECOND_NS, "radar": now_ns}
    commit(lake, FUSED_TRACKS, [], windows=[window("observations")], counts=counts, watermarks=marks)
    commit(lake, CONJUNCTION_ALERTS, [{"op": "retract"}, {"op": "insert"}], windows=[window("fused_tracks")])
    sent = {"sent": 1, **counts_of(EntriesMark())}
    commit(lake, ALERT_DELIVERIES, [{"alert_id": "a"}], windows=[window("conjunction_alerts")], counts=sent)
