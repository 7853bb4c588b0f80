"""Whether tracks are as accurate as they claim, on orbits of an independent implementation.

    python benchmarks/track_consistency.py [--objects 24] [--regimes low medium geostationary eccentric]

Needs satkit (`make setup-test`): its orbits are the truth, observed by the registered sensors
for ten hours, with published sets fitted to the 36 hours before. Printed are mean normalised squared errors of window
fits and filtered states (6 expected) and of positions predicted 30 minutes to 24 hours ahead (3), with their 95 %
bounds, errors and claims, suspected manoeuvres, and errors of the published sets at the same times. Windows of one
object share the error of its set, so the bounds of their mean are those of the means by object. With `--burns`, burns
along the track and across it are counted that are found, with their delay, and the squared errors 2 hours after the
last window. With `--directions`, observers in orbit see the objects
instead, with so many directions in each window in the mean, and only suspected manoeuvres are counted: with halves of
windows' observers, and without.
"""

import argparse
from itertools import product

import numpy as np
from scipy.stats import chi2

from sda_platform.arrays import FloatArray
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.dynamics.space_weather import CONSTANT_WEATHER, read_space_weather
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import HOUR_NS, REGIMES, SEEN_NS, Burn, ObservedTruth, directed, observed

AHEAD_S = (1800, 7200, 43_200, 86_400)
BURNS_M_S = (0.05, 0.2, 1.0)


