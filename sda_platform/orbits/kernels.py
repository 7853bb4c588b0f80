"""Compiles all numba kernels ahead of use, so that the first window after an installation is not delayed.

python -m sda_platform.orbits.kernels

Numba compiles a function at its first call and caches it on disk. Two synthetic satellites are therefore observed,
fitted, filtered, screened and assessed once; the results are discarded.
"""

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.earth_orientation import gcrf_of_teme
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.passes import find_passes, site_sensor
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.progress import forget, fuse_window
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform.orbits.two_body import two_body_state
from sda_platform.units import SECOND_NS

_EPOCH_NS = 1_730_419_200 * SECOND_NS
_READINGS = 10


def compile_all() -> None:
    """Call every kernel with arguments of the types of its later calls."""
    pair = Propagator(
        ElementSets.from_columns(
            {
                "norad_id": [80_001, 80_002],
                "epoch_time_ns": [_EPOCH_NS] * 2,
                "mean_motion_rev_per_day": [15.0, 15.0],
                "eccentricity": [0.001, 0.001],
                "inclination_deg": [60.0, 120.0],  # whose orbits cross twice a revolution
                "raan_deg": [0.0, 0.0],
                "arg_of_pericenter_deg": [0.0, 0.0],
                "mean_anomaly_deg": [0.0, 0.0],
            }
        )
    )
    objects = np.arange(2)
    fits = _fitted(pair)
    filter_tracks(fits, pair, objects)
    for primaries in (objects, objects[:1]):
        screen_volume(pair, primaries, objects, _EPOCH_NS, _EPOCH_NS + 7200 * SECOND_NS, Volume.sphere(5.0))
    (r_1, v_1), (r_2, v_2) = ((fits.state[n : n + 1, :3], fits.state[n : n + 1, 3:]) for n in (0, 1))
    covariance_1, covariance_2 = fits.covariance[:1], fits.covariance[1:]
    two_body_state(r_1, v_1, 60.0)
    _propagated(fits.state)
    find_passes(pair, [site_sensor(0.0, 0.0, 0.0, 5.0)], _EPOCH_NS, _EPOCH_NS + 600 * SECOND_NS)
    best_probabilities(Encounters(r_1, v_1, covariance_1, r_2, v_2, covariance_2, np.array([0.01])))
    forget()


def _propagated(states: FloatArray) -> None:
    dynamics, areas, epoch_ns = Dynamics(threads=1), np.full((2, 2), 0.01), np.full(2, _EPOCH_NS)
    then_ns = epoch_ns + 60 * SECOND_NS
    starts = gcrf_of_teme(states, epoch_ns)
    dynamics.states(starts, areas, epoch_ns, then_ns[:, None])
    dynamics.transitions(starts, areas, epoch_ns, np.arange(2), then_ns)


def _fitted(pair: Propagator) -> WindowFits:
    """A window fit in which both satellites report their state."""
    forget()
    times_ns = _EPOCH_NS + np.repeat(np.arange(_READINGS), 2) * SECOND_NS
    objects = np.tile([0, 1], _READINGS)
    _, r_teme_km, v_teme_km_s = pair.at(objects, times_ns)
    reports = ObservationArrays.from_columns(
        {
            "source_kind": ["isl"] * len(objects),
            "source_id": [f"isl-{pair.elements.norad_id[n]}" for n in objects],
            "sensor_time_ns": times_ns,
            **dict(zip(("x_m", "y_m", "z_m"), 1e3 * r_teme_km.T, strict=True)),
            **dict(zip(("vx_m_s", "vy_m_s", "vz_m_s"), 1e3 * v_teme_km_s.T, strict=True)),
            "position_sigma_m": np.full(len(objects), 5.0),
            "velocity_sigma_m_s": np.full(len(objects), 0.01),
            "clock_quality": ["gps_locked"] * len(objects),
            "clock_age_s": np.zeros(len(objects)),
        }
    )
    middle_ns = _EPOCH_NS + 15 * SECOND_NS
    names = np.full(len(objects), "", dtype=np.str_)
    fused = fuse_window(reports, names, np.arange(len(objects)), times_ns, pair, middle_ns)
    fit_windows(reports, objects, pair, np.arange(2), np.full(2, middle_ns))
    states = np.hstack([fused.fits.r_teme_km, fused.fits.v_teme_km_s])
    predicted = np.hstack([fused.fits.predicted_r_teme_km, fused.fits.predicted_v_teme_km_s])
    epochs_ns = np.full(2, middle_ns)
    fits = fused.fits
    return WindowFits(fused.objects, epochs_ns, states, fits.covariance_teme, predicted, fits.prior_covariance_teme)


if __name__ == "__main__":
    compile_all()
