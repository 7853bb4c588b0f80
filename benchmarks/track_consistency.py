"""Whether tracks are as accurate as they claim on orbits that SGP4 does not describe.

    python benchmarks/track_consistency.py --objects 24

Truth and published sets are those of `refined_elements.py`: low orbits, integrated numerically. Three passes of twelve
windows (80 m, 5 m/s) are filtered as in the pipeline. Printed are the mean normalised squared error of the state (6 is
expected) and of the position predicted 30 minutes and 2 hours ahead (3), and suspected manoeuvres (there are none).
"""

import argparse

import numpy as np
from refined_elements import EPOCH_NS, SECOND_NS, published_of, random_orbit, windows

from sda_platform.orbits.covariance import process_noise, sgp4_noise_km2_s3, transport
from sda_platform.orbits.determination.element_fit import NoFit
from sda_platform.orbits.determination.force_model import integrate
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.tracking.track_filter import filter_tracks

NOISE = np.array([0.08] * 3 + [5e-3] * 3)
AHEAD_S = (0, 1800, 7200)
FIT_NS = EPOCH_NS + np.arange(0, 36 * 3600 + 1, 1200, dtype=np.int64) * SECOND_NS
SEEN_NS = np.concatenate([FIT_NS[-1] + (n * 97 * 60 + np.arange(12) * 30) * SECOND_NS for n in range(1, 4)])


def main() -> None:
    """Print consistency, errors and claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=24)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    found = [one for _ in range(options.objects) if (one := one_object(rng)) is not None]
    figures = np.array([figure for figure, _ in found])
    print(f"{len(found)} objects, {sum(suspected for _, suspected in found)} suspected of a manoeuvre")
    for n, ahead_s in enumerate(AHEAD_S):
        error_m, sigma_m = 1000 * np.median(figures[:, n, 1:], axis=0)
        square = figures[:, n, 0].mean()
        shown = f"squared error {square:.1f}, error {error_m:.0f} m, sigma {sigma_m:.0f} m"
        print(f"{ahead_s / 60:4.0f} min ahead: {shown}")


def one_object(rng: np.random.Generator) -> tuple[FloatArray, bool] | None:
    """Squared normalised error, position error and sigma (km) at each of AHEAD_S; whether a manoeuvre is suspected."""
    start, forces = random_orbit(rng)
    then_ns = SEEN_NS[-1] + np.array(AHEAD_S) * SECOND_NS
    truth = integrate(start, EPOCH_NS, np.concatenate([FIT_NS, SEEN_NS, then_ns]), forces)
    fitted, seen, then = np.split(truth, [len(FIT_NS), len(FIT_NS) + len(SEEN_NS)])
    try:
        published = published_of(fitted, FIT_NS)
    except NoFit:
        return None
    track = filter_tracks(windows(seen, SEEN_NS, published, NOISE, rng), published, [0])
    _, r, v = published.at([0], track.epoch_ns)
    deviation = track.state - np.hstack([r, v])
    rows = []
    for ahead_s, time_ns, state in zip(AHEAD_S, then_ns, then, strict=True):
        dt_s = np.array([float(ahead_s)])
        moved, covariance = transport(deviation, track.covariance, r, v, dt_s)
        covariance = covariance + process_noise(dt_s, sgp4_noise_km2_s3(r, v))
        _, r_then, v_then = published.at([0], [time_ns])
        off = (np.hstack([r_then, v_then]) + moved - state)[0]
        size = 3 if ahead_s else 6
        square = off[:size] @ np.linalg.solve(covariance[0, :size, :size], off[:size])
        rows.append([square, np.linalg.norm(off[:3]), np.sqrt(np.trace(covariance[0, :3, :3]))])
    return np.array(rows), bool(track.manoeuvre_ns[0])


if __name__ == "__main__":
    main()
