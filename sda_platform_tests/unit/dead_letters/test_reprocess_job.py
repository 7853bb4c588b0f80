"""The job `reprocess`: what the launchpad selects returns to its zone, and the audit log says so."""

from pathlib import Path

import dagster as dg

from sda_platform import audit_log
from sda_platform.dead_letters.reprocess_job import reprocess
from sda_platform.definitions import default_resources
from sda_platform.settings import Settings


def run(home: Path, **config: object) -> dg.ExecuteInProcessResult:
    resources = default_resources(Settings(home=home))
    with dg.DagsterInstance.ephemeral() as instance:
        return reprocess.execute_in_process(
            run_config={"ops": {"return_dead_letters": {"config": config}}},
            resources={name: resources[name] for name in ("lake", "landing")},
            instance=instance,
            raise_on_error=False,
        )


def test_a_dry_run_leaves_no_event_and_a_return_does(tmp_path: Path) -> None:
    assert run(tmp_path).success
    assert audit_log.events(tmp_path) == []
    done = run(tmp_path, dry_run=False, kinds=["bad_json"])
    assert done.success
    (event,) = audit_log.events(tmp_path)
    assert (event.operation, event.by) == ("reprocess", f"run {done.run_id}")
    assert event.arguments["kinds"] == ["bad_json"] and event.outcome.startswith("0 reprocessed")


def test_a_text_that_is_no_instant_fails_the_run(tmp_path: Path) -> None:
    assert not run(tmp_path, since="yesterday").success
