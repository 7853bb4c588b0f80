"""The platform's one Definitions object: every package's definitions, the jobs over them, resources and policy.

Loading this module starts nothing and reads nothing but the environment: no session, no listing, no file.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from sda_platform.delivery.configured import require_idempotency
from sda_platform.history.assets import POLICIES as HISTORY_POLICIES
from sda_platform.history.assets import history_definitions
from sda_platform.orchestration.declarations import DECLARED, tables_of, zones_of
from sda_platform.orchestration.jobs import (
    CATALOG_TO_ALERTS,
    JOBS,
    OBSERVATIONS_TO_ALERTS,
    ORBIT_DETERMINATION,
    job_over,
)
from sda_platform.orchestration.policy import with_policy
from sda_platform.orchestration.run_failures import run_failures
from sda_platform.orchestration.sensors import landing_sensor, unconsumed_sensor
from sda_platform.orchestration.shared_resources import shared_resources
from sda_platform.registry import TABLES, modules_named
from sda_platform.settings import Settings

PACKAGES = modules_named("defs")
# Importing them declares the tables' assets, landing zones and checks.
modules_named("assets")
POLICIES = {group: policy for package in PACKAGES for group, policy in package.POLICIES.items()} | HISTORY_POLICIES
REPORTS = "reports"


def default_resources(settings: Settings) -> dict[str, Any]:
    """Every resource that ``settings`` describe; building them opens nothing."""
    own = (package.defs(settings).resources or {} for package in PACKAGES)
    return {**shared_resources(settings), **{name: resource for each in own for name, resource in each.items()}}


def build_defs(resources: Mapping[str, Any] | None = None, settings: Settings | None = None) -> dg.Definitions:
    """Return the definitions, with some resources replaced (for tests) or other settings than the environment's."""
    chosen = settings or Settings()
    parts = [*(package.defs(chosen) for package in PACKAGES), history_definitions(TABLES, chosen)]
    provided = {**default_resources(chosen), **(resources or {})}
    require_idempotency(provided["subscriber"])
    assets: list[Any] = [asset for each in DECLARED.values() for asset in (*each.zones, each.asset)]
    assets += [asset for part in parts for asset in part.assets or ()]
    reports = [a for a in assets if isinstance(a, dg.AssetsDefinition) and a.key.path[0] == REPORTS]
    return dg.Definitions(
        assets=dg.map_asset_specs(lambda spec: with_policy(spec, POLICIES), assets),
        asset_checks=[
            *(check for each in DECLARED.values() for check in each.checks),
            *(check for part in parts for check in part.asset_checks or ()),
        ],
        jobs=[
            *(job_over(job, tables_of(job), reports if job is ORBIT_DETERMINATION else ()) for job in JOBS),
            *(job for part in parts for job in part.jobs or ()),
        ],
        sensors=[
            *(sensor for part in parts for sensor in part.sensors or ()),
            *(
                landing_sensor(job, feeds, chosen.sensor_interval_s, chosen.home.absolute())
                for job in JOBS
                if (feeds := zones_of(job))
            ),
            *(unconsumed_sensor(job, TABLES) for job in (OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS)),
            run_failures,
        ],
        schedules=[schedule for part in parts for schedule in part.schedules or ()],
        resources=provided,
        executor=dg.in_process_executor,
    )


defs = build_defs()
