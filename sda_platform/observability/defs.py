"""What package observability adds to the Dagster definitions."""

import dagster as dg

from sda_platform.observability.vitals.assets import ASSET, GROUP, VITALS_JOB, vitals_checks, vitals_sensor
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {GROUP: GroupPolicy("team:platform", warn_h=1 / 6, fail_h=1)}


def defs(settings: Settings) -> dg.Definitions:
    """The vitals: asset, checks, job and sensor."""
    return dg.Definitions(
        assets=[ASSET],
        asset_checks=[vitals_checks(settings)],
        jobs=[VITALS_JOB],
        sensors=[vitals_sensor(settings)],
    )
