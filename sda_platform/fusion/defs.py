"""What package fusion adds to the Dagster definitions."""

import dagster as dg

from sda_platform.fusion.assets import fused_tracks, tracks
from sda_platform.fusion.checks import checks
from sda_platform.fusion.report import fusion_report
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.time_bias_assets import time_tag_biases
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"fusion": GroupPolicy("team:orbit-determination", warn_h=1 / 6, fail_h=1)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks and resource of the package."""
    fusion = FusionResource(**settings.fusion.model_dump())
    return dg.Definitions(
        assets=[fused_tracks, tracks, time_tag_biases, fusion_report],
        asset_checks=checks,
        resources={"fusion": fusion},
    )
