"""A process may attach to several engines and lakes, one after the other."""

from contextlib import ExitStack
from typing import Any, cast

import dagster as dg
import pytest

from sda_platform.spark.pools import WARM_POOLS, Pool
from sda_platform.spark.session import POOL_TAG, SparkResource, attach, session_id
from sda_platform_tests.support.stand_in_engine import StandInEngine, serving


def test_a_process_gets_the_session_of_the_engine_pool_and_lake_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # PySpark sets it for good; this restores it
    with ExitStack() as engines:
        first, second = (f"sc://127.0.0.1:{engines.enter_context(serving(StandInEngine()))}" for _ in range(2))
        wanted = [(first, "alerts", "a"), (first, "alerts", "b"), (first, "catalog", "a"), (second, "alerts", "a")]
        sessions = [cast("Any", attach(remote, pool, lake_uri=lake)) for remote, pool, lake in wanted]
        found = [(f"sc://{each.client._builder.endpoint}", each.session_id) for each in sessions]
        for each in sessions:
            each.client.close()
    assert found == [(remote, session_id(pool, lake)) for remote, pool, lake in wanted]


@pytest.mark.parametrize("pool", [*WARM_POOLS, Pool.DELIVERY, None])
def test_runs_of_a_pool_share_a_session_where_it_stays_open_and_else_have_their_own(
    pool: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine does not open a closed session again: the second delivery by itself would fail."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr("sda_platform.spark.session.give_way", lambda: None)
    opened = []

    @dg.op
    def use(spark: SparkResource) -> None:
        client = cast("Any", spark.spark_session).client
        opened.append(client._session_id)

    @dg.job
    def work() -> None:
        use()

    with serving(StandInEngine()) as port:
        for _ in range(2):
            resources = {"spark": SparkResource(remote=f"sc://127.0.0.1:{port}")}
            work.execute_in_process(resources=resources, tags={POOL_TAG: pool} if pool else {})
    assert len(set(opened)) == (1 if pool in WARM_POOLS else 2)
