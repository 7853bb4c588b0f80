"""The contract check: do rows keep what their table's model promises?

The rules are the model's own pandera checks. Where some row breaks one (`quick_contract`), pandera's Polars backend
evaluates them on the Arrow rows, and names the rows.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandera.polars as pandera
import polars as pl
import pyarrow as pa
from pandera.errors import SchemaErrors

from sda_platform.lake.quick_contract import keeps_contract
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

_EXAMPLES = 3
_EXAMPLE_LENGTH = 200
_NULL: Final = "not_nullable"


@dataclass(frozen=True)
class Violation:
    """One broken rule: which column, what it promises, how many rows break it, and a few of their keys."""

    column: str
    rule: str
    rows: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.column}: {self.rows} rows break {self.rule}, such as {'; '.join(self.examples)}"


def violations(table: Table, rows: pa.Table) -> list[Violation]:
    """Every rule of the model that some of ``rows`` break. ``rows`` must have all declared columns."""
    return [_violation(table, *which, rows, broken) for which, broken in _failures(table, rows).items()]


def reasons(table: Table, rows: pa.Table) -> Mapping[int, list[str]]:
    """Return the rows of ``rows`` that break a rule of the model, by number, each with what it breaks."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for (column, rule), broken in _failures(table, rows).items():
        for number in broken:
            found[number].append(f"{column} breaks {rule}")
    return found


def schema_differences(table: Table, actual: pa.Schema) -> list[str]:
    """Return how the stored columns differ from the declared ones."""
    declared = {f.name: f.type for f in table.arrow_schema}
    found = {f.name: f.type for f in actual}
    return [
        f"{name}: declared {declared.get(name, 'nothing')}, stored {found.get(name, 'nothing')}"
        for name in {**declared, **found}
        if not _same_type(declared.get(name), found.get(name))
    ]


def _same_type(declared: pa.DataType | None, found: pa.DataType | None) -> bool:
    if declared is None or found is None or pa.types.is_list(declared) != pa.types.is_list(found):
        return False
    return bool(declared.value_type == found.value_type) if pa.types.is_list(declared) else bool(declared == found)


def _failures(table: Table, rows: pa.Table) -> dict[tuple[str, str], list[int]]:
    return {} if keeps_contract(table, rows) else validated(table, rows)


def validated(table: Table, rows: pa.Table) -> dict[tuple[str, str], list[int]]:
    """By column and rule the numbers of the rows that break it, by pandera; columns that ``rows`` lack are left out."""
    ruled = [c for c in table.columns if c.name in rows.column_names and (c.rules or not c.nullable)]
    schema = pandera.DataFrameSchema(
        {c.name: pandera.Column(None, checks=list(c.rules), nullable=c.nullable) for c in ruled}
    )
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    try:
        schema.validate(pl.DataFrame(pl.from_arrow(rows.select([c.name for c in ruled]))), lazy=True)
    except SchemaErrors as errors:
        for case in errors.failure_cases.iter_rows(named=True):
            rule = "not null" if case["check"] == _NULL else case["check"]
            found[case["column"], rule].append(case["index"])
    return found


def _violation(table: Table, column: str, rule: str, rows: pa.Table, broken: Sequence[int]) -> Violation:
    names = [*(k for k in table.key if k != column), column]
    guilty = rows.select([n for n in dict.fromkeys(names) if n != COMMIT_SEQUENCE]).take(pa.array(broken[:_EXAMPLES]))
    return Violation(column, rule, len(broken), tuple(str(row)[:_EXAMPLE_LENGTH] for row in guilty.to_pylist()))
