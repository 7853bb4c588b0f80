"""Commits of a few observations, and the catalogue that they are fused with."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sda_platform.catalog.error_history import rated
from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.catalog.transforms import improvements
from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.planning import Plan, plan_segments
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform_tests.support.delta_tables import rows_of


def log_of(table: Table, root: Path) -> TableLog:
    return TableLog(table, f"{root}/{table.name}")


def planned(log: TableLog, run_id: str = "run") -> Plan:
    segment = SegmentRef("radar", f"after {log.head().sequence}", "0" * 64, 1, 1)
    return plan_segments(log.table, log.head(), [segment], now_ns=1, run_id=run_id)


def frame(spark: SparkSession, table: Table, *rows: dict[str, object]) -> DataFrame:
    return spark.createDataFrame(rows_of(table, rows)).drop(COMMIT_SEQUENCE)


def observations(spark: SparkSession, *ids: str) -> DataFrame:
    return frame(spark, OBSERVATIONS, *({"observation_id": i, "sensor_time_ns": 5} for i in ids))


def ids(log: TableLog) -> list[str]:
    return sorted(log.rows(["observation_id"]).column("observation_id").to_pylist())


def element_sets(*sets: tuple[int, int, int]) -> pa.Table:
    """Element sets (norad_id, epoch, priority), as landed."""
    rows = (
        {
            "norad_id": n,
            "epoch_time_ns": e,
            "source_priority": p,
            "segment_sha256": f"{n}/{e}/{p}",
            "object_name": f"{e}/{p}",
        }
        for n, e, p in sets
    )
    return rows_of(ELEMENT_SETS, rows)


def improved(
    spark: SparkSession, log: TableLog, *sets: tuple[int, int, int], plan: Plan | None = None
) -> CommitReceipt:
    """Commit these element sets to the catalogue, as its asset does."""
    lake = Lake(str(Path(log.uri).parent), MissionClock(1, 0, 0.0), lambda: spark)
    plan = plan or planned(log)
    known = lake.current_rows(plan)
    changed = improvements(element_sets(*sets), known, as_of_ns=plan.as_of_ns)
    none = known.slice(0, 0)
    return lake.replace(plan, rated(changed, none, none))


def catalogue(log: TableLog) -> dict[int, str]:
    rows = log.rows(["norad_id", "object_name"])
    return dict(zip(rows.column("norad_id").to_pylist(), rows.column("object_name").to_pylist(), strict=True))
