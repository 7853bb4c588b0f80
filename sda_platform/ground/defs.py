"""What package ground adds to the Dagster definitions."""

import dagster as dg

from sda_platform.ground import calibration_asset, game_day
from sda_platform.ground.checks import (
    lost_commands_are_issued_again,
    members_are_alive,
    members_are_registered,
    promotions_are_fast,
    views_agree,
)
from sda_platform.ground.replica_check import replica_checks
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"ground_segment": GroupPolicy("team:ground-segment", warn_h=24, fail_h=48)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks and the schedule of the package."""
    return dg.Definitions(
        assets=[
            calibration_asset.detector_calibration,
            game_day.game_day_asset(settings),
        ],
        asset_checks=[
            promotions_are_fast,
            lost_commands_are_issued_again,
            members_are_alive,
            views_agree,
            members_are_registered,
            game_day.faults_are_survived,
            game_day.faults_are_rehearsed,
            *replica_checks(settings.station_state),
        ],
        jobs=[calibration_asset.job, game_day.job],
        schedules=[calibration_asset.nightly, game_day.nightly],
    )
