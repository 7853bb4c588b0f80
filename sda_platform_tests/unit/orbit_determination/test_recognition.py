"""Unknown objects that one radar meets again a revolution later: their number, a better orbit, and no one else's."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.orbit_determination import uncorrelated_tracks
from sda_platform.orbit_determination.recognition import earlier_sets
from sda_platform.orbit_determination.tracklets import Tracklet, tracklets
from sda_platform.orbit_determination.uncorrelated_tracks import PROVISIONAL_SCHEMA, discovered
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform_tests.support.scenes import SECOND_NS, catalogue, observe, passes
from sda_platform_tests.support.windows import WINDOW_NS, as_rows

RADAR = "radar-3"
APART = 8
TWINS, NEIGHBOURS = (7, 8), (0, 9)
TOLD_APART = set(range(10)) - {*TWINS}
# In the catalogue, some 850 km up; the radar sees it twice, 105 minutes apart.
PARENT = 763
AREAS_M2_KG = (0.013, 0.02)
NO_ROWS = PROVISIONAL_SCHEMA.empty_table()
UNSEEN: frozenset[int] = frozenset()


@cache
def meetings() -> tuple[int, int]:
    """Middles of the radar's first two passes of the parent."""
    (_, _, first_ns), (_, _, second_ns), *_ = passes(np.array([PARENT]), [sensor_registry()[RADAR]], 3, 3)
    return first_ns, second_ns


@cache
def starts() -> tuple[FloatArray, int]:
    """States (10, 6), TEME, and their time: eight that fly apart at 45 m/s, a twin that leaves one at 5 mm/s, and a
    neighbour at 3 m/s.
    """
    direction = np.random.default_rng(21).normal(size=(APART, 3))
    apart = 0.045 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    speed_km_s = np.vstack([apart, apart[TWINS[0]] + [5e-6, 0.0, 0.0], apart[NEIGHBOURS[0]] + [3e-3, 0.0, 0.0]])
    start_ns = meetings()[0] - 60 * SECOND_NS
    _, r, v = catalogue().at([PARENT], [start_ns])
    return np.hstack([np.repeat(r, len(speed_km_s), axis=0), v + speed_km_s]), start_ns


def true_states(time_ns: IntArray) -> FloatArray:
    """States (10, n, 6), TEME, of all pieces at times after their start."""
    start, start_ns = starts()
    epoch_ns, count = np.full(len(start), start_ns), len(start)
    areas = np.tile(AREAS_M2_KG, (count, 1))
    gcrf = gcrf_of_teme(start, epoch_ns)
    moved = CONSTANT_DYNAMICS.states(gcrf, areas, epoch_ns, np.tile(time_ns, (count, 1)))
    return np.array([teme_of_gcrf(states, time_ns) for states in moved])


def seen(meeting: int, seconds: int = 100) -> pa.Table:
    """The radar's observations of all pieces, every two seconds from a minute before the middle of a pass."""
    rng = np.random.default_rng(meeting)
    time_ns = meetings()[meeting] + np.arange(-50, seconds - 50, 2) * SECOND_NS
    parts = []
    for piece, states in enumerate(true_states(time_ns)):
        made = observe(np.full(len(time_ns), RADAR), time_ns, states[:, :3], states[:, 3:], rng)
        rows = as_rows(made).drop_columns("observation_id")
        ids, track = [f"{piece}-{time}" for time in time_ns.tolist()], [f"{meeting}-{piece}"] * len(time_ns)
        rows = rows.append_column("observation_id", pa.array(ids)).append_column("native_track_id", pa.array(track))
        parts.append(rows.select(OBSERVATION_COLUMNS))
    return pa.concat_tables(parts)


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
