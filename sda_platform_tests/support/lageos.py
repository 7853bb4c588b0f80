"""LAGEOS-2 in February 2016: the ILRS prediction ephemeris (data/tracking), and orbits fitted to it."""

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.earth_orientation import gcrf_to_itrf

DATA = Path(__file__).parents[1] / "data/tracking"
_MJD_1970 = 40587
_ROUNDS = 6


@dataclasses.dataclass(frozen=True)
class Fitted:
    state: FloatArray
    """(6,) GCRF at the ephemeris' first time."""
    coefficients: FloatArray
    residual_rms_m: float


@cache
def reference_orbit() -> tuple[IntArray, FloatArray]:
    """Times (n,) and GCRF positions (n, 3), km, every five minutes."""
    lines = [line.split() for line in (DATA / "lageos2_cpf_160213.sgf").read_text().splitlines()]
    rows = [line for line in lines if line[0] == "10"]
    day_ns = np.array([(int(row[2]) - _MJD_1970) * 86_400 * 10**9 for row in rows], dtype=np.int64)
    time_ns = day_ns + np.array([round(float(row[3]) * 1e9) for row in rows], dtype=np.int64)
    fixed = np.array([[float(value) for value in row[5:8]] for row in rows]) / 1e3
    order = np.argsort(time_ns)
    time_ns, fixed = time_ns[order], fixed[order]
    assert time_ns[0] >= parse_iso_ns("2016-02-13T00:00:00Z")
    return time_ns, np.einsum("nji,nj->ni", gcrf_to_itrf(time_ns), fixed)


def fit(time_ns: IntArray) -> Fitted:
    """State and reflective area that fit the positions of these times."""
    times, positions = reference_orbit()
    seen = positions[np.isin(times, time_ns)]
    dynamics, one = Dynamics(threads=1), np.zeros(len(time_ns), np.int64)
    step_s = (times[1] - times[0]) / 1e9
    state = np.concatenate([seen[0], (seen[1] - seen[0]) / step_s])
    state[3:] += 0.5 * step_s * 398600.4415 * seen[0] / np.linalg.norm(seen[0]) ** 3
    coefficients = np.array([0.0, 1e-3])
    for _ in range(_ROUNDS):
        found, partials = dynamics.transitions(state[None], coefficients[None], times[:1], one, time_ns)
        residual = (seen - found[:, :3]).reshape(-1)
        design = partials[:, :3][:, :, [0, 1, 2, 3, 4, 5, 7]].reshape(-1, 7)
        scale = np.linalg.norm(design, axis=0)
        change = np.linalg.lstsq(design / scale, residual, rcond=1e-12)[0] / scale
        state, coefficients = state + change[:6], coefficients + np.array([0.0, change[6]])
    return Fitted(state, coefficients, float(1e3 * np.sqrt(np.mean(residual**2) * 3)))
