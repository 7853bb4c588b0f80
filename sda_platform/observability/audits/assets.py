"""The audits in Dagster: an asset and a job for each, the nightly job over all, and an event for every run."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from sda_platform import audit_log
from sda_platform.clock import iso
from sda_platform.observability.audits.audits import AUDITS, Audit
from sda_platform.observability.audits.outcome import AuditOutcome, AuditScope
from sda_platform.orchestration.jobs import upkeep_job
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool

GROUP = "audits"
_SHOWN = 20


def scope_of(settings: Settings, resource: LakeResource) -> AuditScope:
    """Return the scope of the audits of ``settings``: the lake of ``resource``, and the day that ends now."""
    from sda_platform.definitions import default_resources  # which loads this package

    lake = resource.open()
    return AuditScope(settings, lake, default_resources(settings), lake.clock.now_ns())


def run_audit(audit: Audit, scope: AuditScope, *, by: str | None = None) -> AuditOutcome:
    """Run ``audit`` and leave its event in the home's audit log."""
    outcome = audit.run(scope)
    arguments = {"audit": audit.name, "day_ends": iso(scope.day_ns)}
    audit_log.record(scope.settings.home, "audit", arguments, outcome.summary, by=by)
    return outcome


def audit_asset(audit: Audit, settings: Settings) -> dg.AssetsDefinition:
    """Return the asset of ``audit``; its materializations are the history, its check the verdict."""
    key = dg.AssetKey(["audit", audit.name])

    @dg.asset(
        key=key,
        group_name=GROUP,
        kinds={"spark"} if audit.needs_engine else {"python"},
        pool=Pool.MAINTENANCE,
        check_specs=[dg.AssetCheckSpec("passed", asset=key, description=audit.description)],
        description=f"{audit.description} Runs every night, or by `sda lake audit {audit.name}`; it changes nothing.",
    )
    def made(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
        outcome = run_audit(audit, scope_of(settings, lake), by=f"run {context.run.run_id}")
        problems = list(outcome.problems[:_SHOWN])
        check = dg.AssetCheckResult(
            check_name="passed",
            passed=outcome.has_passed,
            severity=dg.AssetCheckSeverity.ERROR if outcome.problems else dg.AssetCheckSeverity.WARN,
            description=outcome_text(
                outcome.summary if outcome.problems or outcome.skipped or not outcome.is_done else ""
            ),
            metadata={"problems": problems} if problems else {},
        )
        yield dg.MaterializeResult(metadata={"problems": len(outcome.problems), **outcome.facts}, check_results=[check])

    return made


def audit_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """Make the assets of all audits."""
    return [audit_asset(audit, settings) for audit in AUDITS]


AUDIT_JOBS = [
    upkeep_job(
        f"audit_{audit.name}",
        dg.AssetSelection.assets(dg.AssetKey(["audit", audit.name])),
        f"Verifies: {audit.description[0].lower()}{audit.description[1:]}",
    )
    for audit in AUDITS
]
NIGHTLY_AUDITS = upkeep_job(
    "audits",
    dg.AssetSelection.groups(GROUP),
    "Runs every audit, one after the other. It changes nothing.",
)
AUDIT_SCHEDULE = dg.ScheduleDefinition(
    name="nightly_audits",
    job=NIGHTLY_AUDITS,
    cron_schedule="0 4 * * *",
    description="Starts `audits`, an hour after the maintenance.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
"""After the maintenance, which begins at three."""
