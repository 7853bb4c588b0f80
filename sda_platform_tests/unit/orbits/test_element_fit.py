"""Elements from states: the round trip gives them back, and an arc of our own windows beats what was published."""

import dataclasses

import numpy as np
import pytest

from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.determination.element_fit import NoFit, fit_elements
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ElementSets, FloatArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import WindowFits
from sda_platform_tests.support.scenes import DAY_NS, SECOND_NS, START_NS, catalogue

OBJECTS = (25544, 20580, 27386, 43013)  # ISS, Hubble, Envisat, NOAA 20
HOUR_NS = 3600 * SECOND_NS


def elements_of(norad_id: int, **changed: float) -> ElementSets:
    row = int(np.flatnonzero(catalogue().elements.norad_id == norad_id)[0])
    return with_changes(catalogue().elements.take([row]), **changed)


def with_changes(elements: ElementSets, **changed: float) -> ElementSets:
    return dataclasses.replace(elements, **{name: getattr(elements, name) + by for name, by in changed.items()})


def windows_of(true: ElementSets, published: ElementSets, hours: FloatArray, sigma_km: float, seed: int) -> WindowFits:
    """Fits at these hours, as a sensor with ``sigma_km`` and the published prior would make them of the true orbit."""
    time_ns = START_NS + (hours * HOUR_NS).astype(np.int64)
    _, r, v = Propagator(true).at(np.zeros(len(hours), dtype=int), time_ns)
    truth = np.hstack([r, v])
    row = np.zeros(len(hours), dtype=int)
    _, r, v = Propagator(published).at(row, time_ns)
    prior_covariance = rtn_to_teme(element_covariance_rtn(Propagator(published), row, time_ns, r, v), r, v)
    prior = np.linalg.inv(prior_covariance)
    noise = np.array([sigma_km] * 3 + [sigma_km / 100] * 3)
    own = np.diag(noise**-2)
    seen = truth + np.random.default_rng(seed).normal(size=truth.shape) * noise
    covariance = np.linalg.inv(prior + own)
    weighted = np.einsum("wij,wj->wi", prior, np.hstack([r, v])) + seen @ own
    return WindowFits(
        group=np.zeros(len(hours), dtype=np.int64),
        epoch_ns=time_ns,
        state=np.einsum("wij,wj->wi", covariance, weighted),
        covariance=covariance,
        predicted=np.hstack([r, v]),
        prior_covariance=prior_covariance,
    )


def miss_km(elements: ElementSets, true: ElementSets, time_ns: int) -> float:
    places = [Propagator(each).at([0], [time_ns])[1][0] for each in (elements, true)]
    return float(np.linalg.norm(places[0] - places[1]))


@pytest.mark.parametrize("norad_id", OBJECTS)
def test_states_of_known_elements_give_them_back(norad_id: int) -> None:
    """Two days, a metre of noise, a published set that is off in every element, drag too."""
    true = elements_of(norad_id)
    published = with_changes(
        true,
        mean_anomaly_deg=0.01,
        mean_motion_rev_per_day=2e-5,
        inclination_deg=0.003,
        eccentricity=2e-5,
        bstar_per_earth_radius=0.5 * float(true.bstar_per_earth_radius[0]),
    )
    fitted = fit_elements(windows_of(true, published, np.linspace(0, 48, 97), 1e-3, 3), Propagator(published))
    assert fitted.converged
    drag = float(fitted.elements.bstar_per_earth_radius[0])
    assert drag == pytest.approx(float(true.bstar_per_earth_radius[0]), rel=0.05)
    now = START_NS + 48 * HOUR_NS
    assert miss_km(fitted.elements, true, now) < 0.01
    assert miss_km(fitted.elements, true, now + DAY_NS) < 0.03, "a day later, too"


@pytest.mark.parametrize("norad_id", OBJECTS)
def test_two_passes_of_a_radar_beat_the_published_set(norad_id: int) -> None:
    true = elements_of(norad_id)
    published = with_changes(true, mean_anomaly_deg=0.008, raan_deg=0.002)
    hours = np.concatenate([np.linspace(0, 0.15, 18), 1.6 + np.linspace(0, 0.15, 18)])
    fitted = fit_elements(windows_of(true, published, hours, 0.2, 4), Propagator(published))
    now = START_NS + 2 * HOUR_NS
    assert miss_km(fitted.elements, true, now) < miss_km(published, true, now) / 2.5
    later = now + 3 * HOUR_NS
    assert miss_km(fitted.elements, true, later) < miss_km(published, true, later)
    sigma = np.sqrt(np.trace(fitted.covariance_teme[:3, :3]))
    assert sigma < np.sqrt(np.trace(fitted.published_covariance_teme[:3, :3])) / 5
    assert miss_km(fitted.elements, true, int(fitted.elements.epoch_time_ns[0])) < 4 * sigma


def test_a_short_arc_leaves_drag_and_period_as_they_were_published() -> None:
    true = elements_of(25544)
    published = with_changes(true, mean_anomaly_deg=0.008)
    fitted = fit_elements(windows_of(true, published, np.linspace(0, 0.1, 10), 0.1, 5), Propagator(published))
    assert fitted.elements.bstar_per_earth_radius[0] == pytest.approx(published.bstar_per_earth_radius[0], rel=0.02)
    assert fitted.elements.mean_motion_rev_per_day[0] == pytest.approx(published.mean_motion_rev_per_day[0], abs=2e-3)


def test_a_published_set_that_decayed_is_refused_with_the_reason() -> None:
    true = elements_of(25544)
    fits = windows_of(true, true, np.linspace(0, 1, 5), 0.1, 6)
    with pytest.raises(NoFit, match="SGP4 refuses the published set"):
        fit_elements(fits, Propagator(with_changes(true, bstar_per_earth_radius=5.0, epoch_time_ns=-40 * DAY_NS)))
