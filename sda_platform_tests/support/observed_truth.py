"""Objects that move as an independent implementation says, seen by the registered sensors (needs satkit)."""

import dataclasses
from collections.abc import Callable, Collection

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits import frames
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.window_information import WindowFits, WindowHalves
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.published_sets import fit_elements
from sda_platform_tests.support.scenes import SECOND_NS, observe, place, window_fits
from sda_platform_tests.support.skyfield_frames import teme_of_gcrf

HOUR_NS = 3600 * SECOND_NS
EPOCH_NS = int(np.datetime64("2024-11-01T00:00:00", "ns").astype(np.int64))
SEEN_NS = EPOCH_NS + 36 * HOUR_NS
"""Published sets are fitted to the 36 hours before; sensors observe from here on."""
REGIMES = ("low", "medium", "geostationary", "eccentric")
_FIT_NOISE = np.array([0.3] * 3 + [3e-4] * 3)
_READINGS = 10
_DIRECTION_SIGMA_RAD = float(np.hypot(10, 3)) * np.pi / 648_000


@dataclasses.dataclass(frozen=True, eq=False)
class ObservedTruth:
    """One object: its true states, its published set, and the window fits of its observations."""

    published: Propagator
    fits: WindowFits
    truth: FloatArray
    """(w, 6) at the windows' middles, TEME of date."""
    later: FloatArray
    """(k, 6) at the times ``later_ns``, relative to the last window."""
    halves: WindowHalves | None = None
    """Of windows with several observers; None: one observer a window."""


@dataclasses.dataclass(frozen=True)
class Burn:
    """A change of velocity at a time, along the track or across the plane of the orbit."""

    time_ns: int
    speed_km_s: float
    is_across: bool = False

    def of(self, state: FloatArray) -> FloatArray:
        """The change (3,) of the velocity of a state (6,), km/s."""
        axis = np.cross(state[:3], state[3:]) if self.is_across else state[3:]
        return np.asarray(self.speed_km_s * axis / np.linalg.norm(axis))


def random_start(regime: str, rng: np.random.Generator) -> FloatArray:
    """State (6,) of the regime at EPOCH_NS, GCRF, km and km/s."""
    if regime == "low":
        perigee, eccentricity, tilt = rng.uniform(350, 900), rng.uniform(0, 0.01), rng.uniform(30, 100)
    elif regime == "medium":
        perigee, eccentricity, tilt = rng.uniform(19_000, 23_000), rng.uniform(0, 0.01), rng.uniform(50, 66)
    elif regime == "geostationary":
        perigee, eccentricity, tilt = 35_786 + rng.uniform(-20, 20), rng.uniform(0, 5e-4), rng.uniform(0.01, 8)
    else:
        perigee, eccentricity, tilt = rng.uniform(500, 2000), rng.uniform(0.4, 0.72), rng.uniform(20, 65)
    axis = (6378.0 + perigee) / (1 - eccentricity)
    node, perigee_angle, anomaly = np.radians(rng.uniform(0, 360, 3))
    radius = axis * (1 - eccentricity**2) / (1 + eccentricity * np.cos(anomaly))
    speed = np.sqrt(398600.4415 / (axis * (1 - eccentricity**2)))
    r = radius * np.array([np.cos(anomaly), np.sin(anomaly), 0.0])
    v = speed * np.array([-np.sin(anomaly), eccentricity + np.cos(anomaly), 0.0])
    turn = _about(2, node) @ _about(0, np.radians(tilt)) @ _about(2, perigee_angle)
    return np.concatenate([turn @ r, turn @ v])


def observed(
    regime: str, rng: np.random.Generator, *, hours: int, later_s: tuple[int, ...] = (), burn: Burn | None = None
) -> ObservedTruth | None:
    """An object of the regime, seen for so many hours; None without windows or where SGP4 cannot describe it."""
    areas, before_ns, states = _before(regime, rng)

    def motion(time_ns: IntArray) -> FloatArray:
        if burn is not None:
            return _with_burn(states[-1], time_ns, burn, areas)
        return satkit_truth.propagated(states[-1], SEEN_NS, time_ns, areas=areas)

    published = published_set(teme_of_gcrf(states, before_ns), before_ns)
    if published is None:
        return None
    return observed_along(motion, published, regime, SEEN_NS, rng, hours=hours, later_s=later_s)


