"""The rows of a span of commits, as what a read selects."""

import pyarrow.dataset as ds

from sda_platform.lake.table import COMMIT_SEQUENCE


def committed_in(sequences: tuple[int, int]) -> ds.Expression:
    """Return what is true of rows of the commits after the first of ``sequences`` up to the second."""
    after, upto = sequences
    return (ds.field(COMMIT_SEQUENCE) > after) & (ds.field(COMMIT_SEQUENCE) <= upto)


def narrowed(condition: ds.Expression, where: ds.Expression | None) -> ds.Expression:
    """Return ``condition``, and ``where`` as well if it is given."""
    return condition if where is None else condition & where


def files_of(sequences: tuple[int, int]) -> str:
    """Return `committed_in` in SQL, by which files are passed over."""
    after, upto = sequences
    return f"{COMMIT_SEQUENCE} > {after} AND {COMMIT_SEQUENCE} <= {upto}"
