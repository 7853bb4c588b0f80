"""Whether refined element sets are better than published ones on orbits that SGP4 does not describe.

    python benchmarks/refined_elements.py --objects 24

Truth is integrated numerically (EGM96 36 x 36, Moon, Sun, drag). Published sets are SGP4 elements fitted to 36 hours of
it. Sensors then see each object in one pass an orbit for six hours: six windows of 30 s a pass. Elements are refined
as in the pipeline, with and without the rule that a fit to the earlier windows must predict the later ones better.
Errors are those of the two hours after the last window.
"""

import argparse

import numpy as np

from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.determination.element_fit import NoFit, fit_elements
from sda_platform.orbits.determination.held_back import predict_held_back
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import WindowFits

SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS
EPOCH_NS = int(np.datetime64("2024-11-01T00:00:00", "ns").astype(np.int64))
_NOISE = np.array([0.05] * 3 + [5e-4] * 3)  # of a window: km, km/s
_FIT_NOISE = np.array([0.3] * 3 + [3e-4] * 3)


def main() -> None:
    """Print errors and claims of published and refined sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows = [found for _ in range(options.objects) if (found := one_object(rng)) is not None]
    published, refined, claimed, accepted = (np.array(column) for column in zip(*rows, strict=True))
    accepted = accepted.astype(bool)
    print(f"{len(rows)} objects; median errors of two hours: published {_m(published)}, refined {_m(refined)}")
    print(f"without the rule: {np.sum(refined > published)} of {len(rows)} refined sets are worse")
    print(
        f"with the rule: {accepted.sum()} accepted, of these {np.sum((refined > published)[accepted])} worse; "
        f"published {_m(published[accepted])}, refined {_m(refined[accepted])}, claimed sigma {_m(claimed[accepted])}"
    )


def one_object(rng: np.random.Generator) -> tuple[float, float, float, bool] | None:
    """Errors (km, rms of two hours) of the published and the refined set, claimed sigma, and whether it is accepted."""
    start, forces = random_orbit(rng)
    fit_ns = EPOCH_NS + np.arange(0, 36 * 3600 + 1, 900, dtype=np.int64) * SECOND_NS
    passes_ns = [fit_ns[-1] + n * 97 * 60 * SECOND_NS + np.arange(6) * 30 * SECOND_NS for n in range(1, 4)]
    seen_ns = np.concatenate(passes_ns).astype(np.int64)
    later_ns = seen_ns[-1] + np.arange(0, 7201, 300, dtype=np.int64) * SECOND_NS
    truth = integrate_teme(start, EPOCH_NS, np.concatenate([fit_ns, seen_ns, later_ns]), forces)
    parts = np.split(truth, [len(fit_ns), len(fit_ns) + len(seen_ns)])
    try:
        published = published_of(parts[0], fit_ns)
        seen = windows(parts[1], seen_ns, published, _NOISE, rng)
        fitted = fit_elements(seen, published)
        held_back = predict_held_back(seen, published)
    except NoFit:
        return None
    claimed_km = float(np.sqrt(np.trace(fitted.covariance_teme[:3, :3]))) * held_back.sigma_factor(len(seen_ns))
    published_km = float(np.sqrt(np.trace(fitted.published_covariance_teme[:3, :3])))
    is_accepted = held_back.is_better and fitted.converged and claimed_km < 0.5 * published_km
    errors = [error_km(elements, parts[2], later_ns) for elements in (published, Propagator(fitted.elements))]
    return errors[0], errors[1], claimed_km, is_accepted


def random_orbit(rng: np.random.Generator) -> tuple[FloatArray, Forces]:
    """A low circular orbit (6,), km and km/s, and its forces."""
    axis_km, tilt, node, phase = 6378 + rng.uniform(450, 900), *np.radians(rng.uniform([30, 0, 0], [100, 360, 360]))
    at = np.array([np.cos(phase), np.sin(phase)]) * axis_km
    along = np.array([-np.sin(phase), np.cos(phase)]) * np.sqrt(398600.4415 / axis_km)
    turn = np.array(
        [
            [np.cos(node), -np.sin(node) * np.cos(tilt)],
            [np.sin(node), np.cos(node) * np.cos(tilt)],
            [0.0, np.sin(tilt)],
        ]
    )
    forces = Forces(drag_area_m2_kg=float(rng.uniform(0.005, 0.03)))
    return np.concatenate([turn @ at, turn @ along]), forces


def published_of(truth: FloatArray, time_ns: IntArray) -> Propagator:
    """The element set that fits true states (n, 6) at these times. Raises NoFit."""
    rough = Propagator(mean_elements(truth[:1, :3], truth[:1, 3:], time_ns[:1]))
    return Propagator(fit_elements(windows(truth, time_ns, rough, _FIT_NOISE, None), rough).elements)


def windows(
    truth: FloatArray, time_ns: IntArray, prior: Propagator, noise: FloatArray, rng: np.random.Generator | None
) -> WindowFits:
    """Fits at these times from observations of the truth with this noise, none if no ``rng`` is given."""
    row = np.zeros(len(time_ns), np.int64)
    _, r, v = prior.at(row, time_ns)
    prior_covariance = rtn_to_teme(element_covariance_rtn(prior, row, time_ns, r, v), r, v)
    information = np.linalg.inv(prior_covariance)
    own = np.diag(noise**-2)
    seen = truth + (rng.normal(size=truth.shape) * noise if rng else 0.0)
    covariance: FloatArray = np.asarray(np.linalg.inv(information + own), np.float64)
    weighted = np.einsum("wij,wj->wi", information, np.hstack([r, v])) + seen @ own
    state: FloatArray = np.einsum("wij,wj->wi", covariance, weighted)
    return WindowFits(row, time_ns, state, covariance, np.hstack([r, v]), prior_covariance)


def error_km(elements: Propagator, truth: FloatArray, time_ns: IntArray) -> float:
    """Root mean square of the position error."""
    _, r, _ = elements.at(np.zeros(len(time_ns), np.int64), time_ns)
    return float(np.sqrt(np.mean(np.sum((r - truth[:, :3]) ** 2, axis=1))))


def _m(values_km: FloatArray) -> str:
    return f"{1000 * np.median(values_km):,.0f} m" if len(values_km) else "-"


if __name__ == "__main__":
    main()
