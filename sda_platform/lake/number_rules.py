"""Rules for columns of numbers, beyond pandera's own: finite, lists of a length, covariances that are ones.

They are registered with pandera, so that models declare them as they do its own: ``covariance={"size": 6}``. A value
that is null keeps every rule: whether it may be null is another rule.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pandera import Check
from pandera.api.extensions import register_check_method
from pandera.api.polars.types import PolarsData

from sda_platform.arrays import BoolArray, FloatArray, IntArray

Lists: TypeAlias = pa.Array | pa.ChunkedArray

_Rule = Callable[..., pl.LazyFrame]
_registered: Callable[..., Callable[[_Rule], _Rule]] = register_check_method

_LEAST_EIGENVALUE: Final = -1e-6
"""Of a covariance scaled to unit variances: below, it is not a rounding error."""
_AT_ONCE: Final = 2048
"""Matrices whose terms fit a processor's cache."""


@_registered(statistics=[])
def finite(data: PolarsData) -> pl.LazyFrame:
    """No value is NaN or infinite."""
    return data.lazyframe.select(pl.col(str(data.key)).is_finite())


@_registered(statistics=["length", "several"])
def numbers(data: PolarsData, *, length: int, several: bool = False) -> pl.LazyFrame:
    """Each list has ``length`` finite numbers, or ``several`` times as many."""
    return _answer(are_numbers(_column(data), length=length, several=several))


@_registered(statistics=["least"])
def filled(data: PolarsData, *, least: int) -> pl.LazyFrame:
    """Each list has at least ``least`` elements."""
    return _answer(are_filled(_column(data), least=least))


@_registered(statistics=["size", "several"])
def covariance(data: PolarsData, *, size: int, several: bool = False) -> pl.LazyFrame:
    """Each list is the lower triangle, by rows, of a covariance (size, size), or of ``several`` of them."""
    return _answer(are_covariances(_column(data), size=size, several=several))


def are_numbers(column: Lists, *, length: int, several: bool) -> BoolArray:
    """(n,) whether each list of ``column`` keeps the rule `numbers`."""
    return _are_numbers(*_elements(column), length, several)


def are_filled(column: Lists, *, least: int) -> BoolArray:
    """(n,) whether each list of ``column`` keeps the rule `filled`."""
    lengths = pc.fill_null(pc.list_value_length(column), least).to_numpy(zero_copy_only=False)
    return np.asarray(lengths >= least)


def are_covariances(column: Lists, *, size: int, several: bool) -> BoolArray:
    """(n,) whether each list of ``column`` keeps the rule `covariance`."""
    terms = size * (size + 1) // 2
    lengths, row, values = _elements(column)
    keeps = _are_numbers(lengths, row, values, terms, several)
    if not keeps.all():
        chosen = keeps[row]
        row, values = row[chosen], values[chosen]
    keeps[row[::terms][~is_semidefinite(values.reshape(-1, terms), size)]] = False
    return keeps


def is_semidefinite(lower: FloatArray, size: int) -> BoolArray:
    """(n,) whether these finite matrices have no negative eigenvalue.

    ``lower``: (n, terms) lower triangles by rows of matrices (size, size). They are scaled to unit variances first.
    """
    is_one = np.zeros(len(lower), np.bool_)
    for first in range(0, len(lower), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        is_one[part] = _have_factors(lower[part], size)
    if not is_one.all():
        is_one[~is_one] = _have_no_negative_eigenvalue(lower[~is_one], size)
    return is_one


def _have_factors(lower: FloatArray, size: int) -> BoolArray:
    """Return whether each matrix has a Cholesky factor: far faster than eigenvalues, and almost always enough.

    All matrices are reduced together, column by column.
    """
    left = np.zeros((size, size, len(lower)))
    left[np.tril_indices(size)] = lower.T
    left[np.diag_indices(size)] *= 1 - _LEAST_EIGENVALUE
    have_factors = np.ones(len(lower), np.bool_)
    with np.errstate(all="ignore"):
        for pivot in range(size):
            have_factors &= left[pivot, pivot] > 0
            for row in range(pivot + 1, size):
                factor = left[row, pivot] / left[pivot, pivot]
                left[row, pivot + 1 : row + 1] -= factor * left[pivot + 1 : row + 1, pivot]
    return have_factors


def _have_no_negative_eigenvalue(lower: FloatArray, size: int) -> BoolArray:
    rows, columns = np.tril_indices(size)
    variances = lower[:, rows == columns]
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    terms = lower / (scale[:, rows] * scale[:, columns])
    is_one: BoolArray = (variances >= 0).all(axis=1) & np.isfinite(terms).all(axis=1)
    scaled = np.zeros((is_one.sum(), size, size))  # the upper triangle is not read
    scaled[:, rows, columns] = terms[is_one]
    is_one[is_one] = np.linalg.eigvalsh(scaled)[:, 0] >= _LEAST_EIGENVALUE
    return is_one


def _column(data: PolarsData) -> Lists:
    name = str(data.key)
    return data.lazyframe.select(name).collect()[name].to_arrow()


def _elements(column: Lists) -> tuple[IntArray, IntArray, FloatArray]:
    """Lengths (n,), -1 for null; of each element the row and the value, NaN for null."""
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    row = np.repeat(np.arange(len(lengths)), np.maximum(lengths, 0))
    return lengths, row, pc.list_flatten(column).to_numpy(zero_copy_only=False).astype(np.float64)


def _are_numbers(lengths: IntArray, row: IntArray, values: FloatArray, length: int, several: bool) -> BoolArray:
    fits = (lengths % length == 0) if several else (lengths == length)
    keeps: BoolArray = fits | (lengths < 0)
    is_finite = np.isfinite(values)
    if not is_finite.all():
        keeps[row[~is_finite]] = False
    return keeps


def _answer(keeps: BoolArray) -> pl.LazyFrame:
    return pl.LazyFrame({"keeps": keeps})


FINITE: Final = Check.finite()
"""The rule of every column of floating-point numbers."""
