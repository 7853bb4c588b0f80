"""A satellite comes apart: element sets of the debris, all through the parent's place at that instant.

Speeds follow the explosion law of NASA's standard breakup model (Johnson et al. 2001, "NASA's new breakup model of
EVOLVE 4.0": log10 dv[m/s] ~ N(0.2 chi + 1.85, 0.4), here for chi = -1), directions are isotropic; sizes and masses are
not modelled. Speeds are cut at 120 m/s, which keeps perigees of a parent at 750 km or more above 300 km.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sda_platform.formats.omm import ElementSet
from sda_platform.orbits.elements import ElementSets, FloatArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.randomness import stream
from sda_platform.simulation.sky import Sky

FIRST_FRAGMENT_ID: Final = 900_001
_MU_KM3_S2: Final = 398_600.8
_LARGEST_SPEED_KM_S: Final = 0.120
_ROUNDS: Final = 12


@dataclass(frozen=True)
class Breakup:
    """Which object comes apart, into how many, how long after the start, and when its debris is published.

    Without an id it is the first object of `parent_name` that a radar sees at that moment, so that its debris is
    observed at once. The default, a nine-tonne rocket stage at 840 km, is the class that leads published lists of the
    derelicts most dangerous to others (McKnight et al. 2021, Acta Astronautica 181).
    """

    parent_norad_id: int | None = None
    parent_name: str = "SL-16 R/B"
    fragments: int = 120
    after_s: float = 30.0
    published_after_s: float = 30.0


def fragment_elements(sky: Sky, parent: int, breakup_time_ns: int, count: int, seed: int) -> list[ElementSet]:
    """Element sets, epoch the break-up, of `count` fragments of the object at position `parent` of the sky.

    Raises ValueError where SGP4 refuses the parent at that time.
    """
    error, r_teme_km, v_teme_km_s = sky.propagator.at(np.array([parent]), np.array([breakup_time_ns]))
    if error[0]:
        raise ValueError(f"{sky.norad_id[parent]} cannot be propagated to its break-up: SGP4 error {error[0]}")
    noise = stream(seed, "breakup", int(sky.norad_id[parent]), breakup_time_ns)
    direction = noise.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    speed_km_s = np.minimum(10.0 ** noise.normal(1.65, 0.4, count) / 1e3, _LARGEST_SPEED_KM_S)
    velocity = v_teme_km_s + direction * speed_km_s[:, None]
    drag = sky.propagator.elements.bstar_per_earth_radius[parent] * 10.0 ** noise.normal(0.5, 0.3, count)
    mean = mean_elements(np.broadcast_to(r_teme_km, (count, 3)), velocity, breakup_time_ns, drag)
    name = sky.object_name[parent]
    return [
        ElementSet(
            norad_id=FIRST_FRAGMENT_ID + number,
            object_name=f"{name} DEB",
            international_designator=None,
            epoch_time_ns=breakup_time_ns // 1000 * 1000,
            mean_motion_rev_per_day=round(float(mean.mean_motion_rev_per_day[number]), 8),
            eccentricity=round(float(mean.eccentricity[number]), 7),
            inclination_deg=round(float(mean.inclination_deg[number]), 4),
            raan_deg=round(float(mean.raan_deg[number]), 4),
            arg_of_pericenter_deg=round(float(mean.arg_of_pericenter_deg[number]), 4),
            mean_anomaly_deg=round(float(mean.mean_anomaly_deg[number]), 4),
            bstar_per_earth_radius=float(f"{drag[number]:.4e}"),
            mean_motion_dot_rev_per_day2=0.0,
            mean_motion_ddot_rev_per_day3=0.0,
            element_set_number=1,
        )
        for number in range(count)
    ]


def mean_elements(
    r_teme_km: FloatArray, v_teme_km_s: FloatArray, epoch_time_ns: int, bstar_per_earth_radius: FloatArray
) -> ElementSets:
    """SGP4 mean elements that give the states (n, 3) at the epoch, by fixed-point iteration on osculating elements.

    Near-circular, near-Earth orbits with inclinations away from 0 and 180 degrees; good to metres there.
    """
    count = len(r_teme_km)
    wanted = _osculating(r_teme_km, v_teme_km_s)
    mean = wanted.copy()
    for _ in range(_ROUNDS):
        propagator = Propagator(_as_elements(mean, epoch_time_ns, bstar_per_earth_radius))
        _, r, v = propagator.at(np.arange(count), epoch_time_ns)
        step = wanted - _osculating(r, v)
        step[3:] = (step[3:] + np.pi) % (2 * np.pi) - np.pi
        mean += step
    return _as_elements(mean, epoch_time_ns, bstar_per_earth_radius)


def _osculating(r_km: FloatArray, v_km_s: FloatArray) -> FloatArray:
    """(6, n): mean motion rad/s, e cos w, e sin w, inclination, node, argument of latitude in mean anomaly; rad."""
    distance = np.linalg.norm(r_km, axis=1)
    momentum = np.cross(r_km, v_km_s)
    inclination = np.arctan2(np.hypot(momentum[:, 0], momentum[:, 1]), momentum[:, 2])
    node = np.arctan2(momentum[:, 0], -momentum[:, 1])
    axis_km = 1.0 / (2.0 / distance - np.sum(v_km_s**2, axis=1) / _MU_KM3_S2)
    eccentric = np.cross(v_km_s, momentum) / _MU_KM3_S2 - r_km / distance[:, None]
    toward_node = np.stack([np.cos(node), np.sin(node), np.zeros_like(node)], axis=1)
    across = np.cross(momentum / np.linalg.norm(momentum, axis=1, keepdims=True), toward_node)
    e_cos, e_sin = np.sum(eccentric * toward_node, axis=1), np.sum(eccentric * across, axis=1)
    latitude = np.arctan2(np.sum(r_km * across, axis=1), np.sum(r_km * toward_node, axis=1))
    perigee, eccentricity = np.arctan2(e_sin, e_cos), np.hypot(e_cos, e_sin)
    true = latitude - perigee
    half = np.arctan2(np.sqrt(1 - eccentricity) * np.sin(true / 2), np.sqrt(1 + eccentricity) * np.cos(true / 2))
    anomaly = 2 * half - eccentricity * np.sin(2 * half)
    return np.stack([np.sqrt(_MU_KM3_S2 / axis_km**3), e_cos, e_sin, inclination, node, perigee + anomaly])


def _as_elements(mean: FloatArray, epoch_time_ns: int, bstar_per_earth_radius: FloatArray) -> ElementSets:
    motion, e_cos, e_sin, inclination, node, latitude = mean
    perigee = np.arctan2(e_sin, e_cos)
    count = mean.shape[1]
    return ElementSets.from_columns(
        {
            "norad_id": np.arange(1, count + 1),
            "epoch_time_ns": np.full(count, epoch_time_ns),
            "mean_motion_rev_per_day": motion * 86_400 / (2 * np.pi),
            "eccentricity": np.hypot(e_cos, e_sin),
            "inclination_deg": np.degrees(inclination),
            "raan_deg": np.degrees(node) % 360,
            "arg_of_pericenter_deg": np.degrees(perigee) % 360,
            "mean_anomaly_deg": np.degrees(latitude - perigee) % 360,
            "bstar_per_earth_radius": bstar_per_earth_radius,
        }
    )