def main() -> None:
    """Print the figures of each regime."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=24)
    parser.add_argument("--regimes", nargs="*", default=list(REGIMES))
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--constant-weather", action="store_true", help="F10.7 150 and Ap 15 instead of the observed")
    parser.add_argument("--burns", action="store_true", help="also find burns of 0.05, 0.2 and 1 m/s")
    parser.add_argument("--directions", type=float, help="directions from orbit in each window, in the mean")
    options = parser.parse_args()
    if not satkit_truth.AVAILABLE:
        parser.error(satkit_truth.WHY_NOT)
    weather = CONSTANT_WEATHER if options.constant_weather else read_space_weather(satkit_truth.weather_file())
    dynamics = Dynamics(weather)
    for regime in options.regimes:
        rng = np.random.default_rng([options.seed, REGIMES.index(regime)])
        if options.directions:
            print(_by_directions(regime, options.objects, rng, options.directions, dynamics), flush=True)
            continue
        seen = [observed(regime, rng, hours=10, later_s=AHEAD_S) for _ in range(options.objects)]
        print(_regime(regime, [each for each in seen if each is not None], dynamics), flush=True)
        for speed_m_s, is_across in product(BURNS_M_S, (False, True)) if options.burns else ():
            print(_burns(regime, speed_m_s, is_across, options.objects, options.seed, dynamics), flush=True)


def _regime(regime: str, objects: list[ObservedTruth], dynamics: Dynamics) -> str:
    tracks = [filter_tracks(each.fits, each.published, [0], dynamics) for each in objects]
    windows = [_squares(e.fits.state - e.truth, e.fits.covariance) for e in objects]
    mean, error = _mean_and_error(np.array([each.mean() for each in windows]))
    filtered = np.concatenate(
        [_squares(t.state - e.truth[-1], t.covariance) for t, e in zip(tracks, objects, strict=True)]
    )
    suspected = sum(bool(track.manoeuvre_ns[0]) for track in tracks)
    lines = [
        f"{regime}: {len(objects)} objects, {sum(map(len, windows))} windows, {suspected} suspected of a manoeuvre",
        f"  windows {mean:.2f}, by objects [{mean - 1.96 * error:.2f}, {mean + 1.96 * error:.2f}]",
        f"  filtered {filtered.mean():.2f} (median {np.median(filtered):.2f}) {_bounds(6, len(filtered))}",
    ]
    for n, ahead_s in enumerate(AHEAD_S):
        figures = np.array([_ahead(t, e, n, ahead_s, dynamics) for t, e in zip(tracks, objects, strict=True)])
        square, (error, sigma, published) = figures[:, 0], 1e3 * np.median(figures[:, 1:], axis=0)
        lines.append(
            f"  {ahead_s / 3600:4.1f} h ahead {square.mean():.2f} (median {np.median(square):.2f}) "
            f"{_bounds(3, len(square))}: error {error:.0f} m, sigma {sigma:.0f} m, published set {published:.0f} m"
        )
    return "\n".join(lines)


def _by_directions(regime: str, count: int, rng: np.random.Generator, per_window: float, dynamics: Dynamics) -> str:
    """How many of ``count`` objects are suspected of a manoeuvre, and how many windows have several observers."""
    windows, halved, suspected = 0, 0, np.zeros(2, np.int64)
    for _ in range(count):
        seen = directed(regime, rng, hours=10, per_window=per_window)
        if seen is None or seen.halves is None:
            continue
        windows, halved = windows + len(seen.fits.epoch_ns), halved + len(seen.halves.window)
        tracks = [filter_tracks(seen.fits, seen.published, [0], dynamics, halves=each) for each in (seen.halves, None)]
        suspected += [int(track.manoeuvre_ns[0] > 0) for track in tracks]
    return (
        f"{regime}: {count} objects, {windows} windows, {halved} of several observers: "
        f"{suspected[0]} suspected of a manoeuvre, {suspected[1]} without halves"
    )


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _burns(regime: str, speed_m_s: float, is_across: bool, count: int, seed: int, dynamics: Dynamics) -> str:
    """How many burns, five hours after the first window, are found within the next five, when, and the error then."""
    rng, burn_ns = np.random.default_rng([seed, 100]), SEEN_NS + 5 * HOUR_NS
    tried, delays_s, off, ahead = 0, [], [], []
    for _ in range(count):
        seen = observed(regime, rng, hours=10, later_s=(7200,), burn=Burn(burn_ns, speed_m_s / 1e3, is_across))
        if seen is None or not (seen.fits.epoch_ns > burn_ns).any() or not (seen.fits.epoch_ns < burn_ns).any():
            continue
        tried += 1
        for end in np.flatnonzero(seen.fits.epoch_ns > burn_ns):
            track = filter_tracks(seen.fits.take(np.arange(end + 1)), seen.published, [0], dynamics)
            if track.manoeuvre_ns[0] > burn_ns:
                delays_s.append((seen.fits.epoch_ns[end] - burn_ns) / 1e9)
                off.append(abs(track.manoeuvre_km_s[0] * 1e3 - speed_m_s))
                ahead.append(_ahead(filter_tracks(seen.fits, seen.published, [0], dynamics), seen, 0, 7200, dynamics))
                break
    when = f", median delay {np.median(delays_s) / 60:.0f} min, off by {np.median(off):.2f} m/s" if delays_s else ""
    if ahead:
        square, (error, sigma) = np.mean(ahead, axis=0)[0], 1e3 * np.median(ahead, axis=0)[1:3]
        when += f"; 2 h ahead {square:.2f} {_bounds(3, len(ahead))}: error {error:.0f} m, sigma {sigma:.0f} m"
    where = "across" if is_across else "along"
    return f"  burns of {speed_m_s} m/s {where} the track: {len(delays_s)} of {tried} found{when}"


def _ahead(track: FilteredStates, seen: ObservedTruth, n: int, ahead_s: int, dynamics: Dynamics) -> list[float]:
    """Squared error, error and sigma of the prediction, error of the published set; km."""
    then_ns = track.epoch_ns + ahead_s * 10**9
    start = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
    state, joint = start.at(dynamics, then_ns).in_teme()
    off, covariance = state[0, :3] - seen.later[n, :3], joint[0, :3, :3]
    _, r, _ = seen.published.at([0], then_ns)
    published = float(np.linalg.norm(r[0] - seen.later[n, :3]))
    return [
        float(off @ np.linalg.solve(covariance, off)),
        float(np.linalg.norm(off)),
        float(np.sqrt(np.trace(covariance))),
        published,
    ]


def _squares(off: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ni,ni->n", off, np.linalg.solve(covariance, off[:, :, None])[:, :, 0]))


def _bounds(freedom: int, count: int) -> str:
    low, high = chi2.ppf([0.025, 0.975], freedom * count) / count
    return f"[{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
