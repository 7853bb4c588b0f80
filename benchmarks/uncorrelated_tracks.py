"""Whether provisional orbits predict as accurately as they claim, and whether their objects are recognised again.

    python benchmarks/uncorrelated_tracks.py [--objects 16] [--hours 8] [--regimes low medium geostationary eccentric]

Needs satkit (`make setup-test`): its orbits are the truth. No object is in the catalogue; passes
and sensors are those of `sda_platform_tests/support/uncatalogued.py`. Printed: later passes that keep their object's
number, get another, or the number of another. Then for the first orbit of each object: errors of position, normalised
squared errors (6 expected) with their 95 % bounds, and errors of its element set.
"""

import argparse
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from sda_platform.arrays import FloatArray
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.space_weather import read_space_weather
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import REGIMES
from sda_platform_tests.support.scenes import SECOND_NS
from sda_platform_tests.support.uncatalogued import Body, Counts, errors, observed, processed

AHEAD_S = (0, 1_800, 7_200, 43_200)


def main() -> None:
    """Print the figures of each regime."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--hours", type=int, default=8)
    parser.add_argument("--regimes", nargs="*", default=list(REGIMES))
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    if not satkit_truth.AVAILABLE:
        parser.error(satkit_truth.WHY_NOT)
    dynamics = Dynamics(read_space_weather(satkit_truth.weather_file()))
    for regime in options.regimes:
        rng = np.random.default_rng([options.seed, REGIMES.index(regime)])
        bodies = [Body.random(regime, rng) for _ in range(options.objects)]
        observations = pa.concat_tables(observed(bodies, regime, options.hours, rng))
        first, counts = processed(observations, options.hours, dynamics)
        print(f"{regime}: {len(bodies)} objects, {observations.num_rows} observations", flush=True)
        print(_stated(counts))
        print(_accuracy([(bodies[number], row) for number, row in sorted(first.items())], dynamics), flush=True)


def _stated(counts: Counts) -> str:
    return (
        f"  confirmed {len(counts.confirmed)}, mixed {counts.mixed}; {counts.due} later passes within reach: "
        f"{counts.kept} keep their number, {counts.again} get another, {counts.wrong} that of another object"
    )


def _accuracy(sets: list[tuple[Body, dict[str, Any]]], dynamics: Dynamics) -> str:
    """Errors of the first orbits and sets, ahead in time."""
    lines = []
    figures = np.array([_figures(body, row, dynamics) for body, row in sets])
    for n, ahead_s in enumerate(AHEAD_S):
        square, error, sigma, of_set = figures[:, :, n].T
        low, high = chi2.ppf([0.025, 0.975], 6 * len(square)) / len(square)
        lines.append(
            f"  {ahead_s / 3600:4.1f} h ahead: normalised squared error {square.mean():.1f} (median "
            f"{np.median(square):.1f}) [{low:.1f}, {high:.1f}]; error {np.median(error) * 1e3:,.0f} m, "
            f"sigma along the track {np.median(sigma) * 1e3:,.0f} m, element set {np.median(of_set) * 1e3:,.0f} m"
        )
    return "\n".join(lines)


def _figures(body: Body, row: dict[str, Any], dynamics: Dynamics) -> FloatArray:
    """Squared normalised error, error, sigma along the track, error of the element set (km), each (4,) at AHEAD_S."""
    time_ns = row["epoch_time_ns"] + np.array(AHEAD_S, dtype=np.int64) * SECOND_NS
    of_orbit = errors(body, row, time_ns, dynamics)
    elements = ElementSets.from_columns({name: [value] for name, value in row.items()})
    _, r, _ = Propagator(elements).at(np.zeros(len(time_ns), np.int64), time_ns)
    of_set_km = np.linalg.norm(r - body.states(time_ns)[:, :3], axis=1)
    return np.stack([of_orbit.square, of_orbit.off_km, of_orbit.along_sigma_km, of_set_km])


if __name__ == "__main__":
    main()
