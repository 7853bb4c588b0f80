"""What must hold for the table of sampled metrics."""

from sda_platform.metric_history.tables import METRICS_FEED, PIPELINE_METRICS
from sda_platform.orchestration.backlog import backlog_check
from sda_platform.orchestration.freshness import never_stale
from sda_platform.orchestration.landing_balance import landing_balance_check
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.recovery.verification import unbalanced_segments

MAX_WAIT_S = 3600.0


checks = [
    *table_checks(
        PIPELINE_METRICS,
        balance=[unbalanced_segments],
        freshness=DataFreshness("a platform need not sample metrics", MAX_WAIT_S, never_stale),
    ),
    backlog_check(PIPELINE_METRICS, [METRICS_FEED]),
    landing_balance_check(PIPELINE_METRICS, [METRICS_FEED]),
]
