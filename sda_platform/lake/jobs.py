"""Lanes as jobs: one run carries a batch through the whole chain, in one process, in topological order."""

from typing import Any

import dagster as dg

from sda_platform.lake.spark.session import LANE_TAG


def lane_job(name: str, lane: str, selection: dg.AssetSelection, description: str) -> Any:
    """The job of ``lane`` over ``selection`` with its checks."""
    return dg.define_asset_job(
        name,
        selection=selection,
        run_tags={LANE_TAG: lane},
        description=description,
        executor_def=dg.in_process_executor,
    )
