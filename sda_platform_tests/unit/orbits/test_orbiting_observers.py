"""Observers in orbit: their records, what their position adds to the noise, the gate of their rays, and association."""

import dataclasses
import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.observations import decode_segments
from sda_platform.formats.optical import OBSERVER
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.association import Reason, _compare, associate
from sda_platform.orbits.tracking.gating import coarse_candidates
from sda_platform.simulation.constellation import Constellation
from sda_platform.simulation.corruption import FaultRates
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.scenarios import Manoeuvre, with_manoeuvre
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.world import SimulatedSegment, simulate
from sda_platform_tests.support.observations import decode_optical
from sda_platform_tests.support.scenes import catalogue

START_NS = parse_iso_ns("2024-11-01T00:00:00Z")
SECONDS, RATE = 5, 60
PLAN = ObservingPlan(constellation=Constellation(rate_per_s=RATE))
NO_FAULTS = FaultRates(**dict.fromkeys((field.name for field in dataclasses.fields(FaultRates)), 0.0))


@cache
def segments() -> tuple[SimulatedSegment, ...]:
    """Five seconds of what real Starlink satellites see of the real catalogue."""
    chosen = decode_element_sets(reference_catalogue(), segment_format="omm-csv")["norad_id"].to_pylist()[::3]
    made = simulate(
        "constellation", start_time_ns=START_NS, duration_s=SECONDS, seed=4, objects=chosen, plan=PLAN, rates=NO_FAULTS
    )
    return tuple(made)


@cache
def seen() -> tuple[np.ndarray, ObservationArrays]:
    """The object of each observation, and the observations as estimation reads them."""
    rows = decode_segments([(each.data, each.meta) for each in segments()])
    assert rows["error"].null_count == rows.num_rows
    truth = pa.concat_tables([each.truth for each in segments()])
    of = dict(zip(truth["observation_id"].to_pylist(), truth["norad_id"].to_pylist(), strict=True))
    columns = {
        name: rows[name].to_numpy(zero_copy_only=False)
        for name in ObservationArrays.__dataclass_fields__
        if name in rows.column_names
    }
    return np.array([of[name] for name in rows["observation_id"].to_pylist()]), ObservationArrays.from_columns(columns)


def test_a_constellation_reports_its_rate_with_where_each_observer_was() -> None:
    assert {each.feed for each in segments()} == {"optical"}
    lines = [json.loads(line) for each in segments() for line in each.data.splitlines()]
    assert 0.9 * SECONDS * RATE < len(lines) <= SECONDS * RATE
    assert all(line["site_id"].startswith("orbit-") and set(OBSERVER) <= set(line) for line in lines)
    height_km = [np.linalg.norm([line[name] for name in OBSERVER[:3]]) / 1e3 - 6378 for line in lines]
    assert 200 < min(height_km) < max(height_km) < 700
    again = simulate(
        "constellation",
        start_time_ns=START_NS,
        duration_s=2,
        seed=4,
        objects=decode_element_sets(reference_catalogue(), segment_format="omm-csv")["norad_id"].to_pylist()[::3],
        plan=PLAN,
        rates=NO_FAULTS,
    )
    first = [json.loads(line) for each in again for line in each.data.splitlines()]
    early = [line["obs_id"] for line in lines if line["timestamp_ns"] < START_NS + 1_500_000_000]
    assert {line["obs_id"] for line in first} == set(early), "a shorter simulation shows the beginning of a longer one"


def test_their_observations_find_their_objects_in_the_real_catalogue_and_never_the_observer() -> None:
    truth, observations = seen()
    measurements = prepare(observations)
    assert measurements.usable.all() and measurements.from_orbit.all()
    verdict = associate(observations, catalogue())
    found = np.where(verdict.index >= 0, catalogue().elements.norad_id[verdict.index], -1)
    assert (found == truth).mean() > 0.98
    assert ((found != truth) & (found >= 0)).mean() < 0.01
    observer = np.array([int(name.rpartition("-")[2]) for name in observations.source_id])
    assert not (found == observer).any()


def test_without_its_object_an_observation_is_of_nothing() -> None:
    truth, observations = seen()
    rows = np.flatnonzero(~np.isin(catalogue().elements.norad_id, truth))
    verdict = associate(observations, catalogue().take(rows))
    assert (verdict.index < 0).mean() > 0.98
    assert set(verdict.reason[verdict.index < 0].tolist()) <= {
        Reason.NO_CANDIDATE, Reason.OUTSIDE_GATE, Reason.ASSIGNED_ELSEWHERE
    }  # fmt: skip


