"""What a track filter finds of each object."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.tracking.kept_orbits import KeptOrbits


@dataclasses.dataclass(frozen=True, eq=False)
class FilteredStates:
    """Filtered states of ``g`` objects at their newest windows."""

    epoch_ns: IntArray
    state: FloatArray
    """(g, 6) TEME, km and km/s."""
    coefficients: FloatArray
    """(g, 2) drag area and reflective area over mass, m2/kg."""
    joint_covariance: FloatArray
    """(g, 8, 8) of state and coefficients."""
    innovation: FloatArray
    """(g,) squared normalised innovation of the newest fit, NaN for a first one."""
    innovation_size: IntArray
    """(g,) its degrees of freedom."""
    manoeuvre_ns: IntArray
    """(g,) epoch of the first inconsistent fit of a suspected manoeuvre; 0: none. It is the element set's epoch, and no
    change of velocity is known, where the object has left the set's path before its first window."""
    manoeuvre_km_s: FloatArray
    """(g,) magnitude of the velocity change; NaN: not known."""
    manoeuvre_sigma_km_s: FloatArray
    """(g,) one sigma of that magnitude."""
    unexplained: IntArray
    """(g,) number of window fits set aside."""
    kept: KeptOrbits
    """(g) where a later call can continue."""

    @property
    def covariance(self) -> FloatArray:
        """(g, 6, 6) of the state."""
        return self.joint_covariance[:, :6, :6]

    def with_orbits(
        self, rows: IntArray, others: FilteredStates, speed: FloatArray, sigma: FloatArray
    ) -> FilteredStates:
        """Replace the orbits at ``rows`` by ``others``, and add these changes of velocity there, km/s."""
        names = ("epoch_ns", "state", "coefficients", "joint_covariance")
        columns = {name: getattr(others, name) for name in names}
        return self._with(rows, {**columns, "manoeuvre_km_s": speed, "manoeuvre_sigma_km_s": sigma})

    def with_all(self, rows: IntArray, chosen: BoolArray, others: FilteredStates) -> FilteredStates:
        """Replace the states at ``rows`` by the ``chosen`` ones of ``others``, except what is kept."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "kept"]
        return self._with(rows, {name: getattr(others, name)[chosen] for name in names})

    def _with(self, rows: IntArray, columns: Mapping[str, npt.NDArray[Any]]) -> FilteredStates:
        changed = {name: getattr(self, name).copy() for name in columns}
        for name, column in changed.items():
            column[rows] = columns[name]
        return dataclasses.replace(self, **changed)
