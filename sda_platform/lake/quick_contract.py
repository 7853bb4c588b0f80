"""Whether rows keep their table's contract, for every commit: on Arrow columns, some ten times faster than pandera.

It only decides. Which rows break what is pandera's answer (`contract`); a property test holds both equal.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.lake.number_rules import are_covariances, are_filled, are_numbers
from sda_platform.lake.table import Column, Table


def keeps_contract(table: Table, rows: pa.Table) -> bool:
    """Return whether all ``rows`` keep every rule of their columns; columns that ``rows`` lack are left out."""
    return all(_keeps(column, rows[column.name]) for column in table.columns if column.name in rows.column_names)


def _keeps(column: Column, values: pa.ChunkedArray) -> bool:
    if not column.nullable and values.null_count:
        return False
    return all(_all_keep(rule.name, rule.statistics, values) for rule in column.rules)


def _all_keep(name: str, facts: dict[str, Any], values: pa.ChunkedArray) -> bool:
    match name:
        case "finite":
            return bool(np.isfinite(pc.drop_null(values).to_numpy()).all())
        case "numbers":
            return bool(are_numbers(values, **facts).all())
        case "covariance":
            return bool(are_covariances(values, **facts).all())
        case "filled":
            return bool(are_filled(values, **facts).all())
        case "isin":
            allowed = pa.array([*facts["allowed_values"], None], values.type)
            return bool(pc.all(pc.is_in(values, allowed), min_count=0).as_py())
        case "greater_than":
            kept = pc.greater(values, facts["min_value"])
        case "greater_than_or_equal_to":
            kept = pc.greater_equal(values, facts["min_value"])
        case "less_than":
            kept = pc.less(values, facts["max_value"])
        case "less_than_or_equal_to":
            kept = pc.less_equal(values, facts["max_value"])
        case _:
            raise NotImplementedError(
                f"the contract check does not support pandera's rule {name}: add it to the check, or remove the rule"
            )
    return pc.all(kept).as_py() is not False
