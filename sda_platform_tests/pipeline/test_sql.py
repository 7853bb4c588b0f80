"""SQL on Spark over one version vector: the same rows as without an engine, a plan that is audited, and limits."""

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.history.errors import QueryRefused
from sda_platform.history.moments import vector_of
from sda_platform.history.pinned_session import ACTIVE, PinnedSession, SqlLimits, pinned_session
from sda_platform.history.pinned_view import PinnedView
from sda_platform.history.query_views import QUERY_VIEWS, views_in
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.version_leases import VersionLeases
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.unit.history.lakes import EVENT, TABLES, add, approach, decide, elements

QUERIES = (
    "SELECT norad_id, max(epoch_time_ns) AS epoch FROM element_sets GROUP BY norad_id ORDER BY norad_id",
    """SELECT a.risk, c.norad_id, c.epoch_time_ns FROM conjunction_alerts a
    JOIN orbital_catalog c ON c.norad_id IN (a.norad_id_1, a.norad_id_2) ORDER BY ALL""",
    "SELECT * FROM conjunction_alerts ORDER BY sequence, op",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """One decision, what became known after it, and three files of observations."""
    uri = tmp_path_factory.mktemp("sql")
    writer = lake_at(uri)
    add(writer, ELEMENT_SETS, elements(7, 100), elements(8, 100, record=1))
    add(writer, ORBITAL_CATALOG, elements(7, 100), elements(8, 100, record=1))
    decide(writer, collision_probability=2e-4)
    add(writer, ELEMENT_SETS, elements(7, 200, "late"))
    add(writer, ORBITAL_CATALOG, elements(7, 200, "late"))
    add(writer, CONJUNCTION_ALERTS, approach(op="retract"))
    for hour in range(3):
        rows = [
            {"observation_id": f"{hour}-{n}", "sensor_time_ns": 3600 * hour + n, "source_id": "radar-1", "range_m": 1.0}
            for n in range(100)
        ]
        commit(writer, OBSERVATIONS, rows)
    return Lake(writer.uri, MissionClock(0, 0, 0.0), lambda: spark)


def without_zones(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Timestamps of Spark, which have the zone UTC, as DuckDB gives them."""
    return [{k: v.replace(tzinfo=None) if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]


def rows_of(view: PinnedView | PinnedSession, sql: str) -> list[dict[str, object]]:
    return [row for batch in view.batches(sql) for row in batch.to_pylist()]


@pytest.mark.parametrize("moment", ["now", EVENT])
@pytest.mark.parametrize("columns", ["snapshot_time", "current"])
def test_a_query_has_the_same_rows_on_spark_as_in_process__DL5_A4_DL5_A8(
    spark: SparkSession, lake: Lake, moment: str, columns: str
) -> None:
    vector = vector_of(lake, TABLES, moment)
    with pinned_session(spark, lake, TABLES, vector, projection=columns) as on_spark:
        in_process = PinnedView(lake, TABLES, vector, columns)  # type: ignore[arg-type]  # the parameter of the test
        for sql in QUERIES:
            assert rows_of(on_spark, sql) == rows_of(in_process, sql) != []
        active = "SELECT count(*) AS n FROM {}conjunction_alerts"
        assert rows_of(on_spark, active.format(ACTIVE)) == rows_of(in_process, active.format("active."))
        for each in views_in({each.name_in_spark for each in QUERY_VIEWS}, vector.snapshots):
            found = rows_of(in_process, f"SELECT * FROM {each.schema}.{each.name} ORDER BY ALL")
            assert without_zones(rows_of(on_spark, f"SELECT * FROM {each.name_in_spark} ORDER BY ALL")) == found


def test_every_table_is_a_view_of_a_session_of_its_own_and_is_leased_meanwhile__DL5_A1_DL4_I8(
    spark: SparkSession, lake: Lake
) -> None:
    leases, vector = VersionLeases(lake.uri), vector_of(lake, TABLES, "now")
    setting = "spark.sql.runSQLOnFiles"
    before = {each.name for each in spark.catalog.listTables()}, spark.conf.get(setting)
    with pinned_session(spark, lake, TABLES, vector) as view, pinned_session(spark, lake, TABLES, vector) as other:
        view.register()
        names = {each.name for each in view.session.catalog.listTables()}
        assert {name for name in names if not name.startswith(ACTIVE)} == set(TABLES)
        assert other.session.catalog.listTables() == []
        for lease in leases.active():
            assert lease.versions[ORBITAL_CATALOG.name] == [vector.snapshots[ORBITAL_CATALOG.name].version]
    assert leases.active() == []
    assert ({each.name for each in spark.catalog.listTables()}, spark.conf.get(setting)) == before


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP VIEW observations", "Syntax error"),
        ("INSERT INTO observations SELECT * FROM observations", "Syntax error"),
        ("SELECT 1; SELECT 2", "Syntax error"),
        ("SELECT * FROM nothing", "nothing"),
        ("SELECT * FROM parquet.`/etc`", "parquet"),
        ("SELECT reflect('java.lang.System', 'getProperty', 'user.home')", "methods of Java"),
        ("SELECT `reflect`('java.lang.System', 'getProperty', 'user.home')", "methods of Java"),
        ("SELECT TRANSFORM('a') USING 'id' AS (x STRING)", "through a command"),
        ("SELECT from_protobuf(CAST('a' AS BINARY), 'm', '/etc/hostname')", "may not call 'from_protobuf'"),
    ],
)
def test_what_is_no_query_of_the_tables_is_refused(spark: SparkSession, lake: Lake, sql: str, reason: str) -> None:
    with (
        pinned_session(spark, lake, TABLES, vector_of(lake, TABLES, "now")) as view,
        pytest.raises(QueryRefused, match=reason) as refused,
    ):
        rows_of(view, sql)
    assert "\n" not in str(refused.value)


BEYOND_THE_TEXT = (
    "SELECT x FROM (SELECT TRANSFORM('a') USING 'id' AS (x STRING))",
    "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT system.builtin.`java_method`('java.lang.System', 'getProperty', 'user.home')",
    "SELECT call_function('reflect', 'java.lang.System', 'getProperty', 'user.home')",
    "SELECT from_protobuf(CAST('a' AS BINARY), 'm', '/etc/hostname')",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM parquet.`/etc`",
    "SELECT '\\n== Analyzed Logical Plan ==', reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT '\\n== Parsed Logical Plan ==', 1",
    "SELECT 1 AS `\n== Analyzed Logical Plan ==`, reflect('java.lang.System', 'getProperty', 'user.home')",
)
WITHIN_THE_PLAN = (
    "SELECT id FROM observations_of TABLESAMPLE (10 PERCENT)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "SELECT * FROM range(3) UNION SELECT 1 EXCEPT SELECT 2 INTERSECT SELECT 3",
    "SELECT * FROM VALUES (1, 2), (3, 4) AS v(a, b) ORDER BY ALL LIMIT 3 OFFSET 1",
    "SELECT count(*) FROM range(9) GROUP BY GROUPING SETS ((id), ()) HAVING count(*) > 0",
    "SELECT /*+ BROADCAST(r) */ sum(id) OVER w FROM range(3) r WINDOW w AS (ORDER BY id)",
    "SELECT * FROM range(3) PIVOT (count(*) FOR id IN (1, 2)), LATERAL (SELECT 1) LATERAL VIEW explode(array(1)) AS e",
    "SELECT transform(array(1), x -> x + 1), (SELECT max(id) FROM range(2)), id::string LIKE 'a%' FROM range(2)",
    "SELECT id FROM range(2) WHERE id IN (SELECT 1) AND EXISTS (SELECT 1) DISTRIBUTE BY id SORT BY id",
)


@pytest.mark.parametrize("number", range(len(BEYOND_THE_TEXT)))
def test_sparks_own_reading_of_a_query_is_judged_as_well__S5(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Here the text is not judged, as if a way round that had been found."""
    monkeypatch.setattr("sda_platform.history.pinned_session.refuse_calls", lambda _sql: None)
    with (
        pinned_session(spark, lake, TABLES, vector_of(lake, TABLES, "now")) as view,
        pytest.raises(QueryRefused),
    ):
        view.sql(BEYOND_THE_TEXT[number])


def test_a_query_has_no_variable_of_the_engine__S5(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the text is not judged. The token of the engine is in its environment."""
    monkeypatch.setattr("sda_platform.history.pinned_session.refuse_calls", lambda _sql: None)
    with pinned_session(spark, lake, TABLES, vector_of(lake, TABLES, "now")) as view:
        text = "${env:HOME} ${system:user.dir} ${spark.app.name}"
        assert rows_of(view, f"SELECT '{text}' AS found") == [{"found": text}]


def test_queries_of_many_shapes_pass(spark: SparkSession, lake: Lake) -> None:
    with pinned_session(spark, lake, TABLES, vector_of(lake, TABLES, "now")) as view:
        for sql in WITHIN_THE_PLAN:
            view.sql(sql.replace("id FROM observations_of", "observation_id FROM observations"))


def test_the_plan_names_filters_and_files__DL5_A2_DL5_A3(spark: SparkSession, lake: Lake) -> None:
    with pinned_session(spark, lake, TABLES, vector_of(lake, TABLES, "now")) as view:
        window = "sensor_time_ns >= 3600 AND sensor_time_ns < 3700"
        assert rows_of(view, f"SELECT count(*) AS n FROM observations WHERE {window}") == [{"n": 100}]
        plan = view.plan
        assert plan is not None
        for text in ("FileScan parquet", "/observations]", "GreaterThanOrEqual(sensor_time_ns,3600)"):
            assert text in plan.physical
        assert (plan.files_kept, plan.files_total) == (1, 3)
        rows_of(view, "SELECT count(*) AS n FROM observations WHERE rand(7) < 0.5 AND sensor_time_ns < 3600")
        assert view.plan is not None
        assert "rand(7)" in view.plan.physical
        assert (view.plan.files_kept, view.plan.files_total) == (1, 3)


ENDLESS = "SELECT sum(hash(id)) FROM range(1000000000000)"


@pytest.mark.parametrize(
    ("limits", "sql", "reason"),
    [
        (SqlLimits(read_gb=1e-6), "SELECT * FROM observations", r"would read .* GB in 3 files, and may read 1e-06 GB"),
        (SqlLimits(rows=10), "SELECT * FROM observations", "more than 10 rows"),
        (SqlLimits(timeout_s=0.5), ENDLESS, r"took longer than 0\.5 s and was stopped"),
    ],
)
def test_a_query_keeps_to_its_limits(spark: SparkSession, lake: Lake, limits: SqlLimits, sql: str, reason: str) -> None:
    vector = vector_of(lake, TABLES, "now")
    opened = pinned_session(spark, lake, TABLES, vector, limits=limits)
    with opened as view, pytest.raises(QueryRefused, match=reason):
        rows_of(view, sql)


def test_a_notebook_has_several_moments_and_learns_what_a_query_spilled__DL5_A3_DL5_A4(
    lake: Lake, address: str, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "sda_platform_tests.support.notebook_on_spark",
        address,
        lake.uri,
        str(tmp_path),
        EVENT,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["counts"] == [3, 2, 3]
    assert (report["rows"], report["after"]) == (300, [{"n": 3}])
    assert report["spilled"] > 0
    assert report["refused"] == "the query took longer than 2 s and was stopped"


def test_the_command_answers_once_and_in_a_shell(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _session: None)  # the session is that of all tests
    runner, options = CliRunner(), {"SDA_LAKE": lake.uri, "SDA_HOME": str(tmp_path), "SDA_SPARK_REMOTE": "local"}
    sql = "SELECT count(*) AS n FROM observations WHERE sensor_time_ns < 3600"
    once = runner.invoke(main, ["lake", "sql", sql, "--plan"], env=options)
    assert once.exit_code == 0, once.output
    assert "1 of 3 files kept" in once.output
    typed = ".tables\nSELECT max(range_m) AS far\nFROM observations;\nSELECT nothing;\n.plan\n.columns tracks\n.quit\n"
    shell = runner.invoke(main, ["lake", "sql"], input=typed, env=options)
    assert shell.exit_code == 0, shell.output
    for text in ("orbital_catalog", "far", "Error: ", "3 of 3 files kept", "norad_id bigint"):
        assert text in shell.output
