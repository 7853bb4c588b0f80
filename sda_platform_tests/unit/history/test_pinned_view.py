"""SQL over one version vector: rows and columns of then, refusals, and nothing that maintenance could change."""

import random
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, Field, TableFeatures
from deltalake.exceptions import DeltaProtocolError
from deltalake.schema import PrimitiveType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, RECEIVED_CDMS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.history.errors import QueryRefused, VersionExpired
from sda_platform.history.explanation import explain_alert
from sda_platform.history.footers import table_layout
from sda_platform.history.moments import vector_of
from sda_platform.history.pinned_files import Projection, pinned_files
from sda_platform.history.pinned_view import Limits, PinnedView
from sda_platform.history.pruning import Combination, Condition
from sda_platform.history.table_diff import table_diff
from sda_platform.history.table_files import TableFiles
from sda_platform.history.version_vector import VersionVector, snapshot_at
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import commit as door
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of, with_delta_rs
from sda_platform_tests.support.sampling import number
from sda_platform_tests.unit.history.lakes import EVENT, TABLES, add, approach, decide, elements


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One decision, and what became known after it."""
    lake = lake_at(tmp_path)
    add(lake, ELEMENT_SETS, elements(7, 100), elements(8, 100, record=1))
    add(lake, ORBITAL_CATALOG, elements(7, 100), elements(8, 100, record=1))
    decide(lake, collision_probability=2e-4)
    add(lake, ELEMENT_SETS, elements(7, 200, "late"))
    add(lake, ORBITAL_CATALOG, elements(7, 200, "late"))
    add(lake, CONJUNCTION_ALERTS, approach(op="retract"))
    return lake


def compact_and_vacuum(lake: Lake) -> None:
    """What the maintenance does to every table, with no retention at all."""
    for table in TABLES.values():
        if lake.log(table).version() >= 0:
            delta = DeltaTable(lake.log(table).uri)
            delta.optimize.compact()
            delta.vacuum(0, dry_run=False, enforce_retention_duration=False)


def epochs(lake: Lake, as_of: str, projection: Projection = "snapshot_time") -> dict[int, int]:
    view = PinnedView(lake, TABLES, vector_of(lake, TABLES, as_of), projection)
    found = view.rows("SELECT norad_id, max(epoch_time_ns) AS epoch FROM element_sets GROUP BY ALL").to_pylist()
    return {row["norad_id"]: row["epoch"] for row in found}


def test_one_query_reads_every_table_as_the_decision_read_it__MV4(lake: Lake) -> None:
    sql = """SELECT a.risk, c.epoch_time_ns, count(e.norad_id) AS sets
             FROM Active.conjunction_alerts a JOIN orbital_catalog c ON c.norad_id = a.norad_id_1
             JOIN element_sets e ON e.norad_id = c.norad_id GROUP BY ALL"""
    then = PinnedView(lake, TABLES, vector_of(lake, TABLES, EVENT)).rows(sql)
    assert then.to_pylist() == [{"risk": "red", "epoch_time_ns": 100, "sets": 1}]
    now = PinnedView(lake, TABLES, vector_of(lake, TABLES)).rows(sql)
    assert now.to_pylist() == []


def test_a_pinned_read_of_rows_that_stay_survives_any_maintenance__DL4_I3(lake: Lake) -> None:
    before = epochs(lake, EVENT)
    compact_and_vacuum(lake)
    assert epochs(lake, EVENT) == before == {7: 100, 8: 100}
    assert epochs(lake, "now") == {7: 200, 8: 100}


def test_a_replaced_version_that_vacuum_removed_is_refused_with_the_nearest__DL4_A2(lake: Lake) -> None:
    vector = vector_of(lake, TABLES, EVENT)
    compact_and_vacuum(lake)
    with pytest.raises(VersionExpired, match="data files of it were removed") as refused:
        PinnedView(lake, TABLES, vector).rows("SELECT * FROM orbital_catalog")
    assert (refused.value.table, refused.value.nearest_version) == ("orbital_catalog", 1)


def narrower(table: Table, *columns: str) -> Table:
    """``table`` as an earlier version of the platform declared it, without these columns."""
    earlier = replace(table)
    vars(earlier)["columns"] = tuple(c for c in table.columns if c.name not in columns)  # a cached property
    return earlier


def test_a_column_that_came_later_is_absent_then_and_null_with_the_columns_of_today__DL4_A3(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    earlier = narrower(OBSERVATIONS, "reprocess_count")
    commit(lake, earlier, [{"observation_id": "old"}])
    DeltaTable(lake.log(OBSERVATIONS).uri).alter.add_columns([Field("reprocess_count", PrimitiveType("long"))])
    commit(lake, OBSERVATIONS, [{"observation_id": "new", "reprocess_count": 2}])
    tables = {"observations": OBSERVATIONS}
    then = vector_of(lake, tables, "observations=0")
    assert "reprocess_count" not in PinnedView(lake, tables, then).rows("FROM observations").column_names
    with pytest.raises(QueryRefused, match="reprocess_count"):
        PinnedView(lake, tables, then).rows("SELECT reprocess_count FROM observations")
    sql = "SELECT observation_id, reprocess_count FROM observations ORDER BY ALL"
    projected = PinnedView(lake, tables, then, "current").rows(sql)
    assert projected.to_pylist() == [{"observation_id": "old", "reprocess_count": None}]
    assert PinnedView(lake, tables, vector_of(lake, tables)).rows(sql).num_rows == 2


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE orbital_catalog", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("SELECT (SELECT count(*) FROM read_csv('/etc/hostname'))", "read_csv is disabled"),
        ("SELECT * FROM query('SELECT 1')", "query is disabled"),
        ("SELECT * FROM '/etc/hostname'", "the name of a file"),
        ("WITH a AS (SUMMARIZE 'catalog.parquet') FROM a", "the name of a file"),
        ("SELECT 1 UNION ALL SELECT * FROM part.snappy.parquet", "the name of a file"),
        ("SUMMARIZE other.orbital_catalog", "the name of a file"),
        ("PIVOT orbital_catalog ON norad_id", "one SELECT"),
        ("SELECT nothing FROM orbital_catalog", "nothing"),
        ("SELECT * FROM alert_deliveries", "alert_deliveries is not part of the decision on alert 0934bc66@0"),
        ("SELECT count(*) FROM range(1000000000) a, range(1000) b WHERE a.range % 7 = b.range", "longer than 0.2 s"),
        ("SELECT list(range) FROM range(100000000)", "longer than|more than 64 MB"),
    ],
)
def test_a_query_that_may_not_or_cannot_run_is_refused_with_the_reason(lake: Lake, sql: str, reason: str) -> None:
    limits = Limits(memory_mb=64, timeout_s=0.2 if "longer than" in reason else 60.0)
    view = PinnedView(lake, TABLES, vector_of(lake, TABLES, EVENT), limits=limits)
    with pytest.raises(QueryRefused, match=reason):
        view.rows(sql)


TRICKY = (
    "SELECT count(*) AS n FROM observations WHERE sensor_time_ns >= 20 AND sensor_time_ns < 30",
    "SELECT count(*) n FROM observations o WHERE 21 > o.sensor_time_ns OR source_id = 'radar-3' OR record_number < 0",
    "SELECT count(*) AS n FROM observations WHERE sensor_time_ns IN (11, 31) AND source_id IS NOT NULL",
    "SELECT count(*) n FROM observations WHERE (sensor_time_ns < 99999999999999999999 OR range_m > 5) AND range_m > 3",
    "SELECT count(*) AS n FROM observations WHERE source_id = 'radar''s' OR sensor_time_ns < '12'",
    "SELECT count(*) AS n FROM observations WHERE sensor_time_ns < 15 UNION ALL SELECT count(*) FROM observations",
    "SELECT count(*) AS n FROM observations a JOIN observations b USING (record_number) WHERE a.sensor_time_ns < 15",
    """WITH observations AS (SELECT * FROM main.observations WHERE sensor_time_ns > 15)
    SELECT count(*) AS n FROM observations WHERE sensor_time_ns < 25""",
    """SELECT count(*) AS n FROM observations o
    WHERE EXISTS (SELECT 1 FROM observations i WHERE o.sensor_time_ns < 15 AND i.sensor_time_ns = 33)""",
    "SELECT sensor_time_ns + 20 AS sensor_time_ns FROM observations WHERE sensor_time_ns < 12 ORDER BY ALL",
)


@pytest.fixture(params=["by DuckDB", "through Arrow"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads the files: DuckDB those of this machine, Arrow those of an object store."""
    if request.param == "through Arrow":
        monkeypatch.setattr(TableFiles, "paths", lambda _files, _condition: None)
    return str(request.param)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Four files of observations, the last of which came after the pinned commit."""
    lake = lake_at(tmp_path_factory.mktemp("observed") / "the operator's lake")
    for file in range(4):
        rows = [
            {"observation_id": f"{file}-{n}", "sensor_time_ns": 10 * file + n, "source_id": f"radar-{file}",
             "record_number": n, "range_m": float("nan") if n == 4 else 1.0 + file}
            for n in range(10)
        ]  # fmt: skip
        commit(lake, OBSERVATIONS, rows)
    return lake


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("sql", TRICKY)
def test_files_that_a_query_passes_over_hold_no_row_of_its_result__DL3_I1_DL3_I2(observed: Lake, sql: str) -> None:
    tables = {"observations": OBSERVATIONS}
    view = PinnedView(observed, tables, vector_of(observed, tables, "observations=2"))
    with duckdb.connect() as plain:
        everything = observed.log(OBSERVATIONS).rows_of((0, 3))
        plain.register("everything", everything)
        plain.execute("CREATE TABLE observations AS FROM everything")
        expected = plain.sql(sql).to_arrow_table().to_pylist()
    assert view.rows(sql).to_pylist() == expected
    assert view.rows("SELECT count(*) AS n FROM observations").to_pylist() == [{"n": 30}], "the next has other files"


def test_a_query_looks_only_at_files_that_its_conditions_keep(observed: Lake) -> None:
    log = observed.log(OBSERVATIONS)
    files = pinned_files(log, snapshot_at(log, 2), "current")
    one = Combination("or", (Condition("sensor_time_ns", "<", 10),))
    unclear = Combination("or", (*one.parts, Condition("range_m", "<", 0)))
    kept = [len(list(files.dataset(each).get_fragments())) for each in (one, unclear, None)]
    assert kept == [1, 3, 3], "the last file came after the pinned commit"


_COLUMNS = ("sensor_time_ns", "record_number", "reprocess_count", "range_m")
_CONDITIONS: st.SearchStrategy[str] = st.recursive(
    st.one_of(
        st.builds(
            "{} {} {}".format,
            st.sampled_from(_COLUMNS),
            st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
            st.integers(-2, 60),
        ),
        st.builds("{} IS {}NULL".format, st.sampled_from(_COLUMNS), st.sampled_from(["", "NOT "])),
        st.builds("{} IN (7, {}, 31)".format, st.sampled_from(_COLUMNS), st.integers(-2, 60)),
        st.builds("sensor_time_ns + {} > 40".format, st.integers(-9, 9)),
        st.builds("source_id = 'radar-{}'".format, st.integers(0, 6)),
    ),
    lambda parts: st.one_of(
        st.builds("({} AND {})".format, parts, parts),
        st.builds("({} OR {})".format, parts, parts),
        st.builds("NOT {}".format, parts),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def with_nulls(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Seven files of observations, columns of which have no nulls, some or only nulls."""
    lake, chance = lake_at(tmp_path_factory.mktemp("with_nulls")), random.Random(5)
    for file in range(7):
        rows = [
            {"observation_id": f"{file}-{n}", "sensor_time_ns": 10 * file + n, "source_id": f"radar-{file}",
             "record_number": chance.choice([None, 5 * file + n]), "reprocess_count": file if file % 2 else None,
             "range_m": chance.choice([float("nan"), 10.0 * file])}
            for n in range(8)
        ]  # fmt: skip
        commit(lake, OBSERVATIONS, rows)
    return lake


