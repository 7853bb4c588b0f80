"""What package observability adds to the Dagster definitions."""

import dagster as dg

from sda_platform.observability.alert_inputs import inputs_are_fresh
from sda_platform.observability.audits.assets import AUDIT_JOBS, AUDIT_SCHEDULE, NIGHTLY_AUDITS, audit_assets
from sda_platform.observability.audits.assets import GROUP as AUDITS_GROUP
from sda_platform.observability.audits.by_hand import jobs_by_hand
from sda_platform.observability.objectives_asset import (
    SERVICE_LEVELS_JOB,
    SERVICE_LEVELS_SCHEDULE,
    service_levels_asset,
)
from sda_platform.observability.vitals.assets import ASSET, GROUP, VITALS_JOB, vitals_checks, vitals_sensor
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {group: GroupPolicy("team:platform", warn_h=26, fail_h=50) for group in (GROUP, AUDITS_GROUP)}


def defs(settings: Settings) -> dg.Definitions:
    """Vitals, service levels and audits: assets, checks, jobs, and what evaluates them."""
    return dg.Definitions(
        assets=[ASSET, service_levels_asset(settings), *audit_assets(settings)],
        asset_checks=[vitals_checks(settings), inputs_are_fresh],
        jobs=[VITALS_JOB, SERVICE_LEVELS_JOB, *AUDIT_JOBS, NIGHTLY_AUDITS, *jobs_by_hand(settings)],
        schedules=[SERVICE_LEVELS_SCHEDULE, AUDIT_SCHEDULE],
        sensors=[vitals_sensor(settings)],
    )
