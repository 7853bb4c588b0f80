"""Unknown objects: from observations that match nothing to numbered orbits that are those of the truth."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.lake.arrow import arrays
from sda_platform.orbit_determination import tracklets as module_of_tracklets
from sda_platform.orbit_determination.checks import shared_observations
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.orbit_determination.tracklets import Tracklet, tracklets, uncorrelated
from sda_platform.orbit_determination.uncorrelated_tracks import ANALYST_SATELLITE_IDS, PROVISIONAL_SCHEMA, discovered
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.observing_night import LOW, night
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue, displaced
from sda_platform_tests.support.uncorrelated_rows import OBJECTS, WINDOWS, observations
from sda_platform_tests.support.windows import WINDOW_NS, as_rows, tracked_windows

AS_OF_NS = START_NS + WINDOWS * WINDOW_NS
NO_ROWS = PROVISIONAL_SCHEMA.empty_table()


@cache
def found() -> tuple[Tracklet, ...]:
    return tuple(tracklets(observations()))


def numbered(
    known: pa.Table = NO_ROWS, taken: tuple[int, ...] = (), chosen: tuple[Tracklet, ...] | None = None
) -> pa.Table:
    tracklets_found = found() if chosen is None else chosen
    return discovered(tracklets_found, known, taken, frozenset(), WINDOW_NS, AS_OF_NS, CONSTANT_DYNAMICS)


def test_what_a_fit_uses_and_what_names_itself_is_not_unknown() -> None:
    rows = observations()
    used = rows["observation_id"].slice(0, 3)
    left = uncorrelated(rows, used)
    assert left.num_rows == rows.num_rows - 3
    beacon = pa.Table.from_pylist([{**rows.to_pylist()[0], "source_kind": "isl"}], rows.schema)
    assert uncorrelated(beacon, used.slice(0, 0)).num_rows == 0


def test_each_unknown_object_gets_one_orbit_which_is_the_true_one() -> None:
    _, seen, deviation = tracked_windows(OBJECTS, WINDOWS)
    rows = numbered()
    assert rows["norad_id"].to_pylist() == list(ANALYST_SATELLITE_IDS)[: rows.num_rows]
    assert rows.num_rows >= OBJECTS - 2
    elements = ElementSets.from_columns(arrays(rows))
    for n, row in enumerate(rows.to_pylist()):
        (name,) = row["tracklets"]
        which = int(name.rpartition("/")[2])
        time_ns = np.array([row["epoch_time_ns"]])
        true, _ = displaced(seen.index[[which]], time_ns, deviation[[which]], seen.time_ns[[which]])
        _, place, _ = Propagator(elements).at([n], time_ns)
        assert np.linalg.norm(place - true) * 1e3 < 5 * row["position_sigma_m"]
        assert row["position_sigma_m"] < 5_000


def test_the_orbit_of_a_long_track_uses_observations_from_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_of_tracklets, "_MAX_FITTED_OBSERVATIONS", 20)
    of_all = {tracklet.name: tracklet for tracklet in found()}
    pairs = [(short, of_all[short.name]) for short in tracklets(observations()) if short.name in of_all]
    assert len(pairs) >= OBJECTS - 2
    for short, whole in pairs:
        assert short.observations["observation_id"].equals(whole.observations["observation_id"])
        assert short.evidence.num_rows == 20 < whole.evidence.num_rows
        assert short.evidence["sensor_time_ns"][0] == whole.observations["sensor_time_ns"][0]
        assert short.evidence["sensor_time_ns"][-1] == whole.observations["sensor_time_ns"][-1]
        apart = short.orbit.r_teme_km - whole.orbit.r_teme_km
        assert np.linalg.norm(apart) < 5 * np.sqrt(np.trace(short.orbit.covariance_teme[:3, :3]))


def test_a_bias_correction_adds_its_uncertainty_to_the_orbit__CS() -> None:
    (sure, *_) = found()
    doubt = pa.array(np.full(sure.observations.num_rows, 0.05))
    (doubted,) = tracklets(sure.observations.append_column("clock_correction_sigma_s", doubt))
    along_km = 0.05 * np.linalg.norm(sure.orbit.v_teme_km_s)
    grown = doubted.orbit.covariance_teme[:3, :3] - sure.orbit.covariance_teme[:3, :3]
    assert np.sqrt(np.trace(grown)) > 0.3 * along_km, "of 32 readings that err alike, not of independent ones"


def test_untagged_observations_of_one_telescope_give_an_orbit() -> None:
    index, observations = night(120)
    rows = as_rows(observations)
    angles_only = rows.append_column("native_track_id", rows["observation_id"]).select(OBSERVATION_COLUMNS)
    truth = dict(zip(angles_only["observation_id"].to_pylist(), index.tolist(), strict=True))
    told = numbered(chosen=tuple(tracklets(angles_only)))
    assert told.num_rows >= LOW - 2
    elements = ElementSets.from_columns(arrays(told))
    for n, row in enumerate(told.to_pylist()):
        (which,) = {truth[reading] for reading in row["observation_ids"]}
        _, place, _ = Propagator(elements).at([n], [row["epoch_time_ns"]])
        _, true, _ = catalogue().at([which], [row["epoch_time_ns"]])
        assert np.linalg.norm(place - true) * 1e3 < 5 * row["position_sigma_m"] < 250_000


def test_what_only_telescopes_see_of_a_geostationary_object_for_an_hour_is_an_orbit_that_keeps_its_number() -> None:
    index, observations = night(3_600)
    motion = catalogue().elements.mean_motion_rev_per_day
    (chosen, *_) = sorted(set(index[np.abs(motion[index] - 0.96) < 0.01].tolist()))
    rows = as_rows(observations.take(index == chosen))
    angles_only = rows.append_column("native_track_id", rows["observation_id"]).select(OBSERVATION_COLUMNS)
    told = numbered(chosen=tuple(tracklets(angles_only)))
    assert told["norad_id"].to_pylist() == [80_000]
    _, place, _ = Propagator(ElementSets.from_columns(arrays(told))).at([0], told["epoch_time_ns"].to_numpy())
    _, true, _ = catalogue().at([chosen], told["epoch_time_ns"].to_numpy())
    assert np.linalg.norm(place - true) * 1e3 < 3 * told["position_sigma_m"][0].as_py() < 150_000
    minutes_ns = START_NS + 300 * SECOND_NS
    later = tuple(tracklets(angles_only.filter(pc.greater(angles_only["sensor_time_ns"], minutes_ns))))
    fewer = pa.Table.from_pylist([{**row, "readings": row["readings"] // 2} for row in told.to_pylist()], told.schema)
    assert later[0].name not in told["tracklets"][0].as_py(), "the sighting that named it is forgotten"
    assert numbered(fewer, (80_000,), later)["norad_id"].to_pylist() == [80_000]


def test_an_object_keeps_its_number_and_gets_a_new_set_only_for_much_more_data() -> None:
    half = list(tracklets(observations().filter(pc.less(observations()["sensor_time_ns"], START_NS + 3 * WINDOW_NS))))
    first = numbered(chosen=tuple(half))
    assert numbered(first, tuple(first["norad_id"].to_pylist()), tuple(half)).num_rows == 0, "nothing new"
    more = pa.Table.from_pylist([{**row, "readings": row["readings"] // 2} for row in first.to_pylist()], first.schema)
    again = numbered(more)
    known = dict(zip((t[0] for t in first["tracklets"].to_pylist()), first["norad_id"].to_pylist(), strict=True))
    for row in again.to_pylist():
        assert known.get(row["tracklets"][0], row["norad_id"]) == row["norad_id"]
    assert not set(again["norad_id"].to_pylist()) - set(ANALYST_SATELLITE_IDS)


def test_a_number_in_use_is_never_given_again() -> None:
    rows = numbered(taken=(80_000, 80_002))
    assert rows["norad_id"].to_pylist()[:2] == [80_001, 80_003]


def test_one_window_confirms_no_object() -> None:
    early = observations().filter(pc.less(observations()["sensor_time_ns"], START_NS + WINDOW_NS))
    assert numbered(chosen=tuple(tracklets(early))).num_rows == 0


def test_the_order_of_the_observations_changes_nothing() -> None:
    order = np.random.default_rng(4).permutation(observations().num_rows)
    shuffled = tuple(tracklets(observations().take(pa.array(order))))
    assert numbered(chosen=shuffled).equals(numbered())


def test_the_check_reports_observations_of_two_objects_and_foreign_numbers(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, now_ns=START_NS + 200 * SECOND_NS)
    rows = numbered().to_pylist()
    commit(lake, PROVISIONAL_ELEMENTS, rows)
    log = lake.log(PROVISIONAL_ELEMENTS)
    assert shared_observations(lake, log, log.commits()) == []
    commit(lake, PROVISIONAL_ELEMENTS, [{**rows[0], "norad_id": 25544}])
    assert shared_observations(lake, log, log.commits()) == [
        "1 objects share observations with another, such as 80000",
        "1 numbers are not those of analyst satellites, such as 25544",
    ]
