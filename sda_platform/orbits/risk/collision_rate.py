"""Long and slow encounters: expected collisions of two uncertain orbits, without assuming straight relative motion.

The probability flux into the sphere of the combined radius is integrated over its surface and over time. If a pair
meets only once, the expected number is the probability.

Source: Coppola, "Including Velocity Uncertainty in the Probability of Collision between Space Objects", AAS 12-247
(2012), with the overlap of Hall (2021).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.special import ndtr

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
    outward, weight = _surface(met, radius_km)
    axes, variance, offset = met.axes, met.variance_km2, met.offset_km
    velocity = np.einsum("nji,nj->ni", axes, met.mean[:, 3:])
    turned = axes.swapaxes(-1, -2)
    cross, spread = turned @ met.covariance[:, 3:, :3] @ axes, turned @ met.covariance[:, 3:, 3:] @ axes
    gain = cross / variance[:, None, :]
    spread = spread - gain @ cross.swapaxes(-1, -2)
    away = radius_km * outward - offset[:, None, :]
    density = np.exp(-0.5 * (away**2 / variance[:, None, :]).sum(axis=-1))
    density /= np.sqrt((2 * np.pi) ** 3 * variance.prod(axis=-1))[:, None]
    moving = velocity[:, None, :] + away @ gain.swapaxes(-1, -2)
    speed = np.einsum("nki,nki->nk", outward, moving)
    sigma = np.sqrt(np.maximum(np.einsum("nki,nki->nk", outward @ spread, outward), 1e-24))
    # A speed known to many sigmas is itself the flow.
    ratio = np.clip(speed / sigma, -1e3, 1e3)
    inward = sigma * np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi) - speed * ndtr(-ratio)
    return np.asarray((density * inward * weight).sum(axis=-1))


def _inside(met: Overlap, radius_km: float) -> FloatArray:
    """Probability of being within the sphere, (n,)."""
    outward, weight = _surface(met, radius_km)
    half = outward.shape[1] // 2
    x, y, z = np.moveaxis(radius_km * outward[:, :half], -1, 0)
    sigma, offset = np.sqrt(met.variance_km2)[:, None, :], met.offset_km[:, None, :]
    plane = np.exp(-0.5 * (((x - offset[..., 0]) / sigma[..., 0]) ** 2 + ((y - offset[..., 1]) / sigma[..., 1]) ** 2))
    plane /= 2 * np.pi * sigma[..., 0] * sigma[..., 1]
    column = ndtr((z - offset[..., 2]) / sigma[..., 2]) - ndtr((-z - offset[..., 2]) / sigma[..., 2])
    # A patch of the surface covers |cos| of its area in the plane below it.
    patches = plane * column * weight[:, :half] * np.abs(outward[:, :half, 2])
    return np.asarray(patches.sum(axis=-1))


def _surface(met: Overlap, radius_km: float) -> tuple[FloatArray, FloatArray]:
    """Directions (n, k, 3) along the principal axes and their areas (n, k), only where the density is not negligible.

    Polar angles are counted from the narrowest axis, azimuths from the second; the second half of the directions
    mirrors the first in the widest axis.
    """
    sigma, offset = np.sqrt(met.variance_km2), met.offset_km
    polar, polar_weight = _angles(offset[:, 0], sigma[:, 0], np.full(len(sigma), radius_km))
    ring_km = radius_km * np.sin(polar)
    azimuth, azimuth_weight = _angles(offset[:, 1, None], sigma[:, 1, None], ring_km)
    sine = np.sin(polar)[..., None]
    x = np.broadcast_to(np.cos(polar)[..., None], azimuth.shape)
    y, z = sine * np.cos(azimuth), sine * np.sin(azimuth)
    area = (radius_km**2 * sine * polar_weight[..., None] * azimuth_weight).reshape(len(sigma), -1)
    half = np.stack([x, y, z], axis=-1).reshape(len(sigma), -1, 3)
    return np.concatenate([half, half * [1, 1, -1]], axis=1), np.concatenate([area, area], axis=1)


def _angles(offset: FloatArray, sigma: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre angles in [0, pi] (a new last axis) whose ``radius cos(angle)`` is near ``offset``; weights."""
    nearest = np.clip(offset, -radius, radius)
    reach = np.sqrt((offset - nearest) ** 2 + (_SIGMAS * sigma) ** 2)
    safe = np.maximum(radius, 1e-300)
    first = np.arccos(np.clip((offset + reach) / safe, -1, 1))[..., None]
    last = np.arccos(np.clip((offset - reach) / safe, -1, 1))[..., None]
    return first + (last - first) * (_NODES + 1) / 2, (last - first) / 2 * _WEIGHTS
