"""Whether orbits that we determine, as element sets and as ephemerides, are better than published sets over a day.

The orbits are those of an independent implementation.

    python benchmarks/refined_elements.py [--objects 24] [--regimes low medium geostationary eccentric]

Needs satkit (`make setup-test`): its orbits are the truth, observed by the registered sensors for ten hours. Published
sets are fitted to the 36 hours before; they are the peer. Refined sets and their rules are those of the pipeline.
Errors are root mean squares of the day after the last window, sigmas as the product claims.

With `--sp3` the truth are precise orbits of real satellites, three days or more of each: files that follow each other.
`--satellites C J` chooses by the first letters of their numbers, `--hours` and `--only` by how long and by which
sensors they are observed.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from sda_platform.arrays import FloatArray
from sda_platform.orbits.determination.held_back import elements_held_back, prediction_held_back
from sda_platform.orbits.determination.track_elements import SPAN_S, NoFit, elements_of_track
from sda_platform.orbits.determination.track_ephemerides import ephemeris_of_track
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.dynamics.space_weather import read_space_weather
from sda_platform.orbits.earth_orientation import teme_of_gcrf
from sda_platform.orbits.element_errors import regimes
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import (
    HOUR_NS,
    REGIMES,
    ObservedTruth,
    observed,
    observed_along,
    published_set,
)
from sda_platform_tests.support.precise_orbits import precise_orbits
from sda_platform_tests.support.skyfield_frames import teme_of_gcrf as true_teme

LATER_S = tuple(range(1800, SPAN_S + 1, 1800))
_BEFORE_NS, _OFFSETS_NS = 36 * HOUR_NS, 24 * HOUR_NS
_OF_INDEX = ("low",) * 5 + ("medium", "geostationary", "eccentric", "eccentric")


@dataclass(frozen=True)
class Errors:
    """Errors of one object (km), and what its refined set and its ephemeris claim."""

    published: float
    track: float
    refined: float
    claimed: float
    is_accepted: bool
    ephemeris: float
    ephemeris_claimed: float
    is_ephemeris_accepted: bool
    squared_error: float
    """Normalised squared position error of the ephemeris, mean over the day; 3 is expected."""
    last_squared_error: float
    """The same at the end of the day."""


def main() -> None:
    """Print the figures of each regime."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=24)
    parser.add_argument("--regimes", nargs="*", default=list(REGIMES))
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--sp3", nargs="*", type=Path, default=[])
    parser.add_argument("--satellites", nargs="*", default=[""])
    parser.add_argument("--hours", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="the sensors")
    options = parser.parse_args()
    if options.sp3:
        real = list(_real(options.sp3, tuple(options.satellites), options.hours, options.only, options.seed))
        for regime in REGIMES:
            found = [errors_of(seen, Dynamics()) for name, seen in real if name == regime]
            if any(found):
                print(_regime(f"real, {regime}", [each for each in found if each is not None]), flush=True)
        return
    if not satkit_truth.AVAILABLE:
        parser.error(satkit_truth.WHY_NOT)
    dynamics = Dynamics(read_space_weather(satkit_truth.weather_file()))
    for regime in options.regimes:
        rng = np.random.default_rng([options.seed, REGIMES.index(regime)])
        seen = [observed(regime, rng, hours=10, later_s=LATER_S) for _ in range(options.objects)]
        found = [errors_of(each, dynamics) for each in seen if each is not None and len(each.fits.epoch_ns) >= 6]
        print(_regime(regime, [each for each in found if each is not None]), flush=True)


