"""What package ingest adds to the Dagster definitions."""

import dagster as dg

from sda_platform.ingest import collectors
from sda_platform.ingest.checks import no_orphans
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {
    "ingest": GroupPolicy("team:sensor-operations", warn_h=1 / 6, fail_h=1),
    "telemetry": GroupPolicy("team:ground-segment", warn_h=24, fail_h=168),
}


def defs(_settings: Settings) -> dg.Definitions:
    """Assets, checks and sensors of the package."""
    return dg.Definitions(
        assets=collectors.source_assets,
        asset_checks=[no_orphans, *collectors.source_checks],
        sensors=[collectors.sources_sensor],
    )
