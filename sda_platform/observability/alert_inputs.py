"""The check that the inputs of alerts are recent, defined above the packages of both inputs."""

import dagster as dg

from sda_platform.catalog.checks import CATALOGUE_IS_FRESH
from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.checks import SCREENING_IS_FRESH
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_CANDIDATES
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS


@dg.asset_check(
    asset=CONJUNCTION_ALERTS.name,
    description="What the alerts rest on is recent: the element sets, and the last full screening.",
    op_tags=AFTER_ALERTS,
)
def inputs_are_fresh(lake: LakeResource) -> dg.AssetCheckResult:
    """Name each stale input: a conjunction that is not in the table may be in the sky."""
    problems = stale_inputs(lake.open())
    return dg.AssetCheckResult(
        passed=not problems, severity=dg.AssetCheckSeverity.ERROR, description=outcome_text(" ".join(problems))
    )


def stale_inputs(store: Lake) -> list[str]:
    """Describe which inputs of the alerts are stale."""
    inputs = ((ELEMENT_SETS, CATALOGUE_IS_FRESH), (CONJUNCTION_CANDIDATES, SCREENING_IS_FRESH))
    return [problem for table, rule in inputs if (problem := rule.problem(store, store.log(table)))]
