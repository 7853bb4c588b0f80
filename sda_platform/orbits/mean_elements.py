"""SGP4's mean elements in equinoctial form (see ``equinoctial``): from states, and partial derivatives of states by
them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.equinoctial import equinoctial
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_S

_ROUNDS = 25
_SAME = 1e-13
DIFFERENCE = np.array([1e-9, 3e-6, 3e-6, 3e-6, 3e-6, 3e-6])
"""Steps of numerical partials by equinoctial elements: their cubes and SGP4's rounding are both far below 1e-8."""


def mean_elements(
    r_teme_km: npt.ArrayLike,
    v_teme_km_s: npt.ArrayLike,
    epoch_time_ns: npt.ArrayLike,
    bstar_per_earth_radius: npt.ArrayLike = 0.0,
) -> ElementSets:
    """SGP4 elements, numbered from 1, that give the states (n, 3), (n, 3) at their epochs (n,) or scalar.

    Fixed-point iteration on osculating elements; exact to a millimetre except within 0.1 degrees of the equator in
    deep space, where SGP4 itself jumps by up to 30 km. Rows that are not closed orbits, or that SGP4 rejects, become
    NaN.
    """
    wanted = equinoctial(r_teme_km, v_teme_km_s)
    mean = wanted.copy()
    rows = np.arange(len(mean))
    for _ in range(_ROUNDS):
        _, r, v = Propagator(from_equinoctial(mean, epoch_time_ns, bstar_per_earth_radius)).at(
            rows, np.broadcast_to(epoch_time_ns, rows.shape)
        )
        step = wanted - equinoctial(r, v)
        step[:, 5] = (step[:, 5] + np.pi) % (2 * np.pi) - np.pi
        mean += step
        if not np.any(np.abs(step) > _SAME * np.maximum(np.abs(mean), 1.0)):
            break
    return from_equinoctial(mean, epoch_time_ns, bstar_per_earth_radius)


def from_equinoctial(
    elements: FloatArray, epoch_time_ns: npt.ArrayLike, bstar_per_earth_radius: npt.ArrayLike = 0.0
) -> ElementSets:
    """Element sets, numbered from 1, whose SGP4 mean elements are the equinoctial (n, 6)."""
    motion, h, k, p, q, longitude = elements.T
    node, periapsis = np.arctan2(p, q), np.arctan2(h, k)
    count = len(elements)
    return ElementSets.from_columns(
        {
            "norad_id": np.arange(1, count + 1),
            "epoch_time_ns": np.broadcast_to(epoch_time_ns, (count,)),
            "mean_motion_rev_per_day": motion * DAY_S / (2 * np.pi),
            "eccentricity": np.hypot(h, k),
            "inclination_deg": np.degrees(2 * np.arctan(np.hypot(p, q))),
            "raan_deg": np.degrees(node) % 360,
            "arg_of_pericenter_deg": np.degrees(periapsis - node) % 360,
            "mean_anomaly_deg": np.degrees(longitude - periapsis) % 360,
            "bstar_per_earth_radius": np.broadcast_to(bstar_per_earth_radius, (count,)),
        }
    )


def to_equinoctial(elements: ElementSets) -> FloatArray:
    """Equinoctial form (n, 6) of mean elements as published."""
    node = np.radians(elements.raan_deg)
    periapsis = node + np.radians(elements.arg_of_pericenter_deg)
    tilt = np.tan(np.radians(elements.inclination_deg) / 2)
    return np.stack(
        [
            elements.mean_motion_rev_per_day * (2 * np.pi) / DAY_S,
            elements.eccentricity * np.sin(periapsis),
            elements.eccentricity * np.cos(periapsis),
            tilt * np.sin(node),
            tilt * np.cos(node),
            (periapsis + np.radians(elements.mean_anomaly_deg)) % (2 * np.pi),
        ],
        axis=1,
    )


def state_partials(elements: ElementSets) -> tuple[FloatArray, FloatArray]:
    """State (6,), TEME, km and km/s, of one element set at its epoch, and its derivatives (6, 6) by the equinoctial
    mean elements; the drag term is kept.
    """
    epoch_ns, drag = elements.epoch_time_ns, elements.bstar_per_earth_radius

    def sets(unknowns: FloatArray) -> ElementSets:
        return from_equinoctial(unknowns, epoch_ns[0], drag[0])

    states, partials = states_and_partials(to_equinoctial(elements)[0], DIFFERENCE, sets, epoch_ns)
    return states[0], partials[0]


def states_and_partials(
    unknowns: FloatArray,
    steps: FloatArray,
    element_sets: Callable[[FloatArray], ElementSets],
    time_ns: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """States (m, 6) at times (m,), km and km/s, and their derivatives (m, 6, k) by the unknowns (k,).

    By central differences over ``steps`` (k,); ``element_sets`` makes SGP4 elements (n,) of unknowns (n, k). Rows
    that SGP4 rejects are NaN.
    """
    size = len(unknowns)
    moved = np.vstack([np.zeros(size), np.diag(steps), -np.diag(steps)])
    _, r, v = Propagator(element_sets(unknowns + moved)).grid(time_ns)
    states = np.concatenate([r, v], axis=2)
    partials = (states[1 : size + 1] - states[size + 1 :]) / (2 * steps[:, None, None])
    return states[0], np.ascontiguousarray(np.moveaxis(partials, 0, 2))
