"""What must hold for the table of sampled metrics."""

from sda_platform.metric_history.tables import PIPELINE_METRICS
from sda_platform.orchestration.freshness import never_stale
from sda_platform.orchestration.table_checks import DataFreshness, table_checks

MAX_WAIT_S = 3600.0


checks = [
    *table_checks(
        PIPELINE_METRICS,
        freshness=DataFreshness("a platform need not sample metrics", MAX_WAIT_S, never_stale),
    ),
]