@pytest.mark.parametrize("further_km", [0.0, 1.5])
def test_the_gate_of_rays_loses_no_pair_that_the_fine_gate_accepts(further_km: float) -> None:
    _, observations = seen()
    part = observations.take(np.arange(0, len(observations), 10))
    near = catalogue().take(np.arange(0, len(catalogue()), 5))
    measurements = prepare(part)
    gate = np.concatenate([[0.0], chi2.ppf(0.999, np.arange(1, 7))])
    rows, candidates = coarse_candidates(measurements, near, float(np.sqrt(gate[6])), further_km)
    every = np.repeat(np.arange(len(part)), len(near)), np.tile(np.arange(len(near)), len(part))
    gap_km = np.linalg.norm(
        near.at(every[1], part.sensor_time_ns[every[0]])[1] - measurements.site_km[every[0]], axis=1
    )
    away = np.flatnonzero(gap_km > 200.0)
    further = np.diag(np.repeat([further_km**2, 0.0], 3))
    inside = _compare(measurements, near, every[0][away], every[1][away], gate, near.at, further).inside
    accepted = set(zip(every[0][away][inside].tolist(), every[1][away][inside].tolist(), strict=True))
    assert accepted and accepted <= set(zip(rows.tolist(), candidates.tolist(), strict=True))


def test_the_observers_position_error_adds_to_the_noise_with_the_square_of_its_angle() -> None:
    truth, observations = seen()
    row = {norad_id: n for n, norad_id in enumerate(catalogue().elements.norad_id.tolist())}
    index = np.array([row[norad_id] for norad_id in truth.tolist()])
    _, r, v = catalogue().at(index, observations.sensor_time_ns)
    exact = prepare(dataclasses.replace(observations, position_sigma_m=np.full(len(observations), 1e-3)))
    vague = prepare(dataclasses.replace(observations, position_sigma_m=np.full(len(observations), 500.0)))
    added = vague.linearise(r, v).noise - exact.linearise(r, v).noise
    distance_km = np.linalg.norm(r - vague.site_km, axis=1)
    for axis in (0, 1):
        np.testing.assert_allclose(added[:, axis, axis], (0.5 / distance_km) ** 2, rtol=1e-3)


@pytest.mark.parametrize("missing", OBSERVER)
def test_an_observer_states_all_of_its_state_or_nothing(missing: str) -> None:
    lines = [json.loads(line) for line in segments()[0].data.splitlines()][:20]
    good, bad = dict(lines[0]), {name: value for name, value in lines[1].items() if name != missing}
    ground = {name: value for name, value in lines[2].items() if name not in OBSERVER}
    others = [json.dumps(line).encode() for line in lines[3:]]
    rows = decode_optical(*(json.dumps(line).encode() for line in (good, bad, ground)), *others).to_pylist()
    assert [row["error_kind"] for row in rows] == [None, "missing_field", None] + [None] * len(others)
    assert missing in rows[1]["error"]
    assert rows[0]["x_m"] == good["observer_x_m"] and rows[0]["position_sigma_m"] == 5.0
    assert rows[2]["x_m"] is None and rows[2]["position_sigma_m"] is None


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"observer_x_m": 1.0, "observer_y_m": 1.0, "observer_z_m": 1.0}, "geocentric_distance_m"),
        ({"observer_vx_m_s": 4e8}, "speed_m_s"),
        ({"observer_sigma_m": 0.0}, "position_sigma_m"),
    ],
)
def test_an_impossible_observer_is_refused(change: dict[str, float], column: str) -> None:
    line = {**json.loads(segments()[0].data.splitlines()[0]), **change}
    (row,) = decode_optical(json.dumps(line).encode()).to_pylist()
    assert row["error_kind"] == "out_of_range" and column in row["error"]


def test_a_planned_manoeuvre_changes_the_path_from_its_time_on_by_what_was_planned() -> None:
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    norad_id = int(table["norad_id"][0].as_py())
    sky = Sky.of_catalogue(table, objects=[norad_id], seed=1, catalogue_error_s=0.05, start_time_ns=START_NS)
    burn = Manoeuvre(norad_id, START_NS + 1800 * 10**9, (0.5, -2.0, 1.0))
    changed = with_manoeuvre(sky, burn)
    times = burn.time_ns + np.array([-60, -1, 0, 1, 60]) * 10**9
    before = sky.states(np.zeros(5, np.int64), times)
    after = changed.states(np.array([0, 0, 1, 1, 1]), times)
    assert not after[0].any()
    np.testing.assert_allclose(after[1][:2], before[1][:2], atol=1e-9)
    np.testing.assert_allclose(after[1][2], before[1][2], atol=1e-5)
    dv = (after[2] - before[2])[2] @ rtn_basis(before[1][2:3], before[2][2:3])[0].T
    np.testing.assert_allclose(1e3 * dv, burn.dv_rtn_m_s, atol=1e-3)
    assert changed.states(np.array([1, 0]), times[[1, 3]])[0].all(), "one path at a time"
    with pytest.raises(ValueError, match="not in the sky"):
        with_manoeuvre(sky, dataclasses.replace(burn, norad_id=1))
