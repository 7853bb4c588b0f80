"""What package orbit_determination adds to the Dagster definitions."""

import dagster as dg

from sda_platform.fusion.report import KEY as FUSION_REPORT
from sda_platform.fusion.tables import TIME_TAG_BIASES
from sda_platform.orbit_determination import sensors
from sda_platform.orbit_determination.tables import TABLES
from sda_platform.orchestration.jobs import CONJUNCTION_REPORT
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"orbit_determination": GroupPolicy("team:orbit-determination", warn_h=1 / 6, fail_h=1)}
# Windows are corrected for time-tag biases whether or not element sets are determined.
_ALWAYS = [dg.AssetKey(TIME_TAG_BIASES.name), FUSION_REPORT, CONJUNCTION_REPORT]
_PRODUCTS = [dg.AssetKey(table.name) for table in TABLES]


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks and schedule of the package."""
    return dg.Definitions(
        schedules=sensors.build_schedules(
            running=settings.fusion_refresh,
            assets=[*_ALWAYS, *(_PRODUCTS if settings.own_elements else ())],
        ),
    )
