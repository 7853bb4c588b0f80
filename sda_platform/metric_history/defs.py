"""What package metric_history adds to the Dagster definitions."""

import dagster as dg

from sda_platform.metric_history.assets import metrics_zone, pipeline_metrics
from sda_platform.metric_history.checks import checks
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES: dict[str, GroupPolicy] = {}
"""Of group observability: declared by the package of that name."""


def defs(_settings: Settings) -> dg.Definitions:
    """Assets and checks of the package."""
    return dg.Definitions(assets=[metrics_zone, pipeline_metrics], asset_checks=checks)
