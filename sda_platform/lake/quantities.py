"""Columns that hold a physical quantity, an instant, or lists of numbers.

Columns of floating-point numbers are finite where they are not null: every table has that rule.
"""

from typing import Any

import pandera.pyspark as pa
from pyspark.sql import types as T

_NUMBERS = {"elementType": T.DoubleType(), "containsNull": True}
_TEXTS = {"elementType": T.StringType(), "containsNull": True}


def quantity(unit: str, description: str, **rules: Any) -> Any:
    """A column of a table's model whose values are in ``unit``; ``rules`` are pandera's (``ge``, ``nullable``, …)."""
    return pa.Field(description=description, metadata={"unit": unit}, **rules)


def number_list(length: int, description: str, *, several: bool = False, nullable: bool = False) -> Any:
    """A column of lists of ``length`` finite numbers, or of ``several`` times as many."""
    rule = {"length": length, "several": several}
    return pa.Field(dtype_kwargs=_NUMBERS, description=description, nullable=nullable, numbers=rule)


def covariance_list(size: int, description: str, *, several: bool = False, nullable: bool = False) -> Any:
    """A column of covariances (size, size), lower triangles by rows, one in each list or ``several``.

    They are finite and have no negative eigenvalue.
    """
    rule = {"size": size, "several": several}
    return pa.Field(dtype_kwargs=_NUMBERS, description=description, nullable=nullable, covariance=rule)


def text_list(description: str, *, least: int = 0) -> Any:
    """A column of lists of at least ``least`` texts."""
    return pa.Field(dtype_kwargs=_TEXTS, description=description, filled={"least": least})