@pytest.mark.usefixtures("reader")
@given(conditions=st.lists(_CONDITIONS, min_size=8, max_size=8))
@settings(
    max_examples=number(in_soak=50, in_suite=6),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it replaces the reader for all examples alike
)
def test_the_rows_of_any_condition_are_those_of_a_scan_of_all_files__DL3_I1_DL3_I2(
    with_nulls: Lake, conditions: list[str]
) -> None:
    tables = {"observations": OBSERVATIONS}
    view = PinnedView(with_nulls, tables, vector_of(with_nulls, tables, "observations=5"))
    with duckdb.connect() as plain:
        plain.register("observations", with_nulls.log(OBSERVATIONS).rows_of((0, 6)))
        for condition in conditions:
            sql = f"SELECT observation_id FROM observations WHERE {condition} ORDER BY ALL"
            joined = f"SELECT observation_id FROM observations JOIN (SELECT 1) ON true WHERE {condition} ORDER BY ALL"
            expected = plain.sql(sql).to_arrow_table().to_pylist()
            assert view.rows(sql).to_pylist() == expected, condition
            assert view.rows(joined).to_pylist() == expected, "from all files of the version"


def test_arrow_passes_over_files_by_their_description__DL3_I2(observed: Lake) -> None:
    log = observed.log(OBSERVATIONS)
    files = pinned_files(log, snapshot_at(log, 2)).dataset()
    for where, kept in (
        (ds.field("sensor_time_ns") < 10, 1),
        (ds.field("sensor_time_ns") >= 15, 2),
        (ds.field("reprocess_count") > 0, 0),
        (ds.field("range_m") < 0, 3),
    ):
        assert len(list(files.get_fragments(where))) == kept, str(where)


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT count(*) AS n FROM OBSERVATIONS", 40),
        ("SELECT count(*) AS n FROM Observations WHERE Sensor_Time_NS < 10", 10),
        (
            "SELECT count(*) AS n FROM observations a JOIN OBSERVATIONS b USING (Observation_Id) WHERE a.range_m < 0",
            0,
        ),
        ("SELECT count(*) AS n FROM (FROM observations WHERE sensor_time_ns < 10 UNION ALL FROM OBSERVATIONS)", 50),
        ("SELECT count(*) AS n FROM ACTIVE.Fused_Tracks", 0),
    ],
)
def test_names_in_a_query_are_of_any_case__DL5(observed: Lake, sql: str, count: int) -> None:
    tables = {table.name: table for table in (OBSERVATIONS, FUSED_TRACKS)}
    view = PinnedView(observed, tables, vector_of(observed, tables))
    assert view.rows(sql).to_pylist() == [{"n": count}]


