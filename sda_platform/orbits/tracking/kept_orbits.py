"""Orbits from which a track filter continues, so that it need not repeat all windows of a track for each new one.

The orbit is that after a window some minutes before the newest, GCRF. A filter that continues from it has the result of
one that repeats all windows, if nothing before has changed: the windows until then, the first one's prior, the weather.
"""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import IntArray
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.propagation import Propagator

KEPT_BEFORE_NS = 180_000_000_000
"""The kept orbit is so much earlier than the newest window, because observations that are late change newer ones."""

BASIS_DTYPE = "<U16"


@dataclasses.dataclass(frozen=True, eq=False)
class KeptOrbits:
    """Kept orbits of ``g`` objects."""

    orbits: UncertainOrbits
    """(g), with epoch 0 where none is kept."""
    unexplained: IntArray
    """(g,) windows set aside until then."""
    basis: npt.NDArray[np.str_]
    """(g,) what the orbit depends on besides windows (`basis_of`)."""

    @classmethod
    def none(cls, basis: npt.NDArray[np.str_]) -> KeptOrbits:
        """Return an empty collection of orbits."""
        count = len(basis)
        still = np.zeros(count, np.int64)
        nowhere = UncertainOrbits(still, np.zeros((count, 6)), np.zeros((count, 2)), np.zeros((count, 8, 8)))
        return cls(nowhere, still.copy(), basis)

    def put(self, rows: IntArray, orbits: UncertainOrbits, unexplained: IntArray) -> None:
        """Keep these orbits of the objects ``rows``."""
        self.orbits.put(rows, orbits)
        self.unexplained[rows] = unexplained

    def next_windows(self, basis: npt.NDArray[np.str_], first: IntArray, end: IntArray, epoch_ns: IntArray) -> IntArray:
        """Window (g,) with which the filter of each object continues: the first, where no kept orbit holds.

        Args:
            basis: (g,) what the orbits depend on now.
            first, end: (g,) first window of each object, and the one after its last.
            epoch_ns: (w,) of all windows.
        """
        since_ns = self.orbits.epoch_ns
        later = np.array([
            start + np.searchsorted(epoch_ns[start:stop], at_ns, side="right")
            for start, stop, at_ns in zip(first.tolist(), end.tolist(), since_ns.tolist(), strict=True)
        ])  # fmt: skip
        holds = (self.basis == basis) & (since_ns > 0) & (later > first) & (later < end)
        return np.where(holds, later, first)

    def without(self, rows: npt.NDArray[np.bool_]) -> KeptOrbits:
        """Remove the orbits of the objects ``rows`` (g,)."""
        epoch_ns = np.where(rows, 0, self.orbits.epoch_ns)
        return dataclasses.replace(self, orbits=dataclasses.replace(self.orbits, epoch_ns=epoch_ns))


def basis_of(propagator: Propagator, index: IntArray, first_ns: IntArray, dynamics: Dynamics) -> npt.NDArray[np.str_]:
    """Digests (g,) of what filtered orbits depend on besides windows: the first window's time, prior and weather.

    Args:
        propagator: the catalogue.
        index: (g,) position of each object in it.
        first_ns: (g,) time of its first window.
        dynamics: the numerical model between windows.
    """
    weather = hashlib.blake2b(str(dynamics.weather.first_day).encode(), digest_size=8)
    for values in (dynamics.weather.f107, dynamics.weather.f107_mean, dynamics.weather.ap):
        weather.update(np.ascontiguousarray(values).tobytes())
    elements = propagator.elements.take(index)
    columns = [getattr(elements, field.name).astype(np.float64) for field in dataclasses.fields(elements)]
    rows = np.column_stack([*columns, propagator.error_scale[index]])
    digests = []
    for row, epoch_ns, at_ns in zip(rows, elements.epoch_time_ns.tolist(), first_ns.tolist(), strict=True):
        digest = weather.copy()
        digest.update(row.tobytes() + f"{epoch_ns} {at_ns}".encode())
        digests.append(digest.hexdigest())
    return np.array(digests, dtype=BASIS_DTYPE)
