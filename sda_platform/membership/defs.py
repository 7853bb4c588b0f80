"""What package membership adds to the Dagster definitions."""

import dagster as dg

from sda_platform.membership.assets import fleet_membership, membership_observations, membership_zone
from sda_platform.membership.checks import checks
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES: dict[str, GroupPolicy] = {}
"""Of group ground_segment: declared by the package of that name."""


def defs(_settings: Settings) -> dg.Definitions:
    """Assets and checks of the package."""
    return dg.Definitions(assets=[membership_zone, membership_observations, fleet_membership], asset_checks=checks)
