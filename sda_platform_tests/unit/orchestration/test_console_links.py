"""Materializations link to the page of the console that shows the same."""

from pathlib import Path

import dagster as dg

from sda_platform.orchestration.materialization import with_console
from sda_platform.published import CATALOGUE, publish


def test_a_materialization_links_to_the_console_while_it_is_served(tmp_path: Path) -> None:
    result: dg.MaterializeResult[None] = dg.MaterializeResult(asset_key="a", metadata={"rows": 3})
    assert with_console(result, str(tmp_path), "schedule") == result
    publish(tmp_path, CATALOGUE, "127.0.0.1:3100")
    linked = with_console(result, str(tmp_path), "schedule")
    assert linked.asset_key == result.asset_key
    assert linked.metadata == {"console": dg.MetadataValue.url("http://127.0.0.1:3100/schedule"), "rows": 3}
