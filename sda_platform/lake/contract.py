"""The contract check: do rows keep what their table's model promises?

The rules are the model's own pandera checks, evaluated on Arrow columns, so that they can name the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table

_EXAMPLES = 3


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
    return [violation for column in table.columns for violation in _of_column(table, column, rows)]


def schema_differences(table: Table, actual: pa.Schema) -> list[str]:
    """How the stored columns differ from the declared ones."""
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


def _of_column(table: Table, column: Column, rows: pa.Table) -> Iterator[Violation]:
    values = rows.column(column.name)
    if not column.nullable and values.null_count:
        yield _violation(table, column.name, "not null", rows, pc.is_null(values))
    for rule in column.rules:
        broken = pc.fill_null(pc.invert(_holds(rule.name, rule.statistics, values)), False)
        if pc.any(broken).as_py():
            yield _violation(table, column.name, str(rule.error), rows, broken)


def _holds(name: str, facts: dict[str, Any], values: pa.ChunkedArray) -> pa.ChunkedArray:
    match name:
        case "greater_than":
            return pc.greater(values, facts["min_value"])
        case "greater_than_or_equal_to":
            return pc.greater_equal(values, facts["min_value"])
        case "less_than":
            return pc.less(values, facts["max_value"])
        case "less_than_or_equal_to":
            return pc.less_equal(values, facts["max_value"])
        case "isin":
            known = pc.is_in(values, pa.array(list(facts["allowed_values"]), values.type))
            return pc.if_else(pc.is_null(values), pa.scalar(None, pa.bool_()), known)
        case _:
            raise NotImplementedError(
                f"the contract check does not support pandera's rule {name}: add it to the check, or remove the rule"
            )


def _violation(table: Table, column: str, rule: str, rows: pa.Table, broken: pa.ChunkedArray) -> Violation:
    names = [*(k for k in table.key if k != column), column]
    guilty = rows.select([n for n in dict.fromkeys(names) if n != COMMIT_SEQUENCE]).filter(broken)
    examples = tuple(str(row) for row in guilty.slice(0, _EXAMPLES).to_pylist())
    return Violation(column, rule, guilty.num_rows, examples)
