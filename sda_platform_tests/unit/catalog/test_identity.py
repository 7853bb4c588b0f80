"""Element sets under the numbers of their objects: tables, history, checks and questions of people follow the edits."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.editing import with_hashes
from sda_platform.catalog.identities import Identities
from sda_platform.catalog.identity import SET_KEY, identified
from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.formats.edits import BadEdit
from sda_platform_tests.support.delta_tables import commit, lake_at

SEGMENTS = ("a" * 64, "b" * 64)
NUMBERS = st.integers(1, 9)
KEYS = st.tuples(NUMBERS, st.sampled_from(SEGMENTS), st.integers(0, 2))


@given(
    st.lists(st.one_of(KEYS, st.just((None, SEGMENTS[0], 0))), max_size=20),
    st.dictionaries(NUMBERS, NUMBERS.map(lambda n: n + 10), max_size=4),
    st.dictionaries(KEYS, NUMBERS.map(lambda n: n + 10), max_size=4),
)
def test_columns_are_renumbered_as_single_sets_are__CS9(
    rows: list[tuple[int | None, str, int]],
    merges: dict[int, int],
    corrections: dict[tuple[int, str, int], int],
) -> None:
    identities = Identities(merges, corrections)
    types = (pa.int64(), pa.string(), pa.int64())
    columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(types)]
    sets = pa.Table.from_arrays([*columns, pa.array(range(len(rows)))], [*SET_KEY, "other"])
    found = identified(sets, identities)
    assert found["norad_id"].to_pylist() == [row[0] and identities.of(row[0], *row[1:]) for row in rows]
    assert found.drop_columns(["norad_id"]).equals(sets.drop_columns(["norad_id"]))


def test_a_correction_names_a_segment_by_its_name_or_the_beginning_of_its_hash(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    facts = {"norad_id": 5, "error_kind": None, "error": None, "record_number": 3}
    named = [("one.csv", SEGMENTS[0]), ("two.csv", SEGMENTS[1]), ("twice.csv", "cd" * 32), ("twice.csv", "ce" * 32)]
    commit(lake, ELEMENT_SETS, [{**facts, "segment_name": name, "segment_sha256": sha} for name, sha in named])
    expected = f"{SEGMENTS[0]}:3:25544 {SEGMENTS[1]}:3:25544"
    assert with_hashes(lake, 5, "one.csv:3:25544 bbbbbbbb:3:25544") == expected
    assert with_hashes(lake, 5, expected) == expected
    assert with_hashes(lake, 5, "") == ""
    for wrong in ("one.csv:4:25544", "twice.csv:3:25544", "nonsense", ":3:25544"):
        with pytest.raises(BadEdit, match="must name one"):
            with_hashes(lake, 5, wrong)
    with pytest.raises(BadEdit, match="0 sets of object 6"):
        with_hashes(lake, 6, "one.csv:3:25544")
