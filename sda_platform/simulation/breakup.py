"""Simulates a satellite break-up: element sets of the debris, all through the parent's position at that instant.

Speeds follow the explosion law of NASA's standard breakup model (Johnson et al. 2001, "NASA's new breakup model of
EVOLVE 4.0": log10 dv[m/s] ~ N(0.2 chi + 1.85, 0.4), here for chi = -1). Directions are isotropic; sizes and masses
are not modelled. Speeds are cut at 120 m/s, which keeps perigees of a parent at 750 km or more above 300 km.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sda_platform.formats.element_set import ElementSet
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.simulation.randomness import stream
from sda_platform.simulation.sky import Sky

FIRST_FRAGMENT_ID: Final = 900_001
_LARGEST_SPEED_KM_S: Final = 0.120


@dataclass(frozen=True)
class Breakup:
    """Which object breaks up, into how many fragments, how long after the start, and when its debris is published.

    Without an id it is the first object of `parent_name` that radars observe then and 90 s later. So its debris is
    observed at once; published after None: never. The default, a nine-tonne rocket stage at 840 km, belongs to the
    class that leads published lists of the most dangerous derelicts (McKnight et al. 2021, Acta Astronautica 181).
    """

    parent_norad_id: int | None = None
    parent_name: str = "SL-16 R/B"
    fragments: int = 120
    after_s: float = 30.0
    published_after_s: float | None = 30.0


def fragment_elements(sky: Sky, parent: int, breakup_time_ns: int, count: int, seed: int) -> list[ElementSet]:
    """Element sets, epoch the break-up, of `count` fragments of the object at position `parent` of the sky.

    Raises ValueError where SGP4 rejects the parent at that time.
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