def observed_along(
    motion: Callable[[IntArray], FloatArray],
    published: Propagator,
    regime: str,
    begin_ns: int,
    rng: np.random.Generator,
    *,
    hours: int,
    later_s: tuple[int, ...] = (),
    only: Collection[str] = (),
) -> ObservedTruth | None:
    """The object of a set whose true states, GCRF, at times (n,) are ``motion``, seen from ``begin_ns`` on.

    ``only``: the sensors that see it; empty: all. None where there are no three windows.
    """
    grid_ns = _grid_ns(begin_ns, hours)
    window, source = _seen(regime, teme_of_gcrf(motion(grid_ns), grid_ns), grid_ns, rng, only)
    if len(window) < 3:
        return None
    group = np.repeat(np.arange(len(window)), _READINGS)
    offset_ns = np.tile(np.linspace(-13.5, 13.5, _READINGS) * 1e9, len(window)).astype(np.int64)
    time_ns = grid_ns[window][group] + offset_ns
    later_ns = grid_ns[window[-1]] + np.array(later_s, dtype=np.int64) * SECOND_NS
    wanted = np.unique(np.concatenate([time_ns, grid_ns[window], later_ns]))
    states = teme_of_gcrf(motion(wanted), wanted)
    at = states[np.searchsorted(wanted, time_ns)]
    observations = observe(source[group], time_ns, at[:, :3], at[:, 3:], rng)
    rows, middle = np.zeros(len(window), np.int64), grid_ns[window]
    found = fit_windows(observations, group, published, rows, middle)
    fits = window_fits(found, rows, middle)
    good = np.flatnonzero(found.converged)
    truth = states[np.searchsorted(wanted, middle)]
    return ObservedTruth(published, fits.take(good), truth[good], states[np.searchsorted(wanted, later_ns)])


def directed(regime: str, rng: np.random.Generator, *, hours: int, per_window: float) -> ObservedTruth | None:
    """The same, seen from orbit by others, from random directions and distances of 300 to 2,000 km.

    Windows have ``per_window`` directions in the mean, each of another observer, with noise of 10 arcseconds and a bias
    of 3 arcseconds, and their halves.
    """
    areas, before_ns, states = _before(regime, rng)
    published = published_set(teme_of_gcrf(states, before_ns), before_ns)
    if published is None:
        return None
    grid_ns, in_teme = _windows_of(states[-1], areas, hours)
    count = rng.poisson(per_window, len(grid_ns))
    window = np.flatnonzero(count)
    seen = np.repeat(np.arange(len(window)), count[window])
    line = rng.normal(size=(len(seen), 3))
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    sigma_km = _DIRECTION_SIGMA_RAD * rng.uniform(300, 2000, len(seen))
    measured_km = in_teme[window][seen, :3] + sigma_km[:, None] * rng.normal(size=(len(seen), 3))
    information = np.zeros((len(seen), 6, 6))
    information[:, :3, :3] = (np.eye(3) - line[:, :, None] * line[:, None, :]) / sigma_km[:, None, None] ** 2
    vector = np.einsum("sij,sj->si", information[:, :, :3], measured_km)
    halves = np.zeros((2, len(window), 6, 6)), np.zeros((2, len(window), 6))
    half = np.diff(seen, prepend=-1) == 0
    for total, each in zip(halves, (information, vector), strict=True):
        np.add.at(total, (half.astype(np.int64), seen), each)
    prior = _prior_fits(published, grid_ns[window])
    several = np.flatnonzero(count[window] > 1)
    parts = [_updated(prior.take(several), of[several], to[several]) for of, to in zip(*halves, strict=True)]
    return ObservedTruth(
        published,
        _updated(prior, halves[0].sum(axis=0), halves[1].sum(axis=0)),
        in_teme[window],
        np.zeros((0, 6)),
        WindowHalves(
            several, np.stack([part.state for part in parts], 1), np.stack([part.covariance for part in parts], 1)
        ),
    )


def _before(regime: str, rng: np.random.Generator) -> tuple[satkit_truth.Areas, IntArray, FloatArray]:
    """An object of the regime: its areas, and times and states (n, 6), GCRF, from EPOCH_NS to SEEN_NS."""
    start = random_start(regime, rng)
    areas = satkit_truth.Areas(float(rng.uniform(0.005, 0.03)), float(rng.uniform(0.01, 0.03)))
    step_s = 900 if regime in ("low", "eccentric") else 1800
    before_ns = EPOCH_NS + np.arange(0, 36 * 3600 + 1, step_s, dtype=np.int64) * SECOND_NS
    return areas, before_ns, satkit_truth.propagated(start, EPOCH_NS, before_ns, areas=areas)


def _windows_of(start: FloatArray, areas: satkit_truth.Areas, hours: int) -> tuple[IntArray, FloatArray]:
    """Middles of all windows since SEEN_NS, and the states there, TEME of date."""
    grid_ns = _grid_ns(SEEN_NS, hours)
    return grid_ns, teme_of_gcrf(satkit_truth.propagated(start, SEEN_NS, grid_ns, areas=areas), grid_ns)


