"""Records of runs in an instance of Dagster, as the launcher leaves them, without a run."""

import uuid
from collections.abc import Mapping

import dagster as dg
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from sda_platform.orchestration.jobs import Job
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG


def recorded_run(
    instance: dg.DagsterInstance,
    job: Job | str,
    status: dg.DagsterRunStatus,
    *,
    tags: Mapping[str, str] | None = None,
    tables: tuple[str, ...] = (),
) -> str:
    """The id of a run of ``job`` in ``status``; ``tables``: the assets that a person chose, by default all of it."""
    run_id = str(uuid.uuid4())
    chosen = frozenset(map(dg.AssetKey, tables)) or None
    name = job if isinstance(job, str) else job.name
    pool = {} if isinstance(job, str) else {"sda/pool": job.pool}
    instance.add_run(
        dg.DagsterRun(
            job_name=name,
            run_id=run_id,
            status=status,
            tags={**pool, **(tags or {})},
            asset_selection=chosen,
            remote_job_origin=RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("sda"), "sda"), name),
        )
    )
    return run_id


def failed_run(
    instance: dg.DagsterInstance,
    job: Job,
    reason: str,
    disposition: str = "transient",
    *,
    reported: bool = False,
    tags: Mapping[str, str] | None = None,
) -> str:
    """The id of a run of ``job`` that failed for ``reason``; ``reported``: with the event of its failure."""
    failure = {FAILURE_TAG: disposition, REASON_TAG: reason, **(tags or {})}
    status = dg.DagsterRunStatus.STARTED if reported else dg.DagsterRunStatus.FAILURE
    run_id = recorded_run(instance, job, status, tags=failure)
    if reported:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        instance.report_run_failed(run)
    return run_id