def _real(
    files: list[Path], satellites: tuple[str, ...], hours: int, only: list[str], seed: int
) -> Iterator[tuple[str, ObservedTruth]]:
    """Regime and observations of real satellites, a new first sight each day."""
    for orbit in precise_orbits(sorted(files)):
        if not orbit.satellite.startswith(satellites):
            continue
        last_ns = int(orbit.time_ns[-1]) - hours * HOUR_NS - SPAN_S * 10**9
        for number, begin_ns in enumerate(range(int(orbit.time_ns[0]) + _BEFORE_NS, last_ns, _OFFSETS_NS)):
            before_ns = np.arange(begin_ns - _BEFORE_NS, begin_ns + 1, HOUR_NS // 2)
            published = published_set(true_teme(orbit.states(before_ns), before_ns), before_ns)
            if published is None:
                continue
            rng, regime = np.random.default_rng([seed, number]), _OF_INDEX[int(regimes(published.elements)[0])]
            seen = observed_along(
                orbit.states, published, regime, begin_ns, rng, hours=hours, later_s=LATER_S, only=only
            )
            if seen is not None and len(seen.fits.epoch_ns) >= 6:
                yield regime, seen


def errors_of(seen: ObservedTruth, dynamics: Dynamics) -> Errors | None:
    """The errors of one object; None where its track gives no set."""
    track = filter_tracks(seen.fits, seen.published, [0], dynamics)
    try:
        made = elements_of_track(track, seen.published, dynamics)
        held_back = elements_held_back(seen.fits, seen.published, dynamics)
        predicted = ephemeris_of_track(track, seen.published, dynamics)
        ephemeris_held_back = prediction_held_back(seen.fits, seen.published, dynamics)
    except NoFit:
        return None
    time_ns = track.epoch_ns[0] + np.array(LATER_S, dtype=np.int64) * 10**9
    orbit = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
    ahead = dynamics.states(orbit.state, orbit.coefficients, orbit.epoch_ns, time_ns[None])[0]
    of_sets = [
        Propagator(each).at(np.zeros(len(time_ns), np.int64), time_ns)[1]
        for each in (seen.published.elements, made.elements)
    ]
    published, refined = (_rms_km(r - seen.later[:, :3]) for r in of_sets)
    state, covariance = predicted.ephemeris.at(time_ns)
    off = (state - seen.later)[:, :3]
    squares = np.einsum("ni,ni->n", off, np.linalg.solve(covariance[:, :3, :3], off[..., None])[..., 0])
    return Errors(
        published=published,
        track=_rms_km((teme_of_gcrf(ahead, time_ns) - seen.later)[:, :3]),
        refined=refined,
        claimed=made.sigma_km,
        is_accepted=held_back.is_better and made.is_more_certain,
        ephemeris=_rms_km(off),
        ephemeris_claimed=predicted.sigma_km,
        is_ephemeris_accepted=ephemeris_held_back.is_better and predicted.is_more_certain,
        squared_error=float(squares.mean()),
        last_squared_error=float(squares[-1]),
    )


def _regime(regime: str, found: list[Errors]) -> str:
    of = {name: np.array([getattr(each, name) for each in found]) for name in Errors.__dataclass_fields__}
    published, claimed, accepted = of["published"], of["claimed"], of["is_accepted"]
    ephemeris_claimed, ephemeris_accepted = of["ephemeris_claimed"], of["is_ephemeris_accepted"]
    factors = {name: np.median(published / of[name]) for name in ("track", "refined", "ephemeris")}
    lines = [
        f"{regime}: {len(found)} objects, medians over the next day: published {_m(published)}, ",
        f"track {_m(of['track'])}, refined {_m(of['refined'])} (claimed {_m(claimed)}), ",
        f"OD ephemeris {_m(of['ephemeris'])} (claimed {_m(ephemeris_claimed)})\n",
        f"  median factor of the track {factors['track']:.1f}, of refined sets {factors['refined']:.1f}, ",
        f"of OD ephemerides {factors['ephemeris']:.1f}; ",
        f"error over claim of refined sets {np.sqrt(np.mean((of['refined'] / claimed) ** 2)):.2f}\n",
        f"  refined sets: {_accepted(published, of['refined'], claimed, accepted)}\n",
        f"  OD ephemerides: {_accepted(published, of['ephemeris'], ephemeris_claimed, ephemeris_accepted)}",
        f"\n  {_consistency(of['squared_error'], of['last_squared_error'], ephemeris_accepted)}",
    ]
    return "".join(lines)


def _accepted(published: FloatArray, product: FloatArray, claimed: FloatArray, accepted: FloatArray) -> str:
    """How the products that the rules accept compare with the published sets."""
    excess, factor = (product - published)[accepted], (published / product)[accepted]
    return (
        f"accepted {accepted.sum()}: published {_m(published[accepted])}, product {_m(product[accepted])}, "
        f"factor {np.median(factor) if len(factor) else np.nan:.1f}; "
        f"worse {np.sum(excess > 0)}, by more than the claimed sigma {np.sum(excess > claimed[accepted])}"
    )


def _consistency(mean: FloatArray, last: FloatArray, accepted: FloatArray) -> str:
    """Normalised squared errors of accepted ephemerides, with how many exceed the 95 % point of chance after a day."""
    beyond = np.sum(last[accepted] > chi2.ppf(0.95, 3))
    return (
        f"normalised squared position error of accepted ones (3 is expected): median {np.median(mean[accepted]):.2f}, "
        f"mean {np.mean(mean[accepted]):.2f}; after a day above the 95 % point: {beyond} of {accepted.sum()}"
    )


def _rms_km(off: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


def _m(values_km: FloatArray) -> str:
    return f"{1000 * np.median(values_km):,.0f} m" if len(values_km) else "-"


if __name__ == "__main__":
    main()
