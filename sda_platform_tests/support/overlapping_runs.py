"""Two runs of one asset with a check, of which the first to be queued is the last to write and to be evaluated."""

import dagster as dg

_KEY = dg.AssetKey("shared")
_CHECK = dg.AssetCheckKey(_KEY, "holds")


def overlap(instance: dg.DagsterInstance) -> str:
    """Execute the second run whole while the first makes the asset. Returns the id of the first."""

    @dg.asset
    def shared(context: dg.AssetExecutionContext) -> None:
        if "is_second" not in context.run.tags:
            assert dg.materialize([shared, holds], instance=instance, tags={"is_second": "yes"}).success

    @dg.asset_check(asset=shared)
    def holds() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    result = dg.materialize([shared, holds], instance=instance)
    assert result.success
    return result.run_id


def newest_write(instance: dg.DagsterInstance) -> str:
    """The run of the newest materialization."""
    event = instance.get_latest_materialization_event(_KEY)
    assert event is not None
    return event.run_id


def newest_evaluation(instance: dg.DagsterInstance) -> tuple[str, str]:
    """The run of the newest evaluation, as the pages of the asset show it, and its status."""
    storage = instance.event_log_storage
    record = storage.get_latest_asset_check_execution_by_key([_CHECK])[_CHECK]
    assert record == storage.get_asset_check_execution_history(_CHECK, limit=1)[0]
    return record.run_id, record.status.value


def evaluations(instance: dg.DagsterInstance) -> int:
    """How many evaluations the history of the check has."""
    return len(instance.event_log_storage.get_asset_check_execution_history(_CHECK, limit=10))
