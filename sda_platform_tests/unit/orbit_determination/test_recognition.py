"""Unknown objects that one radar meets again a revolution later: their number, a better orbit, and no one else's."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbit_determination import uncorrelated_tracks
from sda_platform.orbit_determination.recognition import earlier_sets
from sda_platform.orbit_determination.tracklets import Tracklet, tracklets
from sda_platform.orbit_determination.uncorrelated_tracks import PROVISIONAL_SCHEMA, discovered
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform_tests.support.passes_of_twins import (
    NEIGHBOURS,
    RADAR,
    TOLD_APART,
    meetings,
    seen,
    starts,
    true_states,
)
from sda_platform_tests.support.scenes import SECOND_NS
from sda_platform_tests.support.windows import WINDOW_NS

NO_ROWS = PROVISIONAL_SCHEMA.empty_table()
UNSEEN: frozenset[int] = frozenset()


@cache
def met(meeting: int, seconds: int = 100) -> tuple[Tracklet, ...]:
    return tuple(tracklets(seen(meeting, seconds)))


def numbered(
    found: tuple[Tracklet, ...], known: pa.Table = NO_ROWS, followed: frozenset[int] = UNSEEN
) -> dict[int, dict[str, object]]:
    """The rows by the piece that all their observations are of."""
    rows = discovered(found, known, known["norad_id"].to_pylist(), followed, WINDOW_NS, 0, CONSTANT_DYNAMICS)
    owners = [{int(name.partition("-")[0]) for name in row["observation_ids"]} for row in rows.to_pylist()]
    assert all(len(of) == 1 for of in owners)
    return {of.pop(): row for of, row in zip(owners, rows.to_pylist(), strict=True)}


def predicted(row: dict[str, object], time_ns: IntArray) -> FloatArray:
    """Position (3,), TEME, of a row's orbit."""
    ((one,),) = earlier_sets(pa.Table.from_pylist([row], PROVISIONAL_SCHEMA)).values()
    return one.orbit.at(CONSTANT_DYNAMICS, time_ns).in_teme()[0][0, :3]


def table(rows: dict[int, dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), PROVISIONAL_SCHEMA)


def test_pieces_keep_their_numbers_and_neighbours_that_may_be_confused_get_new_ones() -> None:
    first = numbered(met(0))
    again = numbered(met(1), table(first))
    assert len(first) == len(again) == len(starts()[0])
    assert numbered(met(1)[::-1], table(first)) == again, "whatever the order"
    kept = {piece for piece, row in again.items() if row["norad_id"] in {old["norad_id"] for old in first.values()}}
    assert kept == TOLD_APART
    for piece in kept:
        assert again[piece]["norad_id"] == first[piece]["norad_id"]
        assert again[piece]["earlier_epoch_ns"] == first[piece]["epoch_time_ns"]
        assert again[piece]["degrees_of_freedom"] == 4 * 50, "the earlier set determines as many numbers as are unknown"


def test_both_passes_together_determine_the_period_far_better_than_one() -> None:
    first = numbered(met(0))
    joined, alone = numbered(met(1), table(first)), numbered(met(1))
    day_ns = np.array([meetings()[1] + 86_400 * SECOND_NS])
    true = true_states(day_ns)[:, 0]
    miss_km = {
        name: [np.linalg.norm(predicted(rows[piece], day_ns) - true[piece, :3]) for piece in TOLD_APART]
        for name, rows in (("joined", joined), ("alone", alone))
    }
    assert np.median(miss_km["joined"]) < 0.3 * np.median(miss_km["alone"])


def test_an_orbit_is_not_continued_by_what_flies_elsewhere_and_not_while_its_object_is_seen() -> None:
    numbers = numbered(met(0))
    first, (one, neighbour) = table(numbers), NEIGHBOURS
    only = first.filter(pc.equal(first["norad_id"], pa.scalar(numbers[one]["norad_id"])))
    strangers = tuple(t for t in met(1) if not t.name.endswith(f"-{one}"))
    assert strangers[neighbour - 1].name.endswith(f"-{neighbour}")
    assert not {row["norad_id"] for row in numbered(strangers, only).values()} & set(only["norad_id"].to_pylist())
    seen_now = frozenset(first["norad_id"].to_pylist())
    assert not {row["norad_id"] for row in numbered(met(1), first, seen_now).values()} & seen_now


def test_a_tracklet_that_does_not_link_with_its_objects_current_one_keeps_the_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where both continue the earlier set as one orbit; a neighbour's tracklet does not."""
    monkeypatch.setattr(uncorrelated_tracks, "link", lambda orbits, _: [[number] for number in range(len(orbits))])
    rows = seen(1, 180)
    is_late = pc.greater(rows["sensor_time_ns"], meetings()[1] + 40 * SECOND_NS)
    early, late = rows.filter(pc.invert(is_late)), rows.filter(is_late)
    place = late.column_names.index("native_track_id")
    late = late.set_column(place, "native_track_id", pc.binary_join_element_wise("late", late["native_track_id"], "-"))
    first = numbered(met(0))
    numbers = {piece: row["norad_id"] for piece, row in first.items()}
    now = tuple(tracklets(early))
    known = pa.concat_tables([table(first), table(numbered(now, table(first)))])
    again = numbered((*now, *tracklets(late)), known)
    kept = {piece for piece, row in again.items() if row["norad_id"] in numbers.values()}
    assert all(again[piece]["norad_id"] == numbers[piece] for piece in kept)
    assert len(kept & TOLD_APART) >= len(TOLD_APART) - 1
    assert all(
        row["earlier_epoch_ns"] == first[piece]["epoch_time_ns"] for piece, row in again.items() if piece in kept
    )
    without = tuple(t for t in (*now, *tracklets(late)) if t.name != f"{RADAR}/late-1-{NEIGHBOURS[0]}")
    strangers = numbered(without, known)
    assert strangers[NEIGHBOURS[1]]["norad_id"] != numbers[NEIGHBOURS[0]]


def test_a_set_without_a_covariance_is_not_continued() -> None:
    first = table(numbered(met(0)))
    place = first.column_names.index("covariance")
    old = first.set_column(place, "covariance", pa.nulls(first.num_rows, first.schema.field(place).type))
    assert not {row["norad_id"] for row in numbered(met(1), old).values()} & set(first["norad_id"].to_pylist())


def test_sets_of_earlier_versions_without_a_numerical_orbit_are_continued_too() -> None:
    first = table(numbered(met(0)))
    place = first.column_names.index("orbit")
    old = first.set_column(place, "orbit", pa.nulls(first.num_rows, first.schema.field(place).type))
    numbers = {piece: row["norad_id"] for piece, row in numbered(met(0)).items()}
    again = numbered(met(1), old)
    kept = {piece for piece, row in again.items() if row["norad_id"] in numbers.values()}
    assert kept <= TOLD_APART
    assert len(kept) > 0
    assert all(again[piece]["norad_id"] == numbers[piece] for piece in kept)


def test_continued_observations_count_once_with_the_earlier_pass() -> None:
    first = table(numbered(met(0)))
    again = numbered(met(1), first)
    known = pa.concat_tables([first, table(again)])
    assert numbered(met(1), known) == {}, "nothing new"
    longer = numbered(met(1, 180), known)
    for piece in TOLD_APART:
        assert longer[piece]["norad_id"] == again[piece]["norad_id"]
        assert longer[piece]["earlier_epoch_ns"] == again[piece]["earlier_epoch_ns"]
