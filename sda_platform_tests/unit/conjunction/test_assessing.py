"""Candidates assessed: every column of the table, better states where there are some, and what the risk rests on."""

import csv
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sda_platform
from sda_platform.catalog.orbits import Catalogue
from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.best_probability import METHODS, best_probabilities
from sda_platform.orbits.risk.object_kinds import HARD_BODY_RADIUS_M
from sda_platform.orbits.screening.search import screen
from sda_platform.orbits.screening.volumes import Volume, regimes
from sda_platform_tests.support.track_columns import SCHEMA

CATALOGUE = Path(sda_platform.__file__).parent / "simulation/data/celestrak_on_orbit_2024-11-01.omm.csv.gz"
DAY_NS = parse_iso_ns("2024-11-01T00:00:00Z")
SPHERE = Volume.sphere(5.0)
NONE = Tracks.of(SCHEMA.empty_table())
UNSTATED = OperatorEphemerides.none()
UNKNOWN = ObjectSizes()
UNCHOSEN = {"dynamics", "markings"}
EVENTS = Path(__file__).parents[2] / "data" / "screening" / "fleet_events_24h_5km_2024-11-01.csv"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    elements = read_elements(CATALOGUE, DAY_NS, DAY_NS + 1).elements
    return Catalogue(Propagator(elements), tuple(f"OBJECT {n} DEB" for n in elements.norad_id.tolist()))


@pytest.fixture(scope="module")
def candidates() -> pa.Table:
    with EVENTS.open() as file:
        rows = list(csv.DictReader(file))[::4]
    columns = {
        "event_id": pa.array([str(number) for number in range(len(rows))]),
        "norad_id_1": pa.array([int(row["norad_lo"]) for row in rows]),
        "norad_id_2": pa.array([int(row["norad_hi"]) for row in rows]),
        "tca_time_ns": pa.array([parse_iso_ns(row["tca_utc"]) for row in rows]),
    }
    return pa.table(columns)


def test_real_approaches_are_assessed_by_the_model_and_say_so(catalogue: Catalogue, candidates: pa.Table) -> None:
    found = assess_candidates(candidates, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN)
    assert found.num_rows == candidates.num_rows
    assert pc.all(found.column("is_screening_only")).as_py()
    assert set(found.column("probability_method").to_pylist()) <= set(METHODS)
    assert set(found.column("object_type_1").to_pylist()) <= set(HARD_BODY_RADIUS_M)
    assert pc.all(found.column("is_2d_valid")).as_py()
    assert found.column("collision_probability").equals(found.column("probability_2d"))
    least = pc.subtract(found.column("maximum_probability"), found.column("collision_probability"))
    assert pc.min(least).as_py() >= 0
    speed = np.sqrt(
        sum(found.column(c).to_numpy() ** 2 for c in found.column_names if c.startswith("relative_velocity"))
    )
    np.testing.assert_allclose(speed, found.column("relative_speed_km_s").to_numpy(), rtol=1e-12)
    half_km = found.column("time_in_volume_s").to_numpy() / 2 * speed
    # Seen from turning axes paths are slower or faster by the orbit's turn within five kilometres.
    np.testing.assert_allclose(np.hypot(half_km, found.column("miss_distance_km").to_numpy()), 5, atol=0.01)


def test_the_time_is_that_in_the_volume_of_the_protected_object_s_regime(
    catalogue: Catalogue, candidates: pa.Table
) -> None:
    boxes = {"LEO2": Volume("box", 50.0, 50.0, 50.0), "LEO3": Volume("box", 0.001, 50.0, 50.0)}
    found = assess_candidates(candidates, catalogue, NONE, UNSTATED, boxes, UNKNOWN)
    rows = catalogue.positions(candidates.column("norad_id_1").to_numpy())
    ids = catalogue.norad_id[rows].tolist()
    of_object = dict(zip(ids, regimes(catalogue.propagator.elements.take(rows)).tolist(), strict=True))
    seconds = found.column("time_in_volume_s").to_pylist()
    regime = [of_object[norad_id] for norad_id in found.column("norad_id_1").to_pylist()]
    told = {name: [s for s, of in zip(seconds, regime, strict=True) if of == name] for name in set(regime)}
    assert min(told["LEO2"]) > 6
    assert np.median(told["LEO3"]) == 0.0
    assert set(told["LEO1"]) == {None}


