"""The serving index as an asset of Dagster: what its sensor reports, and what its check finds."""

from dataclasses import asdict
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.catalog.serving_index import index_is_current, judged, served_state
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.external_reports import reported
from sda_platform.orchestration.resources import LakeResource
from sda_platform.published import CATALOGUE, publish
from sda_platform.serving.index import Binding
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.small_catalogue import small_catalogue


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return small_catalogue(tmp_path, [5, 11, 25544])


def health(lake: Lake, **facts: object) -> dict[str, object]:
    """What an endpoint states that serves the newest version, but for ``facts``."""
    head = lake.log(ORBITAL_CATALOG).head()
    bound = asdict(Binding(head.version, head.sequence, head.manifest_sha256, 1, 0, objects=3, sets=3))
    return {"catalogue": {**bound, **facts}, "pending_sets": 0, "followed_after_s": 1.5, "event_stream": None}


def test_the_check_compares_version_lag_and_objects_with_the_log(lake: Lake) -> None:
    head = lake.log(ORBITAL_CATALOG).head()
    assert head.commit is not None
    committed_s = head.commit.timestamp_ms / 1000
    current = judged(health(lake), head, 3, committed_s + 60)
    assert (current.problems, current.metadata["objects"], current.metadata["lag_s"]) == ([], 3, 0.0)
    older = health(lake, version=-1, manifest_sha256="0" * 64)
    assert judged(older, head, 3, committed_s + 4.9).problems == []
    assert judged(older, head, 3, committed_s + 7.0).problems == ["version 0 was committed 7 s ago, -1 is served"]
    away = {**health(lake), "event_stream": {"problem": "no server", "behind_commits": 2}}
    assert judged(away, head, 3, committed_s).problems == ["2 commits wait for the stream of events: no server"]
    assert judged(health(lake, objects=2), head, 3, committed_s).outcome == "the index holds 2 objects, version 0 has 3"


def test_the_sensor_reports_each_version_and_each_outcome_once(lake: Lake) -> None:
    head = lake.log(ORBITAL_CATALOG).head()
    assert head.commit is not None
    current = judged(health(lake), head, 3, head.commit.timestamp_ms / 1000)
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(rows: int, cursor: str | None) -> dg.SensorResult | dg.SkipReason:
            state = judged(health(lake), head, rows, 0.0)
            return reported(dg.build_sensor_context(instance, cursor=cursor), [state])

        first = tick(3, None)
        assert isinstance(first, dg.SensorResult)
        made, checked = first.asset_events
        assert isinstance(made, dg.AssetMaterialization) and isinstance(checked, dg.AssetCheckEvaluation)
        assert (made.tags or {})["dagster/data_version"] == head.manifest_sha256 == current.mark
        assert checked.passed
        assert isinstance(tick(3, first.cursor), dg.SkipReason)
        wrong = tick(4, first.cursor)
        assert isinstance(wrong, dg.SensorResult)
        assert [type(each).__name__ for each in wrong.asset_events] == ["AssetCheckEvaluation"]


def test_an_endpoint_that_does_not_answer_is_a_problem_and_none_is_no_problem(lake: Lake, tmp_path: Path) -> None:
    resource = LakeResource(uri=lake.uri, home=str(tmp_path), spark=SparkResource(remote="local"))
    outcome = index_is_current(lake=resource)
    assert isinstance(outcome, dg.AssetCheckResult) and outcome.passed
    publish(tmp_path, CATALOGUE, "127.0.0.1:9")
    state = served_state(tmp_path, lake)
    assert state is not None and "127.0.0.1:9 does not answer" in state.outcome
