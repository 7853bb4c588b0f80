"""What package fusion adds to the Dagster definitions."""

import dagster as dg

from sda_platform.fusion.checks import earth_orientation_is_published, sources_report, state_is_bounded
from sda_platform.fusion.report import fusion_report
from sda_platform.fusion.resource import FusionResource
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"fusion": GroupPolicy("team:orbit-determination", warn_h=1 / 6, fail_h=1)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks and resource of the package."""
    fusion = FusionResource(**settings.fusion.model_dump())
    return dg.Definitions(
        assets=[fusion_report],
        asset_checks=[sources_report, state_is_bounded, earth_orientation_is_published],
        resources={"fusion": fusion},
    )
