"""The form that the reports of the archive share as assets."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from sda_platform.spark.pools import Pool


def report_asset(
    key: dg.AssetKey, group: str, *, checks: Mapping[str, str], description: str
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Make a function the asset ``key`` with ``checks`` (name and description); it changes nothing in the lake."""
    return dg.asset(
        key=key,
        group_name=group,
        kinds={"python"},
        pool=Pool.MAINTENANCE,
        check_specs=[dg.AssetCheckSpec(name, asset=key, description=text) for name, text in checks.items()],
        description=description,
    )