def _grid_ns(begin_ns: int, hours: int) -> IntArray:
    return begin_ns + np.arange(0, hours * 3600, 30, dtype=np.int64) * SECOND_NS + 15 * SECOND_NS


def _with_burn(start: FloatArray, time_ns: IntArray, burn: Burn, areas: satkit_truth.Areas) -> FloatArray:
    before, after = time_ns[time_ns <= burn.time_ns], time_ns[time_ns > burn.time_ns]
    at = satkit_truth.propagated(start, SEEN_NS, np.array([burn.time_ns]), areas=areas)[0]
    at[3:] += burn.of(at)
    parts = [satkit_truth.propagated(start, SEEN_NS, before, areas=areas)] if len(before) else []
    parts += [satkit_truth.propagated(at, burn.time_ns, after, areas=areas)] if len(after) else []
    return np.concatenate(parts)


def _seen(
    regime: str, states: FloatArray, time_ns: IntArray, rng: np.random.Generator, only: Collection[str]
) -> tuple[IntArray, np.ndarray]:
    """Windows in which a sensor sees the object, at most one sensor a window, and the sensors.

    Low objects are seen in at most twelve windows of a pass, the others once in ten minutes.
    """
    sensors = [s for s in sensor_registry().values() if s.kind == ("radar" if regime == "low" else s.kind)]
    sensors = [s for s in sensors if not only or s.source_id in only]
    up = np.zeros((len(sensors), len(time_ns)), dtype=bool)
    for n, sensor in enumerate(sensors):
        _, elevation, distance, _ = frames.topocentric(states[:, :3], states[:, 3:], *place(sensor), time_ns)
        up[n] = elevation > np.radians(sensor.min_elevation_deg + 5)
        if sensor.kind == "radar":
            up[n] &= distance < sensor.max_range_km
        else:
            sun = frames.sun_teme_km(time_ns)
            up[n] &= frames.site_is_dark(sensor.latitude_deg, sensor.longitude_deg, time_ns)
            up[n] &= frames.sunlit_fraction(states[:, :3], sun) >= 1.0
    windows = np.flatnonzero(up.any(axis=0))
    if regime == "low":
        gap = np.concatenate([[True], np.diff(windows) > 1])
        position = np.arange(len(windows)) - np.maximum.accumulate(np.where(gap, np.arange(len(windows)), 0))
        windows = windows[position < 12]
    else:
        windows = windows[np.unique(windows // 20, return_index=True)[1]]
    chosen = [int(rng.choice(np.flatnonzero(up[:, w]))) for w in windows]
    return windows, np.array([sensors[n].source_id for n in chosen])


def published_set(truth: FloatArray, time_ns: IntArray) -> Propagator | None:
    try:
        rough = Propagator(mean_elements(truth[-1:, :3], truth[-1:, 3:], time_ns[-1:]))
        return Propagator(fit_elements(_windows(truth, time_ns, rough), rough))
    except ValueError:
        return None


def _windows(truth: FloatArray, time_ns: IntArray, prior: Propagator) -> WindowFits:
    own = np.diag(_FIT_NOISE**-2)
    return _updated(_prior_fits(prior, time_ns), own, truth @ own)


def _prior_fits(published: Propagator, time_ns: IntArray) -> WindowFits:
    """Windows of one object without observations."""
    row = np.zeros(len(time_ns), np.int64)
    _, r, v = published.at(row, time_ns)
    covariance = rtn_to_teme(tracking_prior_rtn(published, row, time_ns, r, v), r, v)
    state = np.hstack([r, v])
    return WindowFits(row, time_ns, state, covariance, state, covariance)


def _updated(prior: WindowFits, information: FloatArray, vector: FloatArray) -> WindowFits:
    """The windows with observations of this information (w, 6, 6) and vector (w, 6)."""
    weight = np.linalg.inv(prior.prior_covariance)
    covariance: FloatArray = np.asarray(np.linalg.inv(weight + information), np.float64)
    weighted = np.einsum("wij,wj->wi", weight, prior.predicted) + vector
    state: FloatArray = np.einsum("wij,wj->wi", covariance, weighted)
    return dataclasses.replace(prior, state=state, covariance=covariance)


def _about(axis: int, angle: float) -> FloatArray:
    cosine, sine = np.cos(angle), np.sin(angle)
    i, j = [n for n in range(3) if n != axis]
    turn = np.eye(3)
    turn[i, i] = turn[j, j] = cosine
    turn[i, j], turn[j, i] = (-sine, sine) if axis != 1 else (sine, -sine)
    return turn