def tracked(catalogue: Catalogue, candidate: pa.Table, lead_h: float, **changed: Any) -> Tracks:
    """Both objects of the candidate on their element sets' orbits, known to 10 m that long before the approach."""
    time_ns = candidate.column("tca_time_ns").to_numpy() - round(lead_h * 3600e9)
    sigmas = [1e-2, 1e-2, 1e-2, 1e-6, 1e-6, 1e-6, 1e-4, 1e-4]
    rows = []
    for number in (1, 2):
        norad_id = candidate.column(f"norad_id_{number}")[0].as_py()
        _, r, v = catalogue.propagator.at(catalogue.positions([norad_id]), time_ns)
        state = dict(zip(TRACK_COLUMNS[3:9], np.concatenate([r[0], v[0]]).tolist(), strict=True))
        lower = np.diag(np.square(sigmas))[np.tril_indices(8)].tolist()
        found = {"norad_id": norad_id, "track_id": "a track", "epoch_time_ns": int(time_ns[0])}
        found |= {"drag_area_m2_kg": 0.01, "reflective_area_m2_kg": 0.01, "joint_covariance": lower}
        rows.append({**found, **state, **changed})
    return Tracks.of(pa.Table.from_pylist(rows, SCHEMA))


def test_a_track_takes_the_place_of_the_model(catalogue: Catalogue, candidates: pa.Table) -> None:
    one = candidates.slice(0, 1)
    (found,) = assess_candidates(
        one, catalogue, tracked(catalogue, one, lead_h=0.0), UNSTATED, SPHERE, UNKNOWN
    ).to_pylist()
    (before,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert (found["state_source_1"], found["state_source_2"], found["is_screening_only"]) == ("fused_track",) * 2 + (
        False,
    )
    assert (found["track_id_1"], before["track_id_1"]) == ("a track", None)
    assert found["miss_distance_km"] == pytest.approx(before["miss_distance_km"], abs=1e-6)
    assert found["mahalanobis_distance"] == pytest.approx(found["miss_distance_km"] / np.sqrt(2e-4), rel=1e-3)


@pytest.mark.parametrize("number", [1, 2])
def test_errors_of_element_sets_have_long_tails_and_those_of_tracks_have_none(
    catalogue: Catalogue, candidates: pa.Table, number: int
) -> None:
    one = candidates.slice(0, 1)
    norad_id = one.column(f"norad_id_{number}")[0].as_py()
    both = tracked(catalogue, one, lead_h=0.0)
    row = np.flatnonzero(both.norad_id == norad_id)
    tracks = replace(both, **{f.name: getattr(both, f.name)[row] for f in fields(both) if f.name not in UNCHOSEN})
    (found,) = assess_candidates(one, catalogue, tracks, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    (plain,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert found[f"degrees_of_freedom_{number}"] is None
    assert found[f"degrees_of_freedom_{3 - number}"] == plain[f"degrees_of_freedom_{3 - number}"]
    assert 1 < plain["degrees_of_freedom_1"] < 2, "an object without history"


def test_what_is_stored_of_an_assessment_gives_its_probability_again(
    catalogue: Catalogue, candidates: pa.Table
) -> None:
    found = assess_candidates(candidates, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    for row in found:
        again = best_probabilities(assessed_pass(row))
        assert again.probability[0] == pytest.approx(row["collision_probability"], rel=1e-9)
        gaussian = best_probabilities(
            assessed_pass({**row, "degrees_of_freedom_1": None, "degrees_of_freedom_2": None})
        )
        assert gaussian.probability[0] != row["collision_probability"]


LOWER = np.diag(np.square([1e-2] * 3 + [1e-6] * 3 + [1e-4] * 2))[np.tril_indices(8)]


@pytest.mark.parametrize(
    ("changed", "flag"),
    [
        ({"joint_covariance": [float("nan")] * 36}, "track_covariance_not_finite"),
        ({"joint_covariance": [float("inf"), *LOWER[1:].tolist()]}, "track_covariance_not_finite"),
        ({"joint_covariance": (-LOWER).tolist()}, "track_covariance_indefinite"),
        ({"joint_covariance": [LOWER[0], 2 * LOWER[0], *LOWER[2:].tolist()]}, "track_covariance_indefinite"),
        ({"x_km": float("nan")}, "track_covariance_not_finite"),
    ],
)
def test_an_assessment_says_which_covariance_was_refused_and_why(
    catalogue: Catalogue, candidates: pa.Table, changed: dict[str, Any], flag: str
) -> None:
    one = candidates.slice(0, 1)
    tracks = tracked(catalogue, one, lead_h=0.0, **changed)
    (found,) = assess_candidates(one, catalogue, tracks, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    (before,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert (found["state_source_1"], found["state_source_2"]) == ("element_set",) * 2
    assert set(found["risk_flags"].split(",")) - set(before["risk_flags"].split(",")) == {f"{flag}_1", f"{flag}_2"}
    assert {**found, "risk_flags": None} == {**before, "risk_flags": None}


def test_a_track_is_propagated_numerically_to_the_approach(catalogue: Catalogue, candidates: pa.Table) -> None:
    one = candidates.slice(0, 1)
    (found,) = assess_candidates(
        one, catalogue, tracked(catalogue, one, lead_h=1.5), UNSTATED, SPHERE, UNKNOWN
    ).to_pylist()
    assert found["state_source_1"] == "fused_track"
    sigmas_km = np.sqrt(np.linalg.eigvalsh(covariance_from_lower([found["covariance_1"]])[0, :3, :3]))
    assert sigmas_km[0] < 0.015, "10 m stay 10 m across the orbit"
    assert 0.02 < sigmas_km[2] < 0.5, "along it, 1 mm/s and drag grow"
    (before,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert 1e-3 < np.linalg.norm(np.subtract(found["state_1"], before["state_1"])[:3]) < 5, "what SGP4 leaves out"


@pytest.mark.parametrize(("since_ns", "source"), [(None, "element_set"), (2**62, "fused_track")])
def test_an_old_track_gives_way_to_the_model_unless_the_object_has_manoeuvred(
    catalogue: Catalogue, candidates: pa.Table, since_ns: int | None, source: str
) -> None:
    one = candidates.slice(0, 1)
    tracks = tracked(catalogue, one, lead_h=12.0, manoeuvre_time_ns=since_ns)
    (found,) = assess_candidates(one, catalogue, tracks, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert (found["state_source_1"], found["state_source_2"]) == (source, source)
    (before,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert (found == before) is (source == "element_set")


def test_an_object_without_a_track_keeps_the_model_next_to_one_that_has_one(
    catalogue: Catalogue, candidates: pa.Table
) -> None:
    one = candidates.slice(0, 1)
    both = tracked(catalogue, one, lead_h=0.0)
    only = replace(
        both, **{f.name: getattr(both, f.name)[1:] for f in fields(both) if f.name not in ("dynamics", "markings")}
    )
    number = 1 if only.norad_id[0] == one.column("norad_id_1")[0].as_py() else 2
    (found,) = assess_candidates(one, catalogue, only, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    (before,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert (found[f"state_source_{number}"], found[f"state_source_{3 - number}"]) == ("fused_track", "element_set")
    assert found[f"covariance_{3 - number}"] == before[f"covariance_{3 - number}"]


def stated(catalogue: Catalogue, candidate: pa.Table, *, sigma_km: float = 0.01, **facts: Any) -> OperatorEphemerides:
    """An ephemeris of the primary from ten minutes before the approach to ten after, 200 m above its element set."""
    tca_ns = candidate.column("tca_time_ns")[0].as_py()
    norad_id = candidate.column("norad_id_1")[0].as_py()
    times_ns = tca_ns + np.arange(-10, 11) * 60_000_000_000
    _, r, v = catalogue.propagator.at(np.repeat(catalogue.positions([norad_id]), len(times_ns)), times_ns)
    r = r * (1 + 0.2 / np.linalg.norm(r, axis=1, keepdims=True))
    lower = np.diag([sigma_km**2] * 3 + [1e-12] * 3)[np.tril_indices(6)].tolist()
    row = {
        "norad_id": norad_id, "created_time_ns": DAY_NS, "received_time_ns": DAY_NS, "segment_sha256": "ab",
        "segment_name": "ops.kvn", "record_number": 0, "usable_from_ns": int(times_ns[0]),
        "usable_until_ns": int(times_ns[-1]), "state_time_ns": times_ns.tolist(),
        "state": np.hstack([r, v]).ravel().tolist(), "covariance_time_ns": times_ns.tolist(),
        "covariance": lower * len(times_ns),
    }  # fmt: skip
    return OperatorEphemerides.of([{**row, **facts}])


def test_an_operators_ephemeris_takes_the_place_of_the_element_set_within_its_span(
    catalogue: Catalogue, candidates: pa.Table
) -> None:
    one = candidates.slice(0, 1)
    (found,) = assess_candidates(one, catalogue, NONE, stated(catalogue, one), SPHERE, UNKNOWN).to_pylist()
    (before,) = assess_candidates(one, catalogue, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert (found["state_source_1"], found["state_source_2"]) == ("operator_ephemeris", "element_set")
    assert (found["ephemeris_id_1"], found["ephemeris_id_2"], before["ephemeris_id_1"]) == ("ops.kvn:0", None, None)
    assert found["is_screening_only"], "the secondary has the model's covariance"
    higher_km = np.linalg.norm(found["state_1"][:3]) - np.linalg.norm(before["state_1"][:3])
    assert higher_km == pytest.approx(0.2, abs=0.01)
    assert covariance_from_lower([found["covariance_1"]])[0, 0, 0] == pytest.approx(1e-4, rel=0.01)
    tca_ns = one.column("tca_time_ns")[0].as_py()
    ended = stated(catalogue, one, usable_until_ns=tca_ns - 1)
    assert assess_candidates(one, catalogue, NONE, ended, SPHERE, UNKNOWN).to_pylist() == [before]


def test_an_ephemeris_with_an_assumed_covariance_is_named_so_and_its_pc_is_for_screening_only__41(
    catalogue: Catalogue, candidates: pa.Table
) -> None:
    one = candidates.slice(0, 1)
    ephemeris = stated(catalogue, one, covariance_source="default")
    tracks = tracked(catalogue, one, lead_h=0.0)
    (own,) = assess_candidates(one, catalogue, tracks, stated(catalogue, one), SPHERE, UNKNOWN).to_pylist()
    (alone,) = assess_candidates(one, catalogue, NONE, ephemeris, SPHERE, UNKNOWN).to_pylist()
    assert alone["state_source_1"] == "operator_ephemeris_assumed_covariance"
    assert (alone["is_screening_only"], own["is_screening_only"]) == (True, False)
    assert (alone["degrees_of_freedom_1"], own["degrees_of_freedom_1"]) == (pytest.approx(1.2), None), "as of sets"


@pytest.mark.parametrize(
    ("sigma_km", "since_ns", "source"),
    [
        (0.005, None, "operator_ephemeris"),
        (0.05, None, "fused_track"),
        (0.005, DAY_NS + 1, "fused_track"),
    ],
)
def test_a_track_ranks_above_an_ephemeris_that_knows_less_or_came_before_a_manoeuvre(
    catalogue: Catalogue, candidates: pa.Table, sigma_km: float, since_ns: int | None, source: str
) -> None:
    one = candidates.slice(0, 1)
    tracks = tracked(catalogue, one, lead_h=0.0, manoeuvre_time_ns=since_ns)
    ephemeris = stated(catalogue, one, sigma_km=sigma_km)
    (found,) = assess_candidates(one, catalogue, tracks, ephemeris, SPHERE, UNKNOWN).to_pylist()
    assert (found["state_source_1"], found["state_source_2"]) == (source, "fused_track")
    assert (found["track_id_1"] is None) is (source == "operator_ephemeris")
    assert not found["is_screening_only"]


def test_the_newest_message_counts_and_one_without_covariances_does_not(
    catalogue: Catalogue, candidates: pa.Table
) -> None:
    one = candidates.slice(0, 1)
    rows = [
        {**row_of(stated(catalogue, one)), "created_time_ns": DAY_NS + 1, "record_number": 1},
        {**row_of(stated(catalogue, one)), "created_time_ns": DAY_NS, "record_number": 2},
        {**row_of(stated(catalogue, one)), "created_time_ns": DAY_NS + 2, "covariance_time_ns": [], "covariance": []},
    ]
    for order in (rows, rows[::-1]):
        (found,) = assess_candidates(one, catalogue, NONE, OperatorEphemerides.of(order), SPHERE, UNKNOWN).to_pylist()
        assert found["ephemeris_id_1"] == "ops.kvn:1"


def row_of(ephemerides: OperatorEphemerides) -> dict[str, Any]:
    """A row of `ephemerides` that gives this one."""
    (each,), (norad_id,) = ephemerides.ephemerides, ephemerides.norad_id.tolist()
    return {
        "norad_id": norad_id, "created_time_ns": DAY_NS, "received_time_ns": DAY_NS, "segment_sha256": "ab",
        "segment_name": "ops.kvn", "record_number": 0, "usable_from_ns": each.usable_from_ns,
        "usable_until_ns": each.usable_until_ns, "state_time_ns": each.state_time_ns.tolist(),
        "state": each.state.ravel().tolist(), "covariance_time_ns": each.covariance_time_ns.tolist(),
        "covariance": each.covariance[:, *np.tril_indices(6)].ravel().tolist(),
    }  # fmt: skip


def drifting(catalogue: Catalogue) -> tuple[Catalogue, pa.Table]:
    """A low satellite, and an inspector that drifts past it at half a kilometre an hour; their one candidate."""
    source = catalogue.propagator.elements
    both = source.take(catalogue.positions([20580]).repeat(2))
    columns = {field.name: getattr(both, field.name).copy() for field in fields(both)}
    columns["norad_id"][1] += 1
    columns["mean_motion_rev_per_day"][1] *= 1 + 2e-5
    columns["mean_anomaly_deg"][1] -= 0.1
    columns["eccentricity"][1] += 1e-5
    pair = Propagator(type(source).from_columns(columns))
    events = screen(pair, [0], [1], DAY_NS, DAY_NS + 86_400_000_000_000, 5.0).events
    (event,) = [n for n, speed in enumerate(events.relative_speed_km_s) if speed < 0.01]
    rows = {"event_id": ["slow"], "norad_id_1": [20580], "norad_id_2": [20581]}
    candidate = pa.table({**rows, "tca_time_ns": events.tca_time_ns[[event]]})
    return Catalogue(pair, ("HST", "OBJECT A")), candidate


def test_a_slow_approach_has_its_tca_its_duration_and_a_probability_without_straight_motion_a10(
    catalogue: Catalogue,
) -> None:
    pair, candidate = drifting(catalogue)
    (found,) = assess_candidates(candidate, pair, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert found["relative_speed_km_s"] < 0.01
    assert abs(found["tca_time_ns"] - candidate.column("tca_time_ns")[0].as_py()) < 10_000_000_000
    times = found["tca_time_ns"] + np.arange(-86_400, 86_401, 20) * 1_000_000_000
    _, r, _ = pair.propagator.grid(times)
    apart_km = np.linalg.norm(r[1] - r[0], axis=-1)
    assert found["miss_distance_km"] == pytest.approx(apart_km.min(), abs=1e-3)
    assert found["time_in_volume_s"] == pytest.approx(20 * (apart_km <= 5).sum(), abs=120)
    assert found["time_in_volume_s"] > 3600
    assert found["is_2d_valid"] is False
    assert found["probability_method"] in ("HALL-2021", "MONTE-CARLO")
    assert 0 < found["collision_probability"] < 1


def test_a_slow_approach_of_tracked_objects_is_found_on_their_own_paths_a10(catalogue: Catalogue) -> None:
    pair, candidate = drifting(catalogue)
    tracks = tracked(pair, candidate, lead_h=0.5)
    ahead = replace(tracks, state=tracks.state.copy())
    ahead.state[1, :3] += 0.3 * ahead.state[1, 3:] / np.linalg.norm(ahead.state[1, 3:])
    (found,) = assess_candidates(candidate, pair, ahead, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    (before,) = assess_candidates(candidate, pair, NONE, UNSTATED, SPHERE, UNKNOWN).to_pylist()
    assert found["state_source_2"] == "fused_track"
    assert abs(found["tca_time_ns"] - before["tca_time_ns"]) > 60_000_000_000
    assert found["time_in_volume_s"] > 3600
