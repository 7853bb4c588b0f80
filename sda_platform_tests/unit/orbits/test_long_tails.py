"""Long tails: Student's t as Gaussians of several sizes, and the probability of collision by it."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from sda_platform.orbits.long_tails import GAUSSIAN, Tails, scaled, share_inside, sizes, widening
from sda_platform.orbits.risk.best_probability import EXHAUSTED, best_probabilities
from sda_platform.orbits.risk.gaussian_parts import parts_of, probability_2d
from sda_platform.orbits.risk.levels import DILUTED
from sda_platform.orbits.risk.validity import Encounters

DEGREES = [1.0, 1.2, 2.0, 3.5, 6.0]


@pytest.mark.parametrize("degrees", DEGREES)
def test_the_gaussians_hold_as_much_as_the_distribution_and_95_percent_where_stated(degrees: float) -> None:
    weight, variance = (each[0] for each in sizes(np.array([degrees])))
    for part, within in ((0.5, 0.02), (0.95, 0.025), (0.999, 0.002)):
        square = 3 * stats.f.ppf(part, 3, degrees) / widening(np.array([degrees]))[0]
        assert share_inside(np.array([square]), np.array([degrees]))[0] == pytest.approx(part, abs=1e-9)
        assert (weight * stats.chi2.cdf(square / variance, 3)).sum() == pytest.approx(part, abs=within)
    assert stats.chi2.ppf(0.95, 3) * widening(np.array([degrees]))[0] == pytest.approx(
        3 * stats.f.ppf(0.95, 3, degrees)
    )


def test_a_gaussian_is_itself() -> None:
    weight, variance = sizes(np.array([GAUSSIAN, 2.0]))
    assert weight[0].tolist() == [1, *[0] * (len(weight[0]) - 1)]
    assert set(variance[0].tolist()) == {1}
    assert widening(np.array([GAUSSIAN])).tolist() == [1.0]
    assert share_inside(np.array([stats.chi2.ppf(0.95, 3)]), np.array([GAUSSIAN]))[0] == pytest.approx(0.95)


def passes(miss_sigmas: float, degrees: tuple[float, float], sigma_km: float = 1.0, steady: float = 0.0) -> Encounters:
    """A head-on pass of round errors, ``miss_sigmas`` of the first object apart; the second is known well."""
    covariance = np.diag([1.0, 1.0, 1.0, 1e-9, 1e-9, 1e-9])[None] * sigma_km**2
    r2 = np.array([[7000.0 + miss_sigmas * sigma_km, 0.0, 0.0]])
    tails = tuple(Tails(np.array([each]), steady * covariance) for each in degrees)
    return Encounters(
        np.array([[7000.0, 0.0, 0.0]]), np.array([[0.0, 7.5, 0.0]]), covariance,
        r2, np.array([[0.0, -7.5, 1e-3]]), 1e-6 * covariance, np.array([0.01]), tails=(tails[0], tails[1]),
    )  # fmt: skip


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("miss", [0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 6.0, 10.0, 20.0, 30.0])
def test_the_probability_is_that_of_the_density_of_students_t_in_the_plane(degrees: float, miss: float) -> None:
    scale = 1 / np.sqrt(widening(np.array([degrees]))[0])
    density = (1 + (miss / scale) ** 2 / degrees) ** (-(degrees + 2) / 2) / (2 * np.pi * scale**2)
    found = probability_2d(passes(miss, (degrees, GAUSSIAN)))[0]
    assert found == pytest.approx(density * np.pi * 0.01**2, rel=0.025)


@pytest.mark.parametrize("degrees", [(1.2, 1.2), (1.0, 6.0), (3.5, 2.0)])
@pytest.mark.parametrize("miss", [0.0, 2.0, 7.7, 20.0])
def test_the_probability_of_two_tails_is_the_integral_over_both_sizes(
    degrees: tuple[float, float], miss: float
) -> None:
    one = passes(miss, degrees)
    both = dataclasses.replace(one, covariance_2=0.3 * one.covariance_1)
    log_precision = np.linspace(-30.0, 4.0, 800)
    density = 0.0
    (w_1, v_1), (w_2, v_2) = (
        (
            np.exp(stats.gamma.logpdf(np.exp(log_precision), each / 2, scale=2 / each) + log_precision),
            np.exp(-log_precision) / widening(np.array([each]))[0],
        )
        for each in degrees
    )
    variance = v_1[:, None] + 0.3 * v_2
    density = (w_1[:, None] * w_2 * np.exp(-(miss**2) / 2 / variance) / (2 * np.pi * variance)).sum()
    judged = density * (log_precision[1] - log_precision[0]) ** 2 * np.pi * 0.01**2
    assert probability_2d(both)[0] == pytest.approx(judged, rel=0.03)
    assert best_probabilities(both).probability[0] == pytest.approx(judged, rel=0.03)


@pytest.mark.parametrize("degrees", [0.0, -1.0, np.nan, 201.0, 2000.0, 1e300])
def test_what_is_no_number_of_degrees_or_nearly_gaussian_is_gaussian(degrees: float) -> None:
    found, plain = (best_probabilities(passes(1.0, (each, each))) for each in (degrees, GAUSSIAN))
    assert found.probability.tolist() == plain.probability.tolist()
    assert found.flags == plain.flags


def test_a_covariance_without_the_steady_part_has_the_tail_as_a_whole() -> None:
    whole = passes(0.5, (100.0, GAUSSIAN))
    foreign = dataclasses.replace(whole, tails=(Tails(np.array([100.0]), 25.0 * whole.covariance_1), whole.tails[1]))  # type: ignore[index]
    assert best_probabilities(foreign).probability[0] == best_probabilities(whole).probability[0]
    assert best_probabilities(foreign).flags == best_probabilities(whole).flags


def test_an_unknown_steady_part_or_covariance_leaves_a_gaussian() -> None:
    whole = passes(0.5, (2.0, GAUSSIAN))
    unknown = dataclasses.replace(whole, tails=(Tails(np.array([2.0]), np.full((1, 6, 6), np.nan)), whole.tails[1]))  # type: ignore[index]
    assert best_probabilities(unknown).flags == best_probabilities(dataclasses.replace(whole, tails=None)).flags
    nothing = dataclasses.replace(whole, covariance_1=np.full((1, 6, 6), np.nan))
    assert np.isnan(probability_2d(nothing)[0])


def test_a_missing_covariance_stays_missing_and_its_bound_regards_the_tails_of_the_other() -> None:
    whole = passes(1.0, (1.2, 1.2))
    half = dataclasses.replace(whole, covariance_2=0.0 * whole.covariance_2)
    found, plain = best_probabilities(half), best_probabilities(dataclasses.replace(half, tails=None))
    assert "covariance_missing" in found.flags[0] and found.valid_2d == [None]
    maximum = found.two_dimensional.maximum_probability[0]
    assert maximum >= found.probability[0]
    assert maximum != plain.two_dimensional.maximum_probability[0]
    neither = dataclasses.replace(half, covariance_1=0.0 * half.covariance_1)
    assert "covariance_missing" in best_probabilities(neither).flags[0]
    assert np.isnan(best_probabilities(neither).probability_for_risk[0])


def test_a_pass_without_relative_motion_has_an_answer_with_long_tails_too() -> None:
    one = passes(0.5, (6.0, 6.0), sigma_km=0.05)
    still = dataclasses.replace(one, v2_km_s=one.v1_km_s, radius_km=np.array([1e-4]))
    found, plain = best_probabilities(still), best_probabilities(dataclasses.replace(still, tails=None))
    assert found.probability[0] == pytest.approx(plain.probability[0], rel=0.5)
    by_one = dataclasses.replace(still, tails=passes(0.5, (3.0, GAUSSIAN)).tails)
    parts = parts_of(by_one)
    alone = best_probabilities(parts.passes).probability
    whole = best_probabilities(by_one).probability[0]
    # The likely sizes stand for the others: 10 % more here.
    np.testing.assert_allclose(whole, parts.weight @ alone / parts.weight.sum(), rtol=0.15)


def test_a_slow_pass_takes_one_budget_for_the_sizes_that_add_most() -> None:
    sigma = np.array([0.1, 1.5, 0.1, 1.5e-3, 1e-4, 1e-4])
    covariance = np.diag(sigma**2)
    covariance[1, 3] = covariance[3, 1] = -0.9 * sigma[1] * sigma[3]
    r, v = np.array([[7100.0, 0, 0]]), np.array([[0, 7.4927, 0]])
    apart_km, slower_km_s = np.array([0.2, 1.5, -0.1]), np.array([0.001, 0, 0.002])
    tails = Tails(np.array([3.0]), np.zeros((1, 6, 6)))
    slow = Encounters(
        r, v, covariance[None], r + apart_km, v + slower_km_s, covariance[None], np.array([0.02]),
        tails=(tails, tails),
    )  # fmt: skip
    whole, cut, nothing = (best_probabilities(slow, most_evaluations=most) for most in (10**7, 80_000, 1_000))
    assert whole.method == cut.method != nothing.method
    assert cut.probability[0] == pytest.approx(whole.probability[0], rel=0.05)
    assert [EXHAUSTED in each.flags[0] for each in (whole, cut, nothing)] == [False, False, True]
    assert whole.probability[0] != nothing.probability[0] == nothing.two_dimensional.probability[0]


def test_results_do_not_depend_on_what_is_assessed_beside() -> None:
    rng = np.random.default_rng(2)
    each = [passes(float(rng.uniform(0, 12)), tuple(rng.uniform(1, 6, 2))) for _ in range(12)]
    columns = [
        np.concatenate([getattr(one, name) for one in each])
        for name in ("r1_km", "v1_km_s", "covariance_1", "r2_km", "v2_km_s", "covariance_2", "radius_km")
    ]
    tails = [
        Tails(
            *(
                np.concatenate([getattr(one.tails[side], name) for one in each if one.tails])
                for name in ("degrees", "steady")
            )
        )
        for side in (0, 1)
    ]
    together = best_probabilities(Encounters(*columns, tails=(tails[0], tails[1])))
    assert together.probability.tolist() == [best_probabilities(one).probability[0] for one in each]


def test_with_long_tails_a_near_miss_is_likelier_and_so_is_a_far_one() -> None:
    for miss, is_likelier in ((0.1, True), (1.5, False), (6.0, True)):
        tailed, plain = (probability_2d(passes(miss, (each, GAUSSIAN)))[0] for each in (2.0, GAUSSIAN))
        assert (tailed > plain) == is_likelier, miss


def test_what_sgp4_lacks_keeps_its_size() -> None:
    one = passes(0.0, (1.5, GAUSSIAN), steady=1.0)
    assert probability_2d(one)[0] == pytest.approx(probability_2d(passes(0.0, (GAUSSIAN, GAUSSIAN)))[0], rel=1e-9)
    covariance, tails = np.diag([4.0] * 6)[None], Tails(np.array([2.0]), np.diag([1.0] * 6)[None])
    np.testing.assert_allclose(scaled(covariance, tails.steady, np.array([0.5]))[0].diagonal(), 2.5)
    np.testing.assert_allclose(scaled(covariance, tails.steady, np.array([10.0]))[0].diagonal(), 31.0)


def test_the_parts_of_a_pass_weigh_nearly_one_and_a_gaussian_pass_is_its_only_part() -> None:
    both = passes(1.0, (2.0, 3.0))
    parts = parts_of(both)
    assert 0.9 < parts.weight.sum() < 1 + 1e-9, "what adds nothing is left out"
    assert len(parts.owner) > 20
    plain = dataclasses.replace(both, tails=None)
    assert len(parts_of(plain).owner) == 1
    np.testing.assert_array_equal(parts_of(plain).passes.covariance_1, both.covariance_1)


def test_the_best_probability_of_gaussian_errors_does_not_depend_on_whether_tails_are_stated() -> None:
    gaussian = passes(1.0, (GAUSSIAN, GAUSSIAN))
    with_tails, without = (best_probabilities(each) for each in (gaussian, dataclasses.replace(gaussian, tails=None)))
    assert with_tails.probability.tolist() == without.probability.tolist()
    assert with_tails.flags == without.flags


def test_a_probability_is_diluted_if_smaller_errors_would_raise_it() -> None:
    near, far = (best_probabilities(passes(miss, (2.0, GAUSSIAN))) for miss in (0.1, 6.0))
    assert DILUTED in near.flags[0]
    assert DILUTED not in far.flags[0]
    assert far.two_dimensional.maximum_probability[0] >= far.probability[0]


def test_slow_passes_with_long_tails_are_followed_along_their_orbits_and_their_answers_averaged() -> None:
    one = passes(0.5, (3.0, GAUSSIAN), sigma_km=0.05)
    slow = dataclasses.replace(one, v2_km_s=one.v1_km_s + np.array([[0.0, 0.0, 1e-4]]), radius_km=np.array([1e-4]))
    found = best_probabilities(slow)
    assert found.method[0] != "FOSTER-1992"
    parts = parts_of(slow)
    alone = best_probabilities(parts.passes).probability
    np.testing.assert_allclose(found.probability[0], parts.weight @ alone, rtol=0.05)