@pytest.mark.parametrize("condition", ["norad_id = 7", "norad_id IS NULL", "norad_id IS NOT NULL", "norad_id IN (7)"])
def test_a_filtered_query_of_a_table_whose_commits_have_no_rows_finds_none(tmp_path: Path, condition: str) -> None:
    lake = lake_at(tmp_path)
    tables = {table.name: table for table in (FUSED_TRACKS, TRACKS)}
    for table in tables.values():
        add(lake, table)
    view = PinnedView(lake, tables, vector_of(lake, tables))
    for name in tables:
        assert view.rows(f"SELECT * FROM {name} WHERE {condition}").num_rows == 0


def test_only_the_files_that_are_read_are_named_to_duckdb(observed: Lake) -> None:
    log = observed.log(OBSERVATIONS)
    files = pinned_files(log, snapshot_at(log, 2))
    (third,) = set(DeltaTable(log.uri, 2).file_uris()) - set(DeltaTable(log.uri, 1).file_uris())
    assert files.paths(Condition("sensor_time_ns", ">=", 20)) == [unquote(third)]


def test_a_query_reads_no_file_of_the_lake_by_its_name(observed: Lake) -> None:
    """Such a file can hold rows that came after the pinned commit."""
    log = observed.log(OBSERVATIONS)
    tables = {"observations": OBSERVATIONS}
    view = PinnedView(observed, tables, vector_of(observed, tables, "observations=2"))
    file = unquote(DeltaTable(log.uri).file_uris()[0]).replace("'", "''")
    *first, last = file.replace("''", "'").split(".")
    named = [f'"{".".join(first)}"."{last}"', ".".join(f'"{part}"' for part in (*first, last))]
    read = [f"'{file}'", f"read_parquet('{file}')", f"(SELECT 1 WHERE 1 IN (FROM parquet_scan(['{file}'])))"]
    for source in (*read, *named, *(f"(SUMMARIZE {name})" for name in named)):
        with pytest.raises(QueryRefused, match="a query reads tables"):
            view.rows(f"SELECT * FROM {source}")


