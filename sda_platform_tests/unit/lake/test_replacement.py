"""The content of a table whose rows are replaced: which row each key has, and which commit wrote it."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.replacement import with_changes
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform_tests.delta_tables import rows_of

_CHANGES_AT = 7


def tracks(*rows: tuple[int, int, float]) -> pa.Table:
    """Rows (norad_id, commit sequence, a value)."""
    return rows_of(TRACKS, [{"norad_id": n, COMMIT_SEQUENCE: s, "covariance": [v]} for n, s, v in rows])


def facts(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = (rows.column(name).to_pylist() for name in ("norad_id", COMMIT_SEQUENCE, "covariance"))
    return [(n, s, v[0]) for n, s, v in zip(*columns, strict=True)]


@given(
    st.dictionaries(st.integers(1, 9), st.integers(1, 6)), st.sets(st.integers(1, 9)), st.randoms(use_true_random=False)
)
def test_changed_rows_get_the_new_sequence_and_all_others_keep_theirs__D1(
    current: dict[int, int], changed: set[int], chance: Any
) -> None:
    """In the order of the key, however the inputs are stored."""
    before = [(number, sequence, 0.5) for number, sequence in current.items()]
    new = [(number, 1, 1.5) for number in changed]
    chance.shuffle(before)
    chance.shuffle(new)
    stays = {(number, sequence, 0.5) for number, sequence in current.items() if number not in changed}
    expected = sorted({*stays, *((number, _CHANGES_AT, 1.5) for number in changed)})
    assert facts(with_changes(TRACKS, tracks(*before), tracks(*new), _CHANGES_AT)) == expected


def test_changed_rows_need_no_sequence_of_their_own() -> None:
    changed = tracks((2, 1, 1.5)).drop_columns([COMMIT_SEQUENCE])
    assert facts(with_changes(TRACKS, tracks((1, 3, 0.5)), changed, 4)) == [(1, 3, 0.5), (2, 4, 1.5)]


def test_two_changes_of_one_key_are_an_invariant_error() -> None:
    with pytest.raises(InvariantError, match=r"tracks: rows that change have a key \(norad_id\) more than once"):
        with_changes(TRACKS, tracks(), tracks((1, 1, 0.5), (1, 1, 1.5)), 2)
