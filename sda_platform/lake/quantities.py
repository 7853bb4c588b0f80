"""Columns that hold a physical quantity or an instant."""

from typing import Any

import pandera.pyspark as pa


def quantity(unit: str, description: str, **rules: Any) -> Any:
    """A column of a table's model whose values are in ``unit``; ``rules`` are pandera's (``ge``, ``nullable``, …)."""
    return pa.Field(description=description, metadata={"unit": unit}, **rules)
