"""What must hold for the fusion room's table."""

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.lake.checks import DataFreshness, table_checks
from sda_platform.lake.freshness import watermark
from sda_platform.lake.verification import broken_journals

# Watermarks trail by the slowest source's bound (optical, 30 s); beyond 120 s eviction stalls (DP3-O5).
MAX_WATERMARK_LAG_S = 120.0

checks = [
    table_checks(
        FUSED_TRACKS,
        balance=[broken_journals],
        freshness=DataFreshness("the watermark keeps up", MAX_WATERMARK_LAG_S, watermark(PIPELINE)),
    )
]
