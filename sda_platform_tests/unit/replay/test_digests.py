"""Digests and differences: equal exactly when the rows are, and what differs is named."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.replay.differences import differences
from sda_platform.replay.digest import digest
from sda_platform_tests.support.delta_tables import rows_of

VALUES = st.fixed_dictionaries(
    {
        "fit_id": st.text(max_size=3),
        "sequence": st.integers(0, 3),
        "x_km": st.one_of(st.none(), st.floats(allow_nan=True)),
        "covariance": st.one_of(st.none(), st.lists(st.floats(allow_nan=False), max_size=3)),
        "observation_ids": st.lists(st.text(max_size=2), max_size=2),
    }
)
TRACKS = st.lists(VALUES, max_size=6, unique_by=lambda r: (r["fit_id"], r["sequence"]))


def tracks(*rows: dict[str, Any]) -> pa.Table:
    return rows_of(FUSED_TRACKS, rows)


def track(name: str, **values: Any) -> dict[str, Any]:
    return {"fit_id": name, "sequence": 0, "op": "insert", "covariance": [1.0, 2.0], **values}


def other_layout(rows: pa.Table) -> pa.Table:
    """The same rows as another reader might give them: other chunks, other types of equal meaning."""
    parts = [rows.slice(n, 1) for n in range(rows.num_rows)]
    parted = pa.concat_tables(parts) if parts else rows
    named = pa.list_(pa.field("element", pa.float64()))
    at = parted.column_names.index("covariance")
    parted = parted.set_column(at, "covariance", parted.column("covariance").cast(named))
    at = parted.column_names.index("fit_id")
    return parted.set_column(at, "fit_id", parted.column("fit_id").cast(pa.large_string()))


@given(TRACKS, st.randoms(use_true_random=False))
def test_order_chunks_and_reader_leave_no_trace_in_a_digest__O9(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    assert digest(FUSED_TRACKS, other_layout(tracks(*shuffled))) == digest(FUSED_TRACKS, tracks(*rows))
    assert differences(FUSED_TRACKS, other_layout(tracks(*shuffled)), tracks(*rows)) == []


@given(TRACKS.filter(bool), st.data())
def test_any_other_value_gives_another_digest_and_a_line__O5(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(range(len(rows))))
    column = data.draw(st.sampled_from(["x_km", "covariance", "observation_ids"]))
    value = data.draw(VALUES)[column]
    altered = [{**r, column: value} if n == changed else r for n, r in enumerate(rows)]
    told = differences(FUSED_TRACKS, tracks(*altered), tracks(*rows))
    same = tracks(*altered).column(column).to_pylist().__repr__() == tracks(*rows).column(column).to_pylist().__repr__()
    assert (told == []) is same
    assert same or told[0].startswith(f"1 rows differ in {column}")


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1.0, np.nextafter(1.0, 2.0)), (None, float("nan"))])
def test_the_last_bit_counts(one: float | None, other: float) -> None:
    pair = [tracks(track("t", x_km=value)) for value in (one, other)]
    assert digest(FUSED_TRACKS, pair[0]) != digest(FUSED_TRACKS, pair[1])
    assert len(differences(FUSED_TRACKS, *pair)) == 1


def test_lists_are_distinguished_by_where_they_end() -> None:
    pair = [tracks(track("a", covariance=a), track("b", covariance=b)) for a, b in (([1.0, 2.0], []), ([1.0], [2.0]))]
    assert digest(FUSED_TRACKS, pair[0]) != digest(FUSED_TRACKS, pair[1])


def test_missing_surplus_and_repeated_rows_are_named_by_key() -> None:
    live = tracks(track("kept"), track("invented"), track("twice"), track("twice"))
    (missing, surplus) = differences(FUSED_TRACKS, live, tracks(track("kept"), track("lost"), track("twice")))
    assert missing == "1 rows are missing, such as fit_id='lost', sequence=0, op='insert'"
    assert surplus.startswith("2 rows are too many or unfounded, such as fit_id='invented'") and "twice" in surplus


def test_a_value_that_differs_is_named_with_key_column_and_both_values() -> None:
    (told,) = differences(FUSED_TRACKS, tracks(track("t", x_km=1.5)), tracks(track("t", x_km=2.5)))
    assert told == "1 rows differ in x_km, such as fit_id='t', sequence=0, op='insert': stored 1.5, replayed 2.5"
