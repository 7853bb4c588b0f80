"""Plans as Spark prints them: filters of each scan, and what is left to the rows."""

from sda_platform.archive.plan_audit import audit_plan

PLAN = """== Physical Plan ==
*(2) Project [observation_id#5]
+- *(2) Filter ((isnotnull(range_m#9) AND ((range_m#9 > 5.0) OR source_id IN (a, b))) AND (rand(7) < 0.5))
   +- *(1) ColumnarToRow
      +- FileScan parquet [observation_id#5,range_m#9,sensor_time_ns#7L] Batched: true, DataFilters: [isnotnull(range_m#9), \
((range_m#9 > 5.0) OR source_id IN (a, b))], Format: Parquet, Location: PreparedDeltaFileIndex(1 paths)[file:/lake/observations], \
PartitionFilters: [isnotnull(day#8)], PushedFilters: [IsNotNull(range_m), Or(GreaterThan(range_m,5.0),In(source_id, [a,b]))], \
ReadSchema: struct<observation_id:string>
"""  # noqa: E501


def test_a_scan_has_its_filters_and_the_rest_is_residual__DL5_A3() -> None:
    found = audit_plan(PLAN, {"a.parquet": 2_000_000, "b.parquet": 1_000_000}, 7)
    (scan,) = found.scans
    assert scan.table == "observations"
    assert scan.partition_filters == ("isnotnull(day)",)
    assert scan.data_filters == ("isnotnull(range_m)", "((range_m > 5.0) OR source_id IN (a, b))")
    assert scan.pushed_filters == ("IsNotNull(range_m)", "Or(GreaterThan(range_m,5.0),In(source_id, [a,b]))")
    assert found.residual == ("(rand(7) < 0.5)",)
    assert (found.files_kept, found.files_total, found.bytes_kept) == (2, 7, 3_000_000)
    assert list(found.lines())[-2:] == [
        "evaluated on rows: (rand(7) < 0.5)", "2 of 7 files kept (3.0 MB); spilled: not known",
    ]  # fmt: skip


def test_a_plan_without_a_scan_reads_nothing() -> None:
    found = audit_plan("== Physical Plan ==\n*(1) Range (0, 10, step=1, splits=2)\n", {}, 0)
    assert (found.scans, found.residual, found.files_kept) == ((), (), 0)
