"""Probability of collision against published vectors and cases, and against brute force."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.risk.levels import probability_text, risk_level
from sda_platform.orbits.risk.object_kinds import HARD_BODY_RADIUS_M, object_type
from sda_platform.orbits.risk.probability import (
    ShortEncounterRisk,
    assess,
    collision_probability_2d,
    maximum_probability_2d,
)
from sda_platform.orbits.screening.encounter import encounter_plane, relative_states

DATA = Path(__file__).parents[2] / "data" / "probability"
VECTORS = json.loads((DATA / "orekit_2d_vectors.json").read_text())
ALFANO = json.loads((DATA / "alfano_2009_cases.json").read_text())
# Two vectors record an approximation's own error, beyond their tolerance. The other methods' vectors of the
# same inputs, and brute force below, agree with us.
APPROXIMATE = {
    ("Alfano2005", "CDM test case 2"): 0.06,
    ("Laas2015", "Alfano test case 5"): 1e-4,
}


def arguments(vector: dict[str, float]) -> tuple[float, ...]:
    return tuple(vector[name] for name in ("xm", "ym", "sigmaX", "sigmaY", "radius"))


def brute_force(x: float, y: float, sigma_x: float, sigma_y: float, radius: float) -> float:
    angle = np.linspace(0, np.pi, 400_001)
    half_chord, offset = radius * np.sin(angle), radius * np.cos(angle) - abs(x)
    density = np.exp(-0.5 * (offset / sigma_x) ** 2) / (np.sqrt(2 * np.pi) * sigma_x)
    chord = ndtr((half_chord - abs(y)) / sigma_y) - ndtr((-half_chord - abs(y)) / sigma_y)
    return float(np.trapezoid(density * chord * half_chord, angle))


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{v['method']}-{v['name']}" for v in VECTORS])
def test_published_encounter_plane_vectors(vector) -> None:  # type: ignore[no-untyped-def]
    key = (vector["method"], vector["name"])
    tolerance = vector["expected"] * APPROXIMATE[key] if key in APPROXIMATE else vector["abs_tol"]
    assert collision_probability_2d(*arguments(vector))[0] == pytest.approx(vector["expected"], rel=0, abs=tolerance)


@pytest.mark.parametrize("vector", VECTORS[:20], ids=[v["name"] for v in VECTORS[:20]])
def test_quadrature_agrees_with_brute_force_to_nine_digits(vector) -> None:  # type: ignore[no-untyped-def]
    expected = brute_force(*arguments(vector))
    assert collision_probability_2d(*arguments(vector))[0] == pytest.approx(expected, rel=1e-9)


positive = st.floats(0.1, 1e4)


@settings(max_examples=60, deadline=None)
@given(
    x=st.floats(-300, 300),
    y=st.floats(-300, 300),
    sigma_x=positive,
    sigma_y=positive,
    radius=st.floats(0.5, 50),
)
def test_quadrature_agrees_with_brute_force_anywhere(
    x: float, y: float, sigma_x: float, sigma_y: float, radius: float
) -> None:
    expected = brute_force(x, y, sigma_x, sigma_y, radius)
    assert collision_probability_2d(x, y, sigma_x, sigma_y, radius)[0] == pytest.approx(expected, rel=1e-6, abs=1e-15)


@settings(max_examples=60, deadline=None)
@given(x=st.floats(0, 300), y=st.floats(0, 300), sigma_x=positive, sigma_y=positive, radius=st.floats(0.5, 50))
def test_probability_is_symmetric_bounded_by_its_maximum_and_grows_with_the_radius(
    x: float, y: float, sigma_x: float, sigma_y: float, radius: float
) -> None:
    (probability,) = collision_probability_2d(x, y, sigma_x, sigma_y, radius)
    assert collision_probability_2d(-y, x, sigma_y, sigma_x, radius)[0] == pytest.approx(probability, rel=1e-9)
    assert probability <= maximum_probability_2d(x, y, sigma_x, sigma_y, radius)[0][0] * (1 + 1e-6) <= 1 + 1e-6
    assert probability <= collision_probability_2d(x, y, sigma_x, sigma_y, 2 * radius)[0] * (1 + 1e-9)


def test_maximum_of_a_small_body_is_the_closed_form() -> None:
    # Alfriend et al. 1999: R^2 / (e d^2 s_x s_y) with d the Mahalanobis distance.
    expected = 1.0 / (np.e * (300 / 50) ** 2 * 50 * 200)
    (largest,), (scale,) = maximum_probability_2d(300.0, 0.0, 50.0, 200.0, 1.0)
    assert largest == pytest.approx(expected, rel=1e-3)
    # Its variances are half the squared Mahalanobis distance.
    assert scale == pytest.approx(6 / np.sqrt(2), rel=1e-3)
    assert collision_probability_2d(300.0, 0.0, 50.0 * scale, 200.0 * scale, 1.0)[0] == pytest.approx(largest, rel=1e-9)


def alfano_assessment(case: Mapping[str, Any]) -> ShortEncounterRisk:
    at = {name: np.array(value) for name, value in case["tca"].items()}
    dr_km, dv_km_s = (at["r2_m"] - at["r1_m"]) / 1e3, (at["v2_mps"] - at["v1_mps"]) / 1e3
    covariance_km2 = (at["cov1_eci"] + at["cov2_eci"])[:3, :3] / 1e6
    return assess(dr_km, dv_km_s, covariance_km2, case["combined_hard_body_radius_m"])


@pytest.mark.parametrize("case", ALFANO[:11], ids=[f"case-{c['case']}" for c in ALFANO[:11]])
def test_alfano_2009_cases_give_their_published_linear_probability(case: Mapping[str, Any]) -> None:
    # Case 5's published value carries its own 50-step error of 1e-4; the others agree to 6e-5 or better.
    assert alfano_assessment(case).probability[0] == pytest.approx(case["pc_linear_alfano_n100"], rel=2e-4)


@pytest.mark.parametrize("number", [3, 5, 6])
def test_where_motion_is_linear_the_2d_probability_is_the_monte_carlo_one(number: int) -> None:
    case = ALFANO[number - 1]
    assert alfano_assessment(case).probability[0] == pytest.approx(case["pc_monte_carlo_1e8"], rel=0.01)


def test_real_conjunctions_have_their_published_probability_within_half_a_percent() -> None:
    rows = np.loadtxt(DATA / "esa_2170_conjunctions.csv.gz", delimiter=",", skiprows=1)
    radius_km, published = rows[:, 0], rows[:, 25]
    sides = []
    for first in (1, 13):
        covariance = np.zeros((len(rows), 6, 6))
        for column, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)], first + 6):
            covariance[:, i, j] = covariance[:, j, i] = rows[:, column]
        r, v = rows[:, first : first + 3], rows[:, first + 3 : first + 6]
        sides.append((r, v, rtn_to_teme(covariance, r, v)[:, :3, :3]))
    (r1, v1, c1), (r2, v2, c2) = sides
    found = assess(r2 - r1, v2 - v1, c1 + c2, 1000 * radius_km).probability
    assert len(found) == 2170
    np.testing.assert_allclose(found, published, rtol=0.005)


def test_a_pass_without_relative_motion_has_no_2d_probability_and_an_unknown_risk() -> None:
    (probability,) = alfano_assessment(ALFANO[11]).probability
    assert np.isnan(probability)
    assert risk_level(probability) == "unknown"


def test_the_encounter_plane_does_not_depend_on_the_frame() -> None:
    rng = np.random.default_rng(5)
    dr, dv = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    root = rng.normal(size=(50, 3, 3))
    covariance = root @ root.swapaxes(-1, -2)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    here = encounter_plane(dr, dv, covariance)
    there = encounter_plane(dr @ turn.T, dv @ turn.T, turn @ covariance @ turn.T)
    for name in ("x_km", "y_km", "sigma_x_km", "sigma_y_km"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-7, atol=1e-9)


def test_an_indefinite_covariance_is_repaired_and_flagged() -> None:
    plane = encounter_plane([[0.1, 0, 0]], [[0, 0, 7.0]], np.diag([-1e-3, 0.04, 0.04])[None])
    assert plane.repaired.tolist() == [True]
    assert plane.sigma_x_km[0] == pytest.approx(1e-5)
    assert plane.sigma_y_km[0] == pytest.approx(0.2)


def test_relative_states_are_in_the_primary_s_radial_transverse_normal_axes() -> None:
    relative = relative_states([[7000, 0, 0]], [[0, 7.5, 0]], [[7001, 2, 3]], [[0, 7.5, 10]])
    np.testing.assert_allclose(relative.position_rtn_km, [[1, 2, 3]])
    np.testing.assert_allclose(relative.velocity_rtn_km_s, [[0, 0, 10]])
    assert relative.miss_distance_km[0] == pytest.approx(np.sqrt(14))
    assert relative.relative_speed_km_s[0] == pytest.approx(10)


@pytest.mark.parametrize(
    ("name", "kind", "radius_m"),
    [
        ("ISS (ZARYA)", "payload", 5.0),
        ("SL-16 R/B", "rocket body", 5.0),
        ("DELTA 2 R/B(1)", "rocket body", 5.0),
        ("COSMOS 2251 DEB", "debris", 0.5),
        ("DEMO FRAGMENT", "debris", 0.5),
        ("DEBUT (ORIZURU)", "payload", 5.0),
        ("OBJECT A", "unknown", 1.0),
        ("", "unknown", 1.0),
        (None, "unknown", 1.0),
    ],
)
def test_hard_body_radius_follows_the_kind_of_object(name: str | None, kind: str, radius_m: float) -> None:
    assert object_type(name) == kind
    assert HARD_BODY_RADIUS_M[kind] == radius_m


def test_risk_levels_start_at_their_thresholds() -> None:
    assert risk_level([1e-4, 9.99e-5, 1e-7, 9e-8, 0.0]).tolist() == [
        "red",
        "yellow",
        "yellow",
        "green",
        "green",
    ]


def test_digits_of_a_probability_are_shown_as_far_as_they_say_something() -> None:
    shown = [probability_text(each, 1) for each in (0.5, 2.5e-7, 1e-15, 9.9e-16, 2.5e-189, 0.0)]
    assert shown == ["5.0e-01", "2.5e-07", "1.0e-15", "<1e-15", "<1e-15", "<1e-15"]
