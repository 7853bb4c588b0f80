"""What package ground_segment adds to the Dagster definitions."""

import dagster as dg

from sda_platform.ground_segment import assets
from sda_platform.ground_segment.checks import checks
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"ground_segment": GroupPolicy("team:ground-segment", warn_h=24, fail_h=48)}


def defs(_settings: Settings) -> dg.Definitions:
    """Assets and checks of the package."""
    return dg.Definitions(
        assets=[assets.ground_zone, assets.ground_events, assets.ground_commands],
        asset_checks=checks,
    )