def test_a_table_with_features_that_change_its_files_is_left_to_delta_rs(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    features = [TableFeatures.DeletionVectors]
    DeltaTable(lake.log(OBSERVATIONS).uri).alter.add_feature(features, allow_protocol_versions_increase=True)
    tables = {"observations": OBSERVATIONS}
    with pytest.raises(DeltaProtocolError, match="deletionVectors"):
        PinnedView(lake, tables, vector_of(lake, tables)).rows("FROM observations")


def test_a_query_whose_time_is_over_before_it_runs_is_refused(observed: Lake) -> None:
    tables = {"observations": OBSERVATIONS}
    view = PinnedView(observed, tables, vector_of(observed, tables), limits=Limits(timeout_s=0.0))
    with pytest.raises(QueryRefused, match="longer than 0 s"):
        view.rows("SELECT count(*) FROM observations")


def test_a_result_comes_in_batches_whatever_its_size__DL4_F5(lake: Lake) -> None:
    batches = list(PinnedView(lake, TABLES, vector_of(lake, TABLES)).batches("SELECT * FROM range(20000)"))
    assert batches[0].num_rows == 0
    assert max(b.num_rows for b in batches) <= 8_192
    assert pa.Table.from_batches(batches).num_rows == 20_000


def test_no_thread_of_a_query_holds_its_connection_after_the_result(lake: Lake) -> None:
    before = set(threading.enumerate())
    view = PinnedView(lake, TABLES, vector_of(lake, TABLES))
    view.rows("SELECT 1")
    assert not {each for each in threading.enumerate() if isinstance(each, threading.Timer)} - before


def state(log: TableLog, version: int) -> VersionVector:
    return VersionVector({log.table.name: snapshot_at(log, version)})


def test_a_diff_lists_inserted_changed_and_deleted_rows_by_key_and_no_compaction__DL4_A7_F7(lake: Lake) -> None:
    catalogue = lake.log(ORBITAL_CATALOG)
    old, new = state(catalogue, 0), state(catalogue, 1)
    changed = [(d.change, d.key, d.columns) for d in table_diff(lake, ORBITAL_CATALOG, old, new)]
    named = ["segment_sha256", "segment_name", "epoch_time_ns"]
    assert changed == [("changed", {"norad_id": 7}, named)]
    nothing = VersionVector({ORBITAL_CATALOG.name: TableSnapshot(ORBITAL_CATALOG.name, -1, 0)})
    assert [d.change for d in table_diff(lake, ORBITAL_CATALOG, nothing, old)] == ["inserted", "inserted"]
    assert [d.change for d in table_diff(lake, ORBITAL_CATALOG, old, nothing)] == ["deleted", "deleted"]
    alerts = lake.log(CONJUNCTION_ALERTS)
    withdrawn = list(table_diff(lake, CONJUNCTION_ALERTS, state(alerts, 0), state(alerts, 1)))
    assert [(d.change, d.key) for d in withdrawn] == [("deleted", {"event_id": EVENT})]
    sets = lake.log(ELEMENT_SETS)
    compact_and_vacuum(lake)
    added = table_diff(lake, ELEMENT_SETS, state(sets, 0), state(sets, sets.version()))
    assert [(d.change, d.key["segment_sha256"]) for d in added] == [("inserted", "late")]
    again = table_diff(lake, ELEMENT_SETS, state(sets, 1), state(sets, sets.version()))
    assert list(again) == []


def test_a_diff_takes_neither_state_as_a_whole_and_keeps_to_its_memory__DL4_F5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_at(tmp_path)
    log = lake.log(OBSERVATIONS)
    nothing = VersionVector({OBSERVATIONS.name: TableSnapshot(OBSERVATIONS.name, -1, 0)})
    many = rows_of(OBSERVATIONS, [{}]).take(pa.array([0] * 40_000))
    ids = pa.array([f"{number:064d}" for number in range(many.num_rows)])
    many = many.set_column(many.column_names.index("observation_id"), "observation_id", ids)
    door.append(log, lake.plan(OBSERVATIONS), many.drop_columns(COMMIT_SEQUENCE), engine=with_delta_rs)
    monkeypatch.delattr(PinnedView, "rows")
    newest = state(log, log.version())
    found = table_diff(lake, OBSERVATIONS, nothing, newest)
    assert sum(change.change == "inserted" for change in found) == many.num_rows
    with pytest.raises(QueryRefused, match="needs more than 16 MB; select less"):
        list(table_diff(lake, OBSERVATIONS, nothing, newest, limits=Limits(memory_mb=16, threads=1)))


def test_an_explanation_shows_what_was_known_then_and_what_is_known_now(lake: Lake) -> None:
    found = explain_alert(lake, TABLES, EVENT[:6])
    facts = {fact.what: fact for fact in found.facts}
    alert, elements_of_7 = facts["alert"], facts["element set of 7"]
    assert alert.then is not None
    assert (alert.then["collision_probability"], alert.now) == (2e-4, None)
    assert "epoch_time_ns" in elements_of_7.changed
    assert facts["element set of 8"].changed == []
    assert facts["track of 7"].then is facts["track of 7"].now is None
    assert found.to_dict()["as_of"]["versions"]["orbital_catalog"] == 0


def test_an_explanation_shows_the_messages_and_the_ephemerides_that_may_have_decided(lake: Lake) -> None:
    decide(lake, collision_probability=2e-4, tca_time_ns=1000, sequence=1)
    about = {"norad_id_1": 8, "norad_id_2": 7, "stated_probability": 3e-4}
    for n, (tca_ns, who) in enumerate([(1000, "EARLIER"), (2000, "JSPOC"), (10**15, "OF ANOTHER PASS")]):
        add(lake, RECEIVED_CDMS, {**about, "tca_time_ns": tca_ns, "originator": who, "record_number": n})
    add(lake, EPHEMERIDES, {"norad_id": 7, "originator": "OPS", "segment_name": "plan.oem"})
    facts = {fact.what: fact for fact in explain_alert(lake, TABLES, f"{EVENT[:6]}@1").facts}
    assert facts["message"].then is facts["ephemeris of 7"].then is None
    assert facts["message"].now is not None and facts["message"].now["originator"] == "JSPOC"
    assert facts["ephemeris of 7"].now is not None and facts["ephemeris of 7"].now["segment_name"] == "plan.oem"
    assert "ephemeris of 8" not in facts, "what there never was is not listed"


def test_duckdb_and_polars_read_the_rows_of_a_version_directly__DL4_I3(lake: Lake) -> None:
    uri = lake.log(ORBITAL_CATALOG).uri
    ours = PinnedView(lake, TABLES, vector_of(lake, TABLES, EVENT)).rows("FROM orbital_catalog ORDER BY norad_id")
    files = DeltaTable(uri, version=0).file_uris()
    with duckdb.connect() as connection:
        by_duckdb = connection.sql("FROM read_parquet(?) ORDER BY norad_id", params=[files]).to_arrow_table()
    by_polars = pl.scan_delta(uri, version=0).sort("norad_id").collect()
    assert ours.to_pylist() == by_duckdb.to_pylist() == by_polars.to_dicts()


def test_the_layout_names_files_row_groups_and_the_encodings_of_columns__DL1_A5(lake: Lake) -> None:
    found = table_layout(lake.log(ELEMENT_SETS))
    assert (found.files, found.rows, found.small, found.healthy, found.row_groups) == (2, 3, 2, 0, 2)
    columns = {column.name: column for column in found.columns}
    assert set(columns) == set(ELEMENT_SETS.arrow_schema.names)
    assert {"PLAIN", "RLE_DICTIONARY"} <= columns["segment_name"].encodings
    assert found.size_bytes > sum(column.stored_bytes for column in found.columns) > 0
