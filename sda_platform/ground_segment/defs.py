"""What package ground_segment adds to the Dagster definitions."""

import dagster as dg

from sda_platform.ground_segment import assets
from sda_platform.ground_segment.checks import checks
from sda_platform.ground_segment.tables import GROUND_FEED
from sda_platform.orchestration.jobs import GROUND_SEGMENT
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.orchestration.sensors import landing_sensor
from sda_platform.settings import Settings

POLICIES = {"ground_segment": GroupPolicy("team:ground-segment", warn_h=24, fail_h=48)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks and the sensor of the landing zone."""
    return dg.Definitions(
        assets=[assets.ground_zone, assets.ground_events, assets.ground_commands],
        asset_checks=checks,
        sensors=[landing_sensor(GROUND_FEED, [GROUND_FEED], GROUND_SEGMENT, settings.sensor_interval_s)],
    )
