"""Probabilities of collision per second, against the integral by scipy.

    python benchmarks/probability.py [--passes 100000] [--peer-passes 400] [--repeats 3]

Passes are drawn once: misses of up to a kilometre, sigmas from 5 m to 2 km, radii from 1 m to 20 m. The peer is the 2D
integral by `scipy.integrate.dblquad` over the disc, a pass at a time. Both take turns on the same passes, and nothing
is printed unless their answers agree. Processor time of one process; ours includes the encounter plane.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from scipy.integrate import dblquad

from sda_platform.arrays import FloatArray
from sda_platform.orbits.risk.probability import collision_probability_2d
from sda_platform.orbits.screening.encounter import encounter_plane

SEED = 20241101
# The peer's own error: it stops at this absolute part of the density's peak.
AGREEMENT = 1e-6
console = Console(highlight=False, soft_wrap=True)

Passes = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def main() -> int:
    """Run, print, and fail where the answers differ."""
    options = _options()
    passes = _passes(options.passes)
    few: Passes = tuple(column[: options.peer_passes] for column in passes)  # type: ignore[assignment]
    _ours(few)  # compile before anything is timed
    ours, peer = _ours(few), _peer(few)
    off = np.abs(ours - peer) / np.maximum(peer, 1e-12)
    console.print(f"{len(few[0]):,} passes by both: largest relative difference {off.max():.1e}")
    if off.max() > AGREEMENT:
        console.print("the answers are not equal: no time is worth printing")
        return 1
    rates: dict[str, list[float]] = {"ours": [], "dblquad": []}
    for _ in range(options.repeats):
        rates["ours"].append(len(passes[0]) / _seconds(_ours, passes))
        rates["dblquad"].append(len(few[0]) / _seconds(_peer, few))
    fast, slow = (statistics.median(rates[name]) for name in ("ours", "dblquad"))
    console.print(f"ours {fast:,.0f} a second, dblquad {slow:,.0f} a second: [bold]{fast / slow:,.0f} times[/bold]")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=100_000)
    parser.add_argument("--peer-passes", type=int, default=400, help="how many of them the peer takes")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def _passes(count: int) -> Passes:
    """Relative positions and velocities (n, 3), covariances (n, 3, 3) in km, radii (n,) in m."""
    random = np.random.default_rng(SEED)
    axes, _ = np.linalg.qr(random.normal(size=(count, 3, 3)))
    sigma_km = 10 ** random.uniform(np.log10(0.005), np.log10(2.0), (count, 3))
    covariance = (axes * sigma_km[:, None, :] ** 2) @ axes.swapaxes(-1, -2)
    # Within three sigmas, so that the peer's absolute tolerance means something.
    dr_km = np.einsum("nij,nj->ni", axes, sigma_km * random.uniform(-3, 3, (count, 3)))
    return dr_km, random.normal(size=(count, 3)) * 8, covariance, random.uniform(1, 20, count)


def _ours(passes: Passes) -> FloatArray:
    dr_km, dv_km_s, covariance, radius_m = passes
    plane = encounter_plane(dr_km, dv_km_s, covariance)
    return collision_probability_2d(
        1000 * plane.x_km, 1000 * plane.y_km, 1000 * plane.sigma_x_km, 1000 * plane.sigma_y_km, radius_m
    )


def _peer(passes: Passes) -> FloatArray:
    dr_km, dv_km_s, covariance, radius_m = passes
    plane = encounter_plane(dr_km, dv_km_s, covariance)
    columns = (plane.x_km, plane.y_km, plane.sigma_x_km, plane.sigma_y_km)
    return np.array([_integral(*row) for row in zip(*(1000 * c for c in columns), radius_m, strict=True)])


def _integral(x: float, y: float, sigma_x: float, sigma_y: float, radius: float) -> float:
    scale = 1 / (2 * np.pi * sigma_x * sigma_y)

    def density(v: float, u: float) -> float:
        return float(scale * np.exp(-0.5 * (((u - x) / sigma_x) ** 2 + ((v - y) / sigma_y) ** 2)))

    def edge(u: float) -> float:
        return float(np.sqrt(max(radius**2 - u**2, 0.0)))

    found, _ = dblquad(density, -radius, radius, lambda u: -edge(u), edge, epsabs=0, epsrel=1e-9)
    return float(found)


def _seconds(work: Callable[[Passes], FloatArray], passes: Passes) -> float:
    began = time.process_time()
    work(passes)
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
