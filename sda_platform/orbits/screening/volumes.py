"""Screening volumes in the axes of the protected object.

A sphere for all, or a box or an ellipsoid for each orbital regime. Errors along the track are a hundred times larger
than across it, so that a sphere that contains all relevant approaches contains many irrelevant ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.elements import ElementSets, perigee_altitude_km

Shape = Literal["sphere", "box", "ellipsoid"]
REGIMES = ("LEO1", "LEO2", "LEO3", "LEO4", "MEO", "GEO", "HEO")

_LEO_PERIGEES_KM = (500.0, 750.0, 1200.0, 2000.0)
_MOST_ECCENTRIC = 0.25
_GEO_PERIODS_MIN = (1300.0, 1800.0)


@dataclasses.dataclass(frozen=True)
class Volume:
    """Half-axes, km, along radial, in-track and cross-track.

    With ``sigmas``, a sphere has a part that the covariance shapes: approaches up to ``reach_km`` whose miss is at most
    so many sigmas of the errors of both sets (`uncertain_approaches`).
    """

    shape: Shape
    radial_km: float
    in_track_km: float
    cross_track_km: float
    sigmas: float = 0.0
    reach_km: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 < axis < math.inf for axis in self.half_axes_km):
            raise ValueError(f"half-axes must be positive, not {self.half_axes_km}")
        if self.sigmas and self.shape != "sphere":
            raise ValueError(f"sigmas belong to a sphere, not to a shape {self.shape}")

    @classmethod
    def sphere(cls, radius_km: float, sigmas: float = 0.0, reach_km: float = 0.0) -> Volume:
        return cls("sphere", radius_km, radius_km, radius_km, sigmas, reach_km)

    def widened(self, margin_km: float) -> Volume:
        """Enlarge the volume by so much in every direction."""
        radial, in_track, cross_track = (axis + margin_km for axis in self.half_axes_km)
        reach_km = self.reach_km + margin_km if self.sigmas else 0.0
        return dataclasses.replace(
            self, radial_km=radial, in_track_km=in_track, cross_track_km=cross_track, reach_km=reach_km
        )

    @property
    def half_axes_km(self) -> tuple[float, float, float]:
        return self.radial_km, self.in_track_km, self.cross_track_km

    @property
    def circumscribed_km(self) -> float:
        """Radius of the sphere around it, without the part that the covariance shapes."""
        return math.hypot(*self.half_axes_km) if self.shape == "box" else max(self.half_axes_km)

    @property
    def searched_km(self) -> float:
        """Radius within which all its approaches are."""
        return max(self.circumscribed_km, self.reach_km) if self.sigmas else self.circumscribed_km

    def planes(self, position_rtn_km: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Signed distances (n, k), km, of positions (n, 3) beyond each bounding plane, and the unit normals (n, k,
        3).

        A position is inside the volume if it is beyond no plane.
        """
        axes = np.array(self.half_axes_km)
        if self.shape == "box":
            return np.abs(position_rtn_km) - axes, np.sign(position_rtn_km)[:, :, None] * np.eye(3)
        scaled = position_rtn_km / axes
        size = np.linalg.norm(scaled, axis=-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            gradient = scaled / size / axes
            steepness = np.linalg.norm(gradient, axis=-1, keepdims=True)
            return np.where(size > 0, (size - 1) / steepness, -min(axes)), (gradient / steepness)[:, None, :]

    def time_inside_s(self, position_rtn_km: FloatArray, rate_rtn_km_s: FloatArray) -> FloatArray:
        """Compute how long straight paths from positions (n, 3) at rates (n, 3) stay inside, (n,) s; NaN without
        motion.
        """
        place, rate = position_rtn_km / self.half_axes_km, rate_rtn_km_s / self.half_axes_km
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.shape == "box":
                borders = np.sort([(-1 - place) / rate, (1 - place) / rate], axis=0)
                return np.asarray(np.maximum(borders[1].min(axis=-1) - borders[0].max(axis=-1), 0.0))
            square, product, beyond = (rate**2).sum(-1), (place * rate).sum(-1), (place**2).sum(-1) - 1
            return np.asarray(2 * np.sqrt(np.maximum(product**2 - square * beyond, 0.0)) / square)


Volumes = Mapping[str, Volume] | Volume
"""The volume of each regime, by name, or one for all."""


def regimes(elements: ElementSets) -> npt.NDArray[np.str_]:
    """Return the regime of each orbit, (n,), one of ``REGIMES``.

    HEO is from eccentricity 0.25, then GEO by its period (1300 to 1800 minutes). LEO1 to LEO4 go by perigee height (to
    500, 750, 1200, 2000 km), and MEO is all others.
    """
    with np.errstate(divide="ignore"):
        period_min = 1440.0 / elements.mean_motion_rev_per_day
    shortest, longest = _GEO_PERIODS_MIN
    height_km = perigee_altitude_km(elements)
    return np.select(
        [
            elements.eccentricity > _MOST_ECCENTRIC,
            (period_min >= shortest) & (period_min <= longest),
            *(height_km <= limit for limit in _LEO_PERIGEES_KM),
        ],
        ["HEO", "GEO", "LEO1", "LEO2", "LEO3", "LEO4"],
        default="MEO",
    )


def by_volume(elements: ElementSets, volumes: Volumes) -> list[tuple[Volume, IntArray]]:
    """Group element sets by screening volume; omit sets whose regime has no volume."""
    if isinstance(volumes, Volume):
        parts = [(volumes, np.arange(len(elements)))]
    else:
        regime = regimes(elements)
        parts = [(volume, np.flatnonzero(regime == name)) for name, volume in volumes.items()]
    return [(volume, rows) for volume, rows in parts if len(rows)]
