"""What package conjunction adds to the Dagster definitions."""

import dagster as dg

from sda_platform.conjunction.checks import others_agree
from sda_platform.conjunction.objects_of_interest import InterestResource
from sda_platform.conjunction.report import conjunction_report
from sda_platform.conjunction.resource import AlertingResource, ScreeningResource
from sda_platform.conjunction.sensors import screening_settings, suspected_manoeuvres
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"conjunction": GroupPolicy("team:conjunction-assessment", warn_h=12, fail_h=24)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks, sensors and resource of the package."""
    screening = ScreeningResource(**settings.screening.model_dump())
    return dg.Definitions(
        assets=[conjunction_report],
        asset_checks=[others_agree],
        sensors=[screening_settings, suspected_manoeuvres],
        resources={
            "screening": screening,
            "alerting": AlertingResource(**settings.alerting.model_dump()),
            "refinement": InterestResource(**settings.refinement.model_dump()),
        },
    )
