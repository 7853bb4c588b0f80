"""A query on Spark calls functions of columns and nothing else, however it is written."""

import pytest

from sda_platform.history.errors import QueryRefused
from sda_platform.history.spark_query_text import allowed, at_mission_time, called, refuse_calls

REFUSED = (
    "SELECT reflect('java.lang.System', 'exit', '1')",
    "SELECT `reflect`('java.lang.System', 'exit', '1')",
    "SELECT reflect/**/('java.lang.System', 'exit', '1')",
    "SELECT reflect -- x\n('java.lang.System', 'exit', '1')",
    "SELECT system.builtin.reflect('a', 'b')",
    "SELECT `system`.`builtin`.`Java_Method`('a', 'b')",
    "SELECT TRY_REFLECT('a', 'b')",
    "SELECT r'\\' , reflect('a', 'b'), '\\''",
    "SELECT '\\'', java_method('a','b') -- '",
    "SELECT /* /* */ reflect('a','b') */ 1",
    "SELECT /* a */ 1 /* b */",
    "SELECT TRANSFORM('a') USING 'id' AS (x STRING)",
    "SELECT TRANSFORM(a) USING/**/'id' FROM t",
    'FROM t MAP a USING "cat" AS b',
    "FROM t REDUCE a USING r'cat'",
    "SELECT from_protobuf(a, 'm', '/etc/passwd')",
    "SELECT * FROM python_worker_logs()",
    "SELECT call_function('reflect', 'a', 'b')",
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"http://127.0.0.1/x\"><a/>', 'a')",
    "SELECT from_xml('<p/>', 'a STRING', map('rowValidationXSDPath', 'file:///etc/hostname'))",
    "SELECT `schema_of_xml`('<p/>', map('rowValidationXSDPath', 'http://127.0.0.1/x'))",
    "SELECT my_udf(a) FROM t",
    "SELECT '${env:SPARK_CONNECT_AUTHENTICATE_TOKEN}'",
    'SELECT "${system:user.dir}" FROM t',
    "SELECT `my udf`(a) FROM t",
)
ALLOWED = (
    "SELECT count(*), max(tca_time_ns) FROM conjunction_alerts WHERE risk IN ('red', 'yellow')",
    "WITH near(a, b) AS (SELECT 1, 2) SELECT * FROM near AS n(c, d)",
    "SELECT * FROM tracks JOIN (SELECT norad_id FROM orbital_catalog) USING (norad_id)",
    "SELECT row_number() OVER (PARTITION BY norad_id ORDER BY epoch_time_ns) FROM tracks",
    "SELECT cast(norad_id AS string), CASE WHEN (a > 1) THEN (2) ELSE (3) END FROM (VALUES (1), (2)) t(a)",
    "SELECT transform(array(1, 2), x -> x + 1), aggregate(sequence(1, 3), 0, (s, x) -> s + x)",
    "SELECT percentile_approx(pc, 0.5), date_trunc('day', timestamp_seconds(1)) FROM t WHERE EXISTS (SELECT 1)",
    "SELECT 'it''s (not a call)', \"x(y)\" FROM t WHERE name LIKE '%(ZARYA)%'",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_runs_other_code_is_refused__DL5(sql: str) -> None:
    with pytest.raises(QueryRefused):
        refuse_calls(sql)


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_query_of_tables_is_allowed(sql: str) -> None:
    refuse_calls(sql)


def test_the_names_before_parentheses_are_found_in_any_writing() -> None:
    sql = "SELECT a.`b`.c (1), D(2), 'e'(3), `f` /* x */ (4) FROM g"
    assert list(called(sql)) == ["c", "d", "f"]


def test_functions_that_run_code_or_read_files_are_not_on_the_list() -> None:
    assert not {name for name in allowed() if "xml" in name or "xpath" in name}
    assert not {"reflect", "java_method", "try_reflect", "udf", "call_udf", "pandas_udf", "from_protobuf"} & allowed()
    assert {"count", "transform", "explode", "cast"} <= allowed()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("now() - interval 3 day", "timestamp_micros(1) - interval 3 day"),
        ("Current_Timestamp, NOW ( )", "timestamp_micros(1), timestamp_micros(1)"),
        ("current_date() = curdate()", "CAST(timestamp_micros(1) AS DATE) = CAST(timestamp_micros(1) AS DATE)"),
        ("'now()', t.now, now, `now`, curdate -- now()", "'now()', t.now, now, `now`, curdate -- now()"),
    ],
)
def test_the_present_is_the_mission_time(sql: str, expected: str) -> None:
    assert at_mission_time(f"SELECT {sql}", 1_000) == f"SELECT {expected}"
