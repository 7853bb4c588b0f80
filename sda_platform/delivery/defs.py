"""What package delivery adds to the Dagster definitions."""

import dagster as dg

from sda_platform.delivery.breaker import guarded
from sda_platform.delivery.checks import subscriber_agrees
from sda_platform.delivery.configured import subscriber_of
from sda_platform.delivery.sensors import waiting_alerts
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"delivery": GroupPolicy("team:conjunction-assessment", warn_h=12, fail_h=24)}


def defs(settings: Settings) -> dg.Definitions:
    """Asset, checks, sensor and resource of the package."""
    return dg.Definitions(
        asset_checks=[subscriber_agrees],
        sensors=[waiting_alerts],
        resources={"subscriber": guarded(subscriber_of(settings), settings.home)},
    )
