"""Numerical propagation of a day, against other implementations and SGP4.

    python benchmarks/numerical_propagation.py [--every 40] [--peers satkit heyoka brahe]

Peers are optional: `make setup-test`, and `pip install heyoka==7.13.2 brahe==1.8.0`. Each takes the same orbits,
one at a time in one thread; no time is printed for a peer unless its positions after a day agree. heyoka has a field of
degree 8 (20 takes a minute to compile) and no sunlight; brahe has the field alone, because its Moon and Sun need a
download. Then a sample of the catalogue is propagated by all cores, and by SGP4.
"""

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import Dynamics, integrate
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme
from sda_platform_tests.support.scenes import DAY_NS, catalogue

EPOCH_NS = int(np.datetime64("2024-11-01T00:00:00", "ns").astype(np.int64))
ORBITS = {
    "low, 400 km": (-1800.0, 5100.0, 4100.0, -5.2, -4.6, 3.4),
    "low, 900 km": (-2000.0, 5500.0, 4300.0, -5.1, -4.4, 3.3),
    "geostationary": (42164.0, 0.0, 0.0, 0.0, 3.0747, 0.01),
}
AGREEMENT_KM = 0.02
Peer = Callable[[FloatArray], FloatArray]


def main() -> None:
    """Print milliseconds a day of each implementation, and the rate of a sample of the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=40, help="propagate every n-th object of the catalogue")
    parser.add_argument("--peers", nargs="*", default=["satkit", "heyoka", "brahe"])
    options = parser.parse_args()
    makers = {
        "satkit": (_satkit, Forces()),
        "heyoka": (_heyoka, Forces(8, 8)),
        "brahe": (_brahe, Forces(36, 36, False)),
    }
    for name in options.peers:
        if find_spec(name) is None:
            print(f"{name}: not installed, left out")
            continue
        make, forces = makers[name]
        peer = make()
        for orbit, numbers in ORBITS.items():
            start = np.array(numbers)
            (ours, our_ms), (theirs, their_ms) = _timed(lambda s: _ours(s, forces), start), _timed(peer, start)  # noqa: B023
            off_km = float(np.linalg.norm(ours - theirs))
            shown = f"{our_ms:.1f} ms, {name} {their_ms:.1f} ms" if off_km < AGREEMENT_KM else "not equal: no time"
            print(f"{name}, {orbit}: {off_km * 1e3:.1f} m apart after a day; ours {shown}")
    _catalogue(options.every)


def _catalogue(every: int) -> None:
    rows = np.arange(0, len(catalogue()), every)
    error, r, v = catalogue().at(rows, np.full(len(rows), EPOCH_NS))
    rows, states = rows[error == 0], np.hstack([r, v])[error == 0]
    areas, _ = first_coefficients(catalogue().elements.bstar_per_earth_radius[rows])
    dynamics, epoch = Dynamics(), np.full(len(rows), EPOCH_NS)
    then = np.full((len(rows), 1), EPOCH_NS + DAY_NS)
    starts = gcrf_of_teme(states, epoch)
    dynamics.states(starts[:2], areas[:2], epoch[:2], then[:2])
    began = time.perf_counter()
    dynamics.states(starts, areas, epoch, then)
    numerical_s = time.perf_counter() - began
    minutes = EPOCH_NS + np.arange(0, DAY_NS, 60 * 10**9, dtype=np.int64)
    began = time.perf_counter()
    catalogue().take(rows).grid(minutes)
    sgp4_s = time.perf_counter() - began
    whole = numerical_s / len(rows) * len(catalogue())
    print(
        f"{len(rows):,} objects x 24 h: {numerical_s:.1f} s on {os.cpu_count()} cores, so {whole / 60:.1f} minutes for "
        f"{len(catalogue()):,}; SGP4 a state a minute {sgp4_s:.1f} s ({numerical_s / sgp4_s:.0f} times faster)"
    )


def _timed(propagate: Peer, start: FloatArray, repeats: int = 3) -> tuple[FloatArray, float]:
    found, best = propagate(start), np.inf
    for _ in range(repeats):
        began = time.thread_time()
        found = propagate(start)
        best = min(best, time.thread_time() - began)
    return found, 1e3 * best


def _ours(start: FloatArray, forces: Forces) -> FloatArray:
    return np.asarray(integrate(start, EPOCH_NS, np.array([EPOCH_NS + DAY_NS]), forces)[0, :3])


def _satkit() -> Peer:
    from sda_platform_tests.support.satkit_truth import propagated

    return lambda start: propagated(start, EPOCH_NS, np.array([EPOCH_NS + DAY_NS]), gravity="egm96", degree=36)[0, :3]


def _heyoka() -> Peer:
    import heyoka

    motion = heyoka.model.eo_dynamics(
        max_geo_degree=8, max_geo_order=8, elp2000_thresh=1e-5, vsop2013_thresh=1e-7, iau2006_thresh=1e-4
    )
    # Seconds of TT since J2000.
    begin = EPOCH_NS / 1e9 - 946_728_000 + 69.184
    integrator = heyoka.taylor_adaptive(motion, list(ORBITS["geostationary"]), time=begin, compact_mode=True, tol=1e-13)

    def propagate(start: FloatArray) -> FloatArray:
        integrator.time, integrator.state[:] = begin, start
        integrator.propagate_until(begin + 86_400.0)
        return np.array(integrator.state[:3])

    return propagate


def _brahe() -> Peer:
    import brahe

    brahe.initialize_eop()
    epoch = brahe.Epoch.from_datetime(2024, 11, 1, 0, 0, 0.0, 0.0, brahe.TimeSystem.UTC)
    field = brahe.GravityConfiguration(degree=36, order=36, model_type=brahe.GravityModelType.EGM2008_120)
    forces, settings = brahe.ForceModelConfig(gravity=field), brahe.NumericalPropagationConfig.high_precision()

    def propagate(start: FloatArray) -> FloatArray:
        propagator = brahe.NumericalOrbitPropagator(epoch, start * 1e3, settings, forces, None)
        propagator.propagate_to(epoch + 86_400.0)
        return np.asarray(propagator.current_state()[:3]) / 1e3

    return propagate


if __name__ == "__main__":
    main()
