"""Plans as Spark prints them: what Spark has shortened or what looks like a heading is refused, too."""

import pytest

from sda_platform.history.errors import QueryRefused
from sda_platform.history.parsed_plan import refuse_foreign_parts

REST = "\n\n== Analyzed Logical Plan ==\nx\n\n== Optimized Logical Plan ==\nx\n\n== Physical Plan ==\nx\n"
QUERY = """\
'Project [*]
+- 'SubqueryAlias __auto_generated_subquery_name
   +- 'Join Inner, ('a.id = 'b.id)
      :- 'SubqueryAlias a
      :  +- 'UnresolvedRelation [observations], [], false
      +- 'Project [unresolvedalias('max('id)), it's (not a call)]
         +- 'UnresolvedTableValuedFunction [range], [3], false"""


def explained(plan: str) -> str:
    return f"== Parsed Logical Plan ==\n{plan}{REST}"


def test_a_query_of_tables_passes() -> None:
    refuse_foreign_parts(explained(QUERY))


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("'Join Inner", "'ScriptTransformation id"),
        ("'Join Inner", "'FutureOperator"),
        (":- 'SubqueryAlias a", ":- RelationV2[a#1]"),
        ("'max('id)", "'reflect(a, b)"),
        ("'max('id)", "'system.builtin.java_method(a, b)"),
        ("'max('id)", "'`any name`('id)"),
        ("[observations]", "[parquet, /etc]"),
        ("[observations]", "[spark_catalog, default, t]"),
        ("[range]", "[python_worker_logs]"),
        ("it's", "\n== Analyzed Logical Plan =="),
        ("it's", "\n== Physical Plan =="),
        ("it's", "\nit's"),
        ("it's", "... 2 more fields"),
    ],
)
def test_what_is_on_no_list_is_refused__S5(part: str, other: str) -> None:
    assert part in QUERY
    with pytest.raises(QueryRefused):
        refuse_foreign_parts(explained(QUERY.replace(part, other)))
