"""Selections take the rows that their words promise; `pipeline/test_executors.py` compares them with the engine's."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.dataset as ds
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.lake.selections import Above, NotNull, OneOf, Selection

_NUMBERS = st.integers(-3, 3)
_ROWS = st.lists(st.none() | _NUMBERS, max_size=12)
Judged = tuple[Selection, Callable[[int | None], bool]]


def _above(least: int, most: int | None) -> Judged:
    return Above("n", least, most), lambda n: n is not None and n > least and (most is None or n <= most)


def _one_of(values: list[int]) -> Judged:
    return OneOf("n", pa.array(values, pa.int64())), lambda n: n in values


_SIMPLE: st.SearchStrategy[Judged] = st.one_of(
    st.builds(_above, _NUMBERS, st.none() | _NUMBERS),
    st.builds(_one_of, st.lists(_NUMBERS, max_size=3)),
    st.just((NotNull("n"), lambda n: n is not None)),
)


def _either(one: Judged, other: Judged) -> Judged:
    return one[0] | other[0], lambda n: one[1](n) or other[1](n)


def _both(one: Judged, other: Judged) -> Judged:
    return one[0] & other[0], lambda n: one[1](n) and other[1](n)


@given(_ROWS, st.recursive(_SIMPLE, lambda s: st.builds(_either, s, s) | st.builds(_both, s, s), max_leaves=4))
def test_a_selection_takes_the_rows_that_its_words_promise(rows: list[int | None], judged: Judged) -> None:
    selection, promised = judged
    stored = ds.dataset(pa.table({"n": pa.array(rows, pa.int64())}))
    assert stored.to_table(filter=selection.expression())["n"].to_pylist() == [n for n in rows if promised(n)]
