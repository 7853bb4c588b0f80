"""Association against the whole real catalogue: the right object, or none."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.tracking.association import Association, ObservationArrays, Reason, _compare, associate
from sda_platform.orbits.tracking.gating import coarse_candidates
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    changed,
    displaced,
    link_reports,
    observe,
    prior_draw,
    stack,
    visible,
    watched,
)


def _spread_over_a_window(kind: str, count: int, seed: int) -> tuple[np.ndarray, ObservationArrays]:
    """The objects truly seen and ``count`` observations over 30 s, the objects off their elements as the prior
    states."""
    rng = np.random.default_rng(seed)
    every = visible(kind, START_NS + 15 * SECOND_NS)
    seen = every.take(rng.choice(len(every.index), min(count, len(every.index)), replace=False))
    return seen.index, watched(seen, START_NS + rng.integers(0, 30 * SECOND_NS, len(seen.index)), rng).observations


REMOVED, FRAGMENT, FALSE, CATALOGUED = range(4)


def _with_unknowns(
    kind: str, count: int, apart_km: float, seed: int
) -> tuple[np.ndarray, np.ndarray, ObservationArrays]:
    """Objects, roles (3 and 4: catalogued) and observations of as many sightings, of each role a fifth."""
    rng = np.random.default_rng(seed)
    every = visible(kind, START_NS + 15 * SECOND_NS)
    seen = every.take(rng.choice(len(every.index), count, replace=False))
    role = np.arange(count) % 5
    time_ns = START_NS + rng.integers(0, 30 * SECOND_NS, count)
    deviation = prior_draw(seen.index, time_ns, rng)
    deviation[role == FRAGMENT, :3] += apart_km * rng.normal(size=(np.sum(role == FRAGMENT), 3))
    readings = observe(seen.source_id, time_ns, *displaced(seen.index, time_ns, deviation, time_ns), rng)
    angles = ("azimuth_rad", "elevation_rad", "right_ascension_rad", "declination_rad")
    beside = {name: np.where(role == FALSE, rng.uniform(-5e-3, 5e-3, count), 0.0) for name in angles}
    moved = {name: getattr(readings, name) + offset for name, offset in beside.items()}
    return seen.index, role, changed(readings, **moved)


def _columns_equal(left: Association, right: Association, rows: np.ndarray) -> bool:
    names = ("index", "runner_up", "mahalanobis2", "reason")
    return all(
        np.array_equal(getattr(left, name)[rows], getattr(right, name), equal_nan=name == "mahalanobis2")
        for name in names
    )


def test_radar_detections_find_their_object_in_the_real_catalogue() -> None:
    truth, observations = _spread_over_a_window("radar", 3000, seed=1)
    verdict = associate(observations, catalogue())
    assert len(truth) == 3000
    assert (verdict.index == truth).mean() > 0.99
    # The gate lets 99.9 % of true pairs through, and what it lets through is distributed as it claims.
    assert (verdict.reason <= Reason.AMBIGUOUS).mean() > 0.995
    right = verdict.mahalanobis2[verdict.index == truth]
    assert np.mean(right) == pytest.approx(4.0, abs=0.2)


def test_angles_only_observations_find_their_object_or_are_ambiguous() -> None:
    truth, observations = _spread_over_a_window("optical", 600, seed=2)
    verdict = associate(observations, catalogue())
    assert (verdict.index == truth).mean() > 0.95
    wrong = (verdict.index != truth) & (verdict.index >= 0)
    assert wrong.mean() < 0.02
    sure = verdict.reason == Reason.ASSOCIATED
    assert (verdict.index[sure] == truth[sure]).mean() > 0.99


def test_link_beacons_are_believed_only_where_their_state_fits_their_name() -> None:
    rng = np.random.default_rng(3)
    elements = catalogue().elements
    index = rng.choice(len(elements), 300, replace=False)
    time_ns = START_NS + rng.integers(0, 30 * SECOND_NS, len(index))
    error, r, v = catalogue().at(index, time_ns)
    index, time_ns, r, v = (part[error == 0] for part in (index, time_ns, r, v))
    names = np.array([f"isl-{norad_id}" for norad_id in elements.norad_id[index]])
    honest = associate(link_reports(names, time_ns, r, v, rng), catalogue())
    np.testing.assert_array_equal(honest.index, index)
    lying = associate(link_reports(np.roll(names, 1), time_ns, r, v, rng), catalogue())
    assert (lying.reason == Reason.REPORTED_ID_REFUTED).all() and (lying.index == -1).all()
    nameless = associate(link_reports(np.full(len(index), "isl-999999999"), time_ns, r, v, rng), catalogue())
    assert (nameless.index == index).mean() > 0.97


def test_junk_is_refused_with_its_reason() -> None:
    rng = np.random.default_rng(4)
    _, real = _spread_over_a_window("radar", 400, seed=5)
    junk = changed(
        real,
        range_m=rng.uniform(300e3, 5000e3, 400),
        azimuth_rad=rng.uniform(0, 2 * np.pi, 400),
        elevation_rad=rng.uniform(0.05, 1.5, 400),
        range_rate_m_s=rng.uniform(-7000, 7000, 400),
    )
    verdict = associate(junk, catalogue())
    assert (verdict.index >= 0).mean() < 0.01
    assert set(verdict.reason[verdict.index < 0]) <= {Reason.NO_CANDIDATE, Reason.OUTSIDE_GATE}
    nowhere = associate(changed(real, source_id=np.full(400, "radar-99")), catalogue())
    assert (nowhere.reason == Reason.UNKNOWN_SENSOR).all()
    disguised = associate(changed(real, source_id=np.full(400, "optical-maui")), catalogue())
    assert (disguised.reason == Reason.UNKNOWN_SENSOR).all()
    silent = associate(changed(real, range_m=np.full(400, np.nan)), catalogue())
    assert (silent.reason == Reason.INCOMPLETE).all() and (silent.index == -1).all()
    strange = associate(changed(real, source_kind=np.full(400, "sonar")), catalogue())
    assert (strange.index == -1).all()


@pytest.mark.parametrize(
    ("kind", "apart_km", "precision", "recall"),
    [
        ("radar", 3.0, 0.85, 0.98),
        ("radar", 10.0, 0.92, 0.98),
        ("optical", 3.0, 0.70, 0.98),
        ("optical", 10.0, 0.75, 0.98),
    ],
)
def test_among_unknown_objects_and_false_detections_precision_and_recall_hold(
    kind: str, apart_km: float, precision: float, recall: float
) -> None:
    """One fifth of the observations each: of objects missing in the catalogue, of fragments this far (a sigma an axis)
    from a catalogued object, and false (within 5 milliradians of one). Two fifths are of catalogued objects."""
    truth, role, observations = _with_unknowns(kind, 600, apart_km, seed=22)
    known = np.setdiff1d(np.arange(len(catalogue())), truth[role == REMOVED])
    verdict = associate(observations, catalogue().take(known))
    given = verdict.index >= 0
    right = given & (role >= CATALOGUED)
    right[right] = known[verdict.index[right]] == truth[right]
    assert right.sum() / given.sum() > precision
    assert right.sum() / (role >= CATALOGUED).sum() > recall
    assert given[role == REMOVED].mean() < 0.02, "an unknown object on an orbit of its own is taken for no other"
    assert given[role == FALSE].mean() < 0.08


def test_verdict_on_an_observation_does_not_depend_on_the_others() -> None:
    _, radar = _spread_over_a_window("radar", 200, seed=6)
    _, optical = _spread_over_a_window("optical", 100, seed=7)
    together = stack(radar, optical)
    whole = associate(together, catalogue())
    order = np.random.default_rng(8).permutation(300)
    assert _columns_equal(whole, associate(together.take(order), catalogue()), order)
    some = np.arange(0, 300, 7)
    part = associate(together.take(some), catalogue())
    np.testing.assert_array_equal(part.index, whole.index[some])
    np.testing.assert_array_equal(part.reason, whole.reason[some])


def test_docked_objects_are_flagged_as_ambiguous() -> None:
    rng = np.random.default_rng(9)
    station = np.flatnonzero(catalogue().elements.norad_id == 25544)
    times = START_NS + np.arange(0, 86_400, 30, dtype=np.int64) * SECOND_NS
    _, r, v = catalogue().at(np.repeat(station, len(times)), times)
    names = np.full(len(times), "radar-8")
    observations = observe(names, times, r, v, rng)
    up = np.flatnonzero(observations.elevation_rad > 0.2)[:5]
    assert len(up)
    verdict = associate(observations.take(up), catalogue())
    assert (verdict.reason == Reason.AMBIGUOUS).all()
    found = np.concatenate([verdict.index, verdict.runner_up])
    _, r_found, _ = catalogue().at(found, np.tile(times[up], 2))
    assert (np.linalg.norm(r_found - np.tile(r[up], (2, 1)), axis=1) < 5.0).all()


def test_time_tag_error_widens_the_gate_by_the_objects_motion() -> None:
    truth, observations = _spread_over_a_window("radar", 200, seed=10)
    late = changed(observations, sensor_time_ns=observations.sensor_time_ns + 1_500_000_000)
    trusted = associate(late, catalogue())
    # What still passes are far, slow or badly known objects.
    assert (trusted.index == truth).mean() < 0.5
    doubted = associate(changed(late, clock_quality=np.full(200, "unknown")), catalogue())
    assert (doubted.index == truth).mean() > 0.9


def test_nothing_in_nothing_out() -> None:
    _, observations = _spread_over_a_window("radar", 5, seed=11)
    nothing = associate(observations.take(np.zeros(0, dtype=np.int64)), catalogue())
    assert len(nothing.index) == 0
    no_catalogue = associate(observations, catalogue().take(np.zeros(0, dtype=np.int64)))
    assert (no_catalogue.reason == Reason.NO_CANDIDATE).all()


def test_observation_columns_must_have_one_length_and_a_source() -> None:
    with pytest.raises(ValueError, match="source_id is missing"):
        ObservationArrays.from_columns({"source_kind": ["radar"], "sensor_time_ns": [0]})
    with pytest.raises(ValueError, match="range_m has shape"):
        ObservationArrays.from_columns(
            {"source_kind": ["radar"], "source_id": ["radar-1"], "sensor_time_ns": [0], "range_m": [1.0, 2.0]}
        )


@pytest.mark.parametrize("further_km", [0.0, 1.5])
@pytest.mark.parametrize("companions", [0, 60])
@pytest.mark.parametrize("kind", ["radar", "optical"])
def test_coarse_gate_loses_no_pair_the_fine_gate_accepts(kind: str, companions: int, further_km: float) -> None:
    # Against the exact residual of every observation with every object of a part of the catalogue, and a crowd about
    # each that is seen.
    truth, observations = _spread_over_a_window(kind, 40, seed=12)
    part = _accompanied(np.union1d(truth, np.arange(0, len(catalogue()), 20)), truth, companions)
    measurements = prepare(observations)
    gate = np.concatenate([[0.0], chi2.ppf(0.999, np.arange(1, 7))])
    rows, candidates = (grid.ravel() for grid in np.indices((40, len(part))))
    further = np.diag(np.repeat([further_km**2, 0.0], 3))
    every = _compare(measurements, part, rows, candidates, gate, part.at, further)
    accepted = set(zip(every.observation[every.inside].tolist(), every.candidate[every.inside].tolist(), strict=True))
    near = coarse_candidates(measurements, part, float(np.sqrt(gate[6])), further_km)
    found = set(zip(near[0].tolist(), near[1].tolist(), strict=True))
    assert len(accepted) >= 39 * (1 + companions // 20)
    assert not accepted - found


def test_in_a_crowd_little_more_is_compared_than_what_may_fit() -> None:
    # A stage that came apart minutes ago: a gate of kilometres about each piece holds thousands of pairs.
    truth, observations = _spread_over_a_window("radar", 40, seed=12)
    crowd = _accompanied(truth, truth, 1_000)
    measurements = prepare(observations)
    gate = np.concatenate([[0.0], chi2.ppf(0.999, np.arange(1, 7))])
    rows, candidates = coarse_candidates(measurements, crowd, float(np.sqrt(gate[6])))
    fitting = _compare(measurements, crowd, rows, candidates, gate, crowd.at, np.zeros((6, 6))).inside
    assert len(rows) < 4 * fitting.sum()
    assert fitting.sum() > 40 * 50


def _accompanied(part: np.ndarray, truth: np.ndarray, companions: int) -> Propagator:
    """The objects of ``part``, and about each of ``truth`` as many more that are some kilometres off."""
    rng = np.random.default_rng(5)
    about = catalogue().elements.take(np.repeat(truth, companions))
    off_deg = {
        name: getattr(about, name) + 0.03 * rng.normal(size=len(about.norad_id))
        for name in ("mean_anomaly_deg", "raan_deg", "inclination_deg")
    }
    parts = [catalogue().elements.take(part), dataclasses.replace(about, **off_deg)]
    names = ElementSets.__dataclass_fields__
    columns = {name: np.concatenate([getattr(elements, name) for elements in parts]) for name in names}
    return Propagator(ElementSets.from_columns(columns))


def test_what_the_radar_follows_as_one_is_decided_as_one() -> None:
    rng = np.random.default_rng(21)
    every = visible("radar", START_NS + 15 * SECOND_NS)
    truth, name, source, time_ns, states = [], [], [], [], []
    for number in range(150):
        row = int(rng.integers(len(every.index)))
        seen, sensor = int(every.index[row]), str(every.source_id[row])
        times = START_NS + np.arange(1, 30, 2) * SECOND_NS
        rows = np.full(len(times), seen)
        deviation = np.repeat(prior_draw(np.array([seen]), times[:1], rng), len(times), axis=0)
        states.append(np.hstack(displaced(rows, times, deviation, np.repeat(times[:1], len(times)))))
        truth.append(rows)
        name.append(np.full(len(times), f"{number}"))
        source.append(np.full(len(times), sensor))
        time_ns.append(times)
    index, times, state = np.concatenate(truth), np.concatenate(time_ns), np.concatenate(states)
    observations = observe(np.concatenate(source), times, state[:, :3], state[:, 3:], rng)
    alone = associate(observations, catalogue())
    together = associate(observations, catalogue(), tracks=np.concatenate(name))
    assert (together.index == index).mean() >= (alone.index == index).mean()
    assert (together.index == index).mean() > 0.99
    labels = np.stack([together.index, np.unique(np.concatenate(name), return_inverse=True)[1]])[:, together.index >= 0]
    assert len(np.unique(labels[1])) == len(np.unique(labels, axis=1).T), "a track is of one object"
    assert (together.reason == Reason.AMBIGUOUS).mean() <= (alone.reason == Reason.AMBIGUOUS).mean()
