"""What package ingest adds to the Dagster definitions."""

import dagster as dg

from sda_platform.ingest import assets, collectors
from sda_platform.ingest.checks import checks
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {
    "ingest": GroupPolicy("team:sensor-operations", warn_h=1 / 6, fail_h=1),
    "telemetry": GroupPolicy("team:ground-segment", warn_h=24, fail_h=168),
}


def defs(_settings: Settings) -> dg.Definitions:
    """Assets, checks and sensors of the package."""
    return dg.Definitions(
        assets=[
            *collectors.source_assets,
            *assets.landing_zones,
            assets.raw_records,
            assets.observations,
            assets.telemetry_zone,
            assets.telemetry_frames,
        ],
        asset_checks=[*checks, *collectors.source_checks],
        sensors=[collectors.sources_sensor],
    )
