"""Long and slow encounters: expected collisions of two uncertain orbits, without assuming straight relative motion.

The probability flux into the sphere of the combined radius is integrated over its surface and over time. If a pair
meets only once, the expected number is the probability.

Source: Coppola, "Including Velocity Uncertainty in the Probability of Collision between Space Objects", AAS 12-247
(2012), with the overlap of Hall (2021).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.orbits.equinoctial import UncertainOrbit
from sda_platform.orbits.risk.overlap import Overlap, log_overlap, overlap
from sda_platform.orbits.risk.work_budget import WorkBudget

# The window is sampled with steps that grow from microseconds at its middle.
_FIRST_LOOK = np.linspace(-1, 1, 301) ** 5
_ZOOM_NODES, _ZOOMS = 17, 11
# A pair meets twice in a revolution; more peaks are noise where there is no solution.
_MOST_PEAKS = 6
# Where the exponent is this far below its peak, nothing is left to add.
_NEGLIGIBLE = 40.0
_SIGMAS = 9.0
_TIME_NODES, _TIME_WEIGHTS = np.polynomial.legendre.leggauss(8)
_FIRST_PANELS, _HALVINGS, _TOLERANCE = 8, 14, 1e-5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_ROOT_2, _ROOT_2_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)
# One flow through the surface takes about as long as so many linearisations.
_EVALUATIONS_PER_INFLOW = 25
# Five times what the longest of 65 published passes takes, which is 62,000.
MOST_EVALUATIONS = 300_000


@dataclasses.dataclass(frozen=True)
class ExpectedCollisions:
    """Expected collisions between ``start_s`` and ``end_s`` about the reference time.

    Attributes:
        inside_at_start: probability that the pair is within the radius when the window begins.
        entries: expected number of entries into the radius.
        start_s, end_s: the part of the window in which collisions can happen.
        converged: whether the orbits' overlap was found throughout that part.
    """

    inside_at_start: float
    entries: float
    start_s: float
    end_s: float
    converged: bool

    @property
    def total(self) -> float:
        """The sum of both: the probability, if the pair meets only once."""
        return self.inside_at_start + self.entries

    def is_separate(self, part: float) -> bool:
        """Return whether the pair is separate when the window begins, up to this part of the total."""
        return self.inside_at_start <= part * self.total


def expected_collisions(
    first: UncertainOrbit,
    second: UncertainOrbit,
    radius_km: float,
    half_window_s: float,
    budget: WorkBudget | None = None,
) -> ExpectedCollisions:
    """Integrate over ``half_window_s`` before and after the reference time of both orbits.

    Raises WorkExhausted when that takes more evaluations than ``budget`` has (by default MOST_EVALUATIONS).
    """
    budget = WorkBudget(MOST_EVALUATIONS) if budget is None else budget
    start = overlap(first, second, np.array([-half_window_s]), budget)
    inside = float(_inside(start, radius_km)[0]) if np.isfinite(start.mean).all() else 0.0
    entries, converged, reached = 0.0, True, []
    for begin_s, end_s in _spans(first, second, radius_km, half_window_s, budget):
        edges = np.linspace(begin_s, end_s, _FIRST_PANELS + 1)
        within, everywhere = _integrated(first, second, radius_km, edges[:-1], edges[1:], budget)
        converged &= everywhere
        entries += within
        reached += [begin_s, end_s]
    if not reached:
        return ExpectedCollisions(inside, 0.0, -half_window_s, half_window_s, False)
    return ExpectedCollisions(inside, entries, min(reached), max(reached), converged)


def _integrated(
    first: UncertainOrbit,
    second: UncertainOrbit,
    radius_km: float,
    begins: FloatArray,
    ends: FloatArray,
    budget: WorkBudget,
) -> tuple[float, bool]:
    """Return the flux over the panels, each halved until the result is stable, and whether that converged with the
    overlap found everywhere.
    """
    total = 0.0
    coarse, _ = _panels(first, second, radius_km, begins, ends, budget)
    for _ in range(_HALVINGS):
        middles = (begins + ends) / 2
        halves, found = _panels(
            first, second, radius_km, np.concatenate([begins, middles]), np.concatenate([middles, ends]), budget
        )
        if not found:
            return float(halves.sum()), False
        left, right = np.split(halves, 2)
        settled = np.abs(left + right - coarse) <= _TOLERANCE * (total + halves.sum())
        total += float((left + right)[settled].sum())
        if settled.all():
            return total, True
        open_ = ~settled
        begins, ends = np.concatenate([begins[open_], middles[open_]]), np.concatenate([middles[open_], ends[open_]])
        coarse = np.concatenate([left[open_], right[open_]])
    return total + float(coarse.sum()), False


def _panels(
    first: UncertainOrbit,
    second: UncertainOrbit,
    radius_km: float,
    begins: FloatArray,
    ends: FloatArray,
    budget: WorkBudget,
) -> tuple[FloatArray, bool]:
    """Return the inflow over each panel (n,) by one Gauss-Legendre sum."""
    times = begins[:, None] + (ends - begins)[:, None] * (_TIME_NODES + 1) / 2
    budget.spend(_EVALUATIONS_PER_INFLOW * times.size)
    met = overlap(first, second, times.ravel(), budget)
    found = np.isfinite(met.mean).all(axis=-1)
    inflow = np.zeros(times.size)
    inflow[found] = _inflow_per_s(met.take(np.flatnonzero(found)), radius_km)
    return inflow.reshape(times.shape) @ _TIME_WEIGHTS * (ends - begins) / 2, bool(found.all())


def _spans(
    first: UncertainOrbit, second: UncertainOrbit, radius_km: float, half_window_s: float, budget: WorkBudget
) -> list[tuple[float, float]]:
    """Disjoint spans of the window, in order, outside of which no collision is expected."""

    def exponent(times: FloatArray) -> FloatArray:
        return log_overlap(overlap(first, second, times.ravel(), budget), radius_km).reshape(times.shape)

    times = half_window_s * _FIRST_LOOK
    begins, ends = _brackets(times, exponent(times))
    for _ in range(_ZOOMS):
        inner = begins[:, None] + (ends - begins)[:, None] * np.linspace(0, 1, _ZOOM_NODES)
        values = exponent(inner)
        at_peak = values >= values.max(axis=-1, keepdims=True)
        low = np.maximum(at_peak.argmax(axis=-1) - 1, 0)
        high = np.minimum(_ZOOM_NODES - at_peak[:, ::-1].argmax(axis=-1), _ZOOM_NODES - 1)
        rows = np.arange(len(inner))
        begins, ends, peaks = inner[rows, low], inner[rows, high], values.max(axis=-1)
    if not len(begins) or not np.isfinite(peaks).any():
        return []
    kept = peaks > peaks.max() - _NEGLIGIBLE
    floor = peaks.max() - _NEGLIGIBLE
    spans: list[tuple[float, float]] = []
    for begin_s, end_s in zip(begins[kept], ends[kept], strict=True):
        growth = max(end_s - begin_s, 1e-6) * 2.0 ** np.arange(0, 48)
        before = np.maximum(begin_s - growth, -half_window_s)
        after = np.minimum(end_s + growth, half_window_s)
        edge_1 = before[np.argmax((exponent(before) < floor) | (before <= -half_window_s))]
        edge_2 = after[np.argmax((exponent(after) < floor) | (after >= half_window_s))]
        if spans and edge_1 <= spans[-1][1]:
            spans[-1] = (min(edge_1, spans[-1][0]), max(edge_2, spans[-1][1]))
        else:
            spans.append((float(edge_1), float(edge_2)))
    return spans


def _brackets(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Beginnings and ends of the spans around each peak or plateau of ``values``."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    is_peak = (values >= padded[:-2]) & (values >= padded[2:]) & np.isfinite(values)
    edges = np.diff(np.concatenate([[0], is_peak.astype(np.int8), [0]]))
    firsts, lasts = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    highest = np.sort(np.argsort(-values[firsts], kind="stable")[:_MOST_PEAKS])
    firsts, lasts = firsts[highest], lasts[highest]
    return times[np.maximum(firsts - 1, 0)], times[np.minimum(lasts + 1, len(times) - 1)]


def _inflow_per_s(met: Overlap, radius_km: float) -> FloatArray:
    """Probability per second of coming within the sphere, (n,)."""
    velocity = np.einsum("nji,nj->ni", met.axes, met.mean[:, 3:])
    turned = met.axes.swapaxes(-1, -2)
    cross, spread = turned @ met.covariance[:, 3:, :3] @ met.axes, turned @ met.covariance[:, 3:, 3:] @ met.axes
    gain = cross / met.variance_km2[:, None, :]
    spread = spread - gain @ cross.swapaxes(-1, -2)
    inflow = np.empty(len(velocity))
    _flow(met.offset_km, met.variance_km2, velocity, gain, spread, radius_km, inflow)
    return inflow


@njit(cache=True, nogil=True, error_model="numpy")
def _flow(
    offset_km: Any, variance_km2: Any, velocity_km_s: Any, gains: Any, spreads: Any, radius_km: float, inflow: Any
) -> None:
    """Integrate over the sphere the density times the mean speed inwards, along the principal axes of the position.

    ``gains`` (n, 3, 3) is the velocity by the position, ``spreads`` (n, 3, 3) the velocity's covariance beside that.
    """
    outward, area = _room()
    for row in range(len(inflow)):
        offset, variance, gain, spread = offset_km[row], variance_km2[row], gains[row], spreads[row]
        _surface(offset, variance, radius_km, outward, area)
        total = 0.0
        for n in range(len(area)):
            x, y, z = outward[n]
            far = (radius_km * x - offset[0], radius_km * y - offset[1], radius_km * z - offset[2])
            exponent = far[0] ** 2 / variance[0] + far[1] ** 2 / variance[1] + far[2] ** 2 / variance[2]
            speed = sigma2 = 0.0
            for i in range(3):
                moving = velocity_km_s[row, i] + gain[i, 0] * far[0] + gain[i, 1] * far[1] + gain[i, 2] * far[2]
                speed += outward[n, i] * moving
                sigma2 += outward[n, i] * (spread[i, 0] * x + spread[i, 1] * y + spread[i, 2] * z)
            sigma = math.sqrt(max(sigma2, 1e-24))
            # A speed known to many sigmas is itself the flow.
            ratio = min(max(speed / sigma, -1e3), 1e3)
            inward = sigma * math.exp(-0.5 * ratio**2) / _ROOT_2_PI - speed * 0.5 * math.erfc(ratio / _ROOT_2)
            total += math.exp(-0.5 * exponent) * inward * area[n]
        inflow[row] = total / (_ROOT_2_PI**3 * math.sqrt(variance[0] * variance[1] * variance[2]))


def _inside(met: Overlap, radius_km: float) -> FloatArray:
    """Probability of being within the sphere, (n,)."""
    inside = np.empty(len(met.mean))
    _content(met.offset_km, met.variance_km2, radius_km, inside)
    return inside


@njit(cache=True, nogil=True, error_model="numpy")
def _content(offset_km: Any, variance_km2: Any, radius_km: float, inside: Any) -> None:
    """Integrate the density over the sphere: of each patch of one half of the surface, the column below it."""
    outward, area = _room()
    for row in range(len(inside)):
        offset, sigma = offset_km[row], np.sqrt(variance_km2[row])
        _surface(offset, variance_km2[row], radius_km, outward, area)
        total = 0.0
        for n in range(len(area) // 2):
            x, y, z = radius_km * outward[n, 0], radius_km * outward[n, 1], radius_km * outward[n, 2]
            plane = math.exp(-0.5 * (((x - offset[0]) / sigma[0]) ** 2 + ((y - offset[1]) / sigma[1]) ** 2))
            above, below = (z - offset[2]) / sigma[2], (-z - offset[2]) / sigma[2]
            column = 0.5 * (math.erfc(-above / _ROOT_2) - math.erfc(-below / _ROOT_2))
            # A patch of the surface covers |cos| of its area in the plane below it.
            total += plane * column * area[n] * abs(outward[n, 2])
        inside[row] = total / (2 * math.pi * sigma[0] * sigma[1])


@njit(cache=True, nogil=True, error_model="numpy")
def _room() -> Any:
    """Arrays for `_surface`."""
    count = 2 * len(_NODES) ** 2
    return np.empty((count, 3)), np.empty(count)


@njit(cache=True, nogil=True, error_model="numpy")
def _surface(offset: Any, variance: Any, radius_km: float, outward: Any, area: Any) -> None:
    """Fill in directions (k, 3) along the principal axes and their areas (k,), only where the density counts.

    Polar angles are counted from the narrowest axis, azimuths from the second; the second half of the directions
    mirrors the first in the widest axis.
    """
    half, place = len(area) // 2, 0
    first, span = _angles(offset[0], math.sqrt(variance[0]), radius_km)
    for i in range(len(_NODES)):
        polar = first + span * (_NODES[i] + 1) / 2
        cosine, sine = math.cos(polar), math.sin(polar)
        from_, width = _angles(offset[1], math.sqrt(variance[1]), radius_km * sine)
        for j in range(len(_NODES)):
            azimuth = from_ + width * (_NODES[j] + 1) / 2
            y, z = sine * math.cos(azimuth), sine * math.sin(azimuth)
            for number, way in ((place, 1.0), (half + place, -1.0)):
                outward[number, 0], outward[number, 1], outward[number, 2] = cosine, y, way * z
                area[number] = radius_km**2 * sine * (span / 2 * _WEIGHTS[i]) * (width / 2 * _WEIGHTS[j])
            place += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _angles(offset: float, sigma: float, radius: float) -> tuple[float, float]:
    """First angle and span, within [0, pi], in which ``radius cos(angle)`` is near ``offset``."""
    nearest = min(max(offset, -radius), radius)
    reach = math.sqrt((offset - nearest) ** 2 + (_SIGMAS * sigma) ** 2)
    safe = max(radius, 1e-300)
    first = math.acos(min(max((offset + reach) / safe, -1.0), 1.0))
    return first, math.acos(min(max((offset - reach) / safe, -1.0), 1.0)) - first
