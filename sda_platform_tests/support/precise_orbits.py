"""Precise orbits of real satellites from SP3 files, in GCRF: truth that nobody here has made.

Frames are those of Skyfield, the reader is its own. Public files are in the repository of Principia, for example: ten
days of all navigation satellites in April 2019, with geostationary and inclined geosynchronous ones.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import tai_to_utc_ns
from sda_platform_tests.support import skyfield_frames

_POINTS = 10
_BEHIND_TAI_S = {"GPS": 19, "TAI": 0}


@dataclasses.dataclass(frozen=True, eq=False)
class PreciseOrbit:
    """Positions (n, 3), GCRF, km, of one satellite at ``time_ns`` (n,), UTC, at equal steps."""

    satellite: str
    time_ns: IntArray
    r_km: FloatArray

    def states(self, time_ns: IntArray) -> FloatArray:
        """States (k, 6), GCRF, km and km/s, by polynomials through the ten nearest positions."""
        step_s = (self.time_ns[1] - self.time_ns[0]) / 1e9
        begin = np.clip(np.searchsorted(self.time_ns, time_ns) - _POINTS // 2, 0, len(self.time_ns) - _POINTS)
        node, middle = np.arange(_POINTS), (_POINTS - 1) / 2
        basis = np.vander(node - middle, increasing=True)
        coefficients = np.linalg.solve(basis, self.r_km[begin[:, None] + node])
        along = ((time_ns - self.time_ns[begin]) / 1e9 / step_s - middle)[:, None] ** node
        v = np.einsum("kp,kpi->ki", node[1:] * along[:, :-1], coefficients[:, 1:]) / step_s
        return np.hstack([np.einsum("kp,kpi->ki", along, coefficients), v])


def precise_orbits(files: Iterable[Path]) -> list[PreciseOrbit]:
    """The orbits of all satellites that the files have at each of their epochs, by satellite."""
    fixed: dict[str, dict[int, list[float]]] = defaultdict(dict)
    epochs: set[int] = set()
    for file in files:
        system, at_ns = "", 0
        for line in file.read_text(encoding="latin-1").splitlines():
            if line.startswith("%c") and not system:
                system = line[9:12]
            elif line.startswith("* "):
                year, month, day, hour, minute = (int(part) for part in line[1:].split()[:5])
                start = np.datetime64(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}", "ns")
                own_ns = int(start.astype(np.int64)) + round(float(line.split()[6]) * 1e9)
                tai = own_ns + _BEHIND_TAI_S.get(system, 0) * 10**9
                at_ns = own_ns if system == "UTC" else int(tai_to_utc_ns(np.array([tai]))[0])
                epochs.add(at_ns)
            elif line.startswith("P") and any(row := [float(part) for part in line[4:46].split()]):
                fixed[line[1:4].replace(" ", "0")][at_ns] = row
    time_ns = np.array(sorted(epochs), dtype=np.int64)
    turn = skyfield_frames.itrf_to_gcrf(time_ns)
    return [
        PreciseOrbit(name, time_ns, np.einsum("nij,nj->ni", turn, np.array([rows[at] for at in time_ns.tolist()])))
        for name, rows in sorted(fixed.items())
        if len(rows) == len(time_ns)
    ]
