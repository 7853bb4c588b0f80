"""Figures of an alert's report as SVG: Pc and miss over time, the encounter plane, Pc by scale of the covariance."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse

from sda_platform.arrays import FloatArray
from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.conjunction.cdm_comparison import reported_probability
from sda_platform.conjunction.creation_times import reported_ns
from sda_platform.conjunction.history import EventHistory, hours_ahead
from sda_platform.conjunction.level_colours import LEVEL_COLOURS
from sda_platform.foreign_text import in_figure
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbits.risk.gaussian_parts import probability_2d, stated_risk
from sda_platform.orbits.risk.levels import probability_text
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.plots import svg_of

LEAST_PROBABILITY = 1e-12
"""Lower probabilities are drawn as this one."""
_SIGMA_FACTORS = np.geomspace(0.05, 20, 121)
_PRIMARY, _SECONDARY, _COMBINED = "#1e88e5", "#e53935", "#6d4c41"


def history_figure(history: EventHistory) -> str:
    """Pc with its range up to the largest Pc, and the miss distance with one sigma, against hours to TCA."""
    figure = Figure(figsize=(9.5, 6.0))
    risk, miss = figure.subplots(2, 1, sharex=True)
    hours = np.array(history.hours_to_tca)
    pc, largest = (
        np.maximum(np.array(history.values(name), dtype=float), LEAST_PROBABILITY)
        for name in ("collision_probability", "maximum_probability")
    )
    risk.fill_between(hours, pc, np.maximum(largest, pc), alpha=0.2, color=_SECONDARY, label="up to the largest Pc")
    risk.plot(hours, pc, "o-", color=_SECONDARY, markersize=4, label="Pc")
    trials = np.array([value or 0.0 for value in history.values("probability_standard_error")], dtype=float)
    if trials.any():
        risk.errorbar(hours, pc, yerr=trials, fmt="none", color=_SECONDARY, label="standard error of trials")
    draw_received(risk, history, reported_probability)
    _draw_levels(risk, history)
    risk.set(yscale="log", ylabel="probability of collision")
    distance = np.array(history.values("miss_distance_km"), dtype=float)
    sigma = np.array([miss_sigma_km(row) for row in history.assessments])
    miss.fill_between(hours, np.maximum(distance - sigma, 0), distance + sigma, alpha=0.2, color=_PRIMARY)
    miss.plot(hours, distance, "o-", color=_PRIMARY, markersize=4, label="miss distance, one sigma")
    draw_received(miss, history, lambda message: message["miss_distance_km"])
    first_h = max([*hours, *(hours_ahead(m["tca_time_ns"], reported_ns(m)) for m in history.opinions)])
    # To the closest approach: the plot also shows how much time is left.
    miss.set(ylabel="km", xlabel="hours to TCA", ylim=(0, None), xlim=(first_h * 1.05, min(0.0, *hours, 0.0)))
    for axes in (risk, miss):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return svg_of(figure)


def _draw_levels(axes: Axes, history: EventHistory) -> None:
    for level, threshold in history.thresholds.items():
        axes.axhline(threshold, color=LEVEL_COLOURS[level], linestyle="--", linewidth=1.2)
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (4, 2)}
        axes.annotate(f"{level} from {threshold:.0e}", (0, threshold), color=LEVEL_COLOURS[level], fontsize=8, **place)


def draw_received(axes: Axes, history: EventHistory, value: Callable[[dict[str, Any]], float | None]) -> None:
    """Plot a value of each originator's messages at their creation times, against hours to TCA."""
    for originator in sorted({message["originator"] or "others" for message in history.opinions}):
        messages = [m for m in history.opinions if (m["originator"] or "others") == originator]
        points = [(hours_ahead(m["tca_time_ns"], reported_ns(m)), value(m)) for m in messages]
        known = [(hours, max(y, LEAST_PROBABILITY)) for hours, y in points if y is not None]
        if not known:
            continue
        axes.plot(
            *zip(*known, strict=True),
            "x--" if len(known) > 1 else "x",
            linewidth=0.8,
            label=f"CDM of {in_figure(originator)}",
        )


def plane_figure(assessment: Mapping[str, Any]) -> str:
    """Return the plane across the relative velocity: both objects with their covariances, and the combined one.

    The x axis points along the miss. Ellipses are one sigma of each object and one and three sigma of both combined.
    """
    dr, basis, covariances = encounter_geometry(assessment)
    figure = Figure(figsize=(6.5, 6.5))
    axes = figure.subplots()
    place = basis @ dr
    radius_km = assessment["hard_body_radius_m"] / 1000
    flat = [basis @ covariance @ basis.T for covariance in covariances]
    axes.add_patch(_ellipse((0.0, 0.0), flat[0], 1, _PRIMARY, "primary, 1 sigma"))
    axes.add_patch(_ellipse((float(place[0]), float(place[1])), flat[1], 1, _SECONDARY, "secondary, 1 sigma"))
    for sigmas in (1, 3):
        label = f"combined, {sigmas} sigma"
        axes.add_patch(_ellipse((float(place[0]), float(place[1])), flat[0] + flat[1], sigmas, _COMBINED, label))
    axes.add_patch(Circle((0, 0), radius_km, color="black", label=f"hard body, {1000 * radius_km:g} m"))
    axes.plot(0, 0, "+", color=_PRIMARY, markersize=12)
    axes.plot(*place, "x", color=_SECONDARY, markersize=8)
    reach = 3.2 * float(np.sqrt(np.linalg.eigvalsh(flat[0] + flat[1])[-1])) + float(np.hypot(*place))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="along the miss, km", ylabel="across it, km")
    axes.set_aspect("equal")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return svg_of(figure)


def dilution_figure(history: EventHistory) -> str:
    """2D Pc of the last assessment against a factor on all its sigmas, with the levels: right of the maximum it is
    diluted, so better data may raise it.
    """
    last = history.last
    factors = np.append(1.0, _SIGMA_FACTORS)
    probability, largest, factor = by_sigma_factor(assessed_pass(last), factors)
    pc = np.maximum(probability, LEAST_PROBABILITY)
    figure = Figure(figsize=(6.5, 4.0))
    axes = figure.subplots()
    axes.plot(factors[1:], pc[1:], color=_SECONDARY, label="2D Pc")
    axes.plot(1.0, pc[0], "o", color=_SECONDARY, label=f"with our sigmas, {probability_text(probability[0], 1)}")
    axes.plot(factor, max(largest, LEAST_PROBABILITY), "^", color=_COMBINED,
              label=f"largest, {largest:.1e} at {factor:.2g} times the sigmas")  # fmt: skip
    _draw_levels(axes, history)
    axes.set(xscale="log", yscale="log", xlim=(_SIGMA_FACTORS[0], _SIGMA_FACTORS[-1]),
             xlabel="factor on the sigmas of both objects", ylabel="probability of collision")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return svg_of(figure)


def by_sigma_factor(one: Encounters, factors: FloatArray) -> tuple[FloatArray, float, float]:
    """Return the 2D Pc (n,) of a pass with all its sigmas times ``factors`` (n,); the largest, and its factor."""
    rows, squares = np.zeros(len(factors), np.int64), factors[:, None, None] ** 2
    passes = one.take(rows)
    tails = passes.tails
    if tails:
        tails = replace(tails[0], steady=squares * tails[0].steady), replace(tails[1], steady=squares * tails[1].steady)
    found = probability_2d(
        replace(
            passes,
            covariance_1=squares * passes.covariance_1,
            covariance_2=squares * passes.covariance_2,
            tails=tails,
        )
    )
    if tails and np.isfinite([each.degrees for each in tails]).any():
        best = int(np.argmax(found))
        return found, float(found[best]), float(factors[best])
    # Of Gaussian errors the largest is known exactly, at whatever factor.
    exact = stated_risk(one)
    return found, float(exact.maximum_probability[0]), float(exact.maximum_sigma_scale[0])


def encounter_geometry(assessment: Mapping[str, Any]) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Relative position (3,) km, rows of the plane's axes (2, 3), and both position covariances (3, 3) km², TEME."""
    states = [np.asarray(assessment[f"state_{n}"], dtype=np.float64) for n in (1, 2)]
    covariances = [covariance_from_lower([assessment[f"covariance_{n}"]])[0, :3, :3] for n in (1, 2)]
    dr, dv = states[1][:3] - states[0][:3], states[1][3:] - states[0][3:]
    along = dv / np.linalg.norm(dv)
    across = dr - (dr @ along) * along
    if np.linalg.norm(across) < 1e-9:  # an exact hit has no direction of its own
        across = np.cross(along, np.eye(3)[np.abs(along).argmin()])
    first = across / np.linalg.norm(across)
    return dr, np.stack([first, np.cross(along, first)]), covariances


def miss_sigma_km(assessment: Mapping[str, Any]) -> float:
    """Compute the sigma of the miss distance, km, from both covariances along the miss; NaN without stored states."""
    if not assessment["state_1"]:
        return float("nan")
    _, basis, covariances = encounter_geometry(assessment)
    return float(np.sqrt(max(basis[0] @ (covariances[0] + covariances[1]) @ basis[0], 0.0)))


def _ellipse(centre: tuple[float, float], covariance: FloatArray, sigmas: int, colour: str, label: str) -> Ellipse:
    variances, axes = np.linalg.eigh(covariance)
    width, height = 2 * sigmas * np.sqrt(np.maximum(variances[::-1], 0.0))
    angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
    style = "--" if sigmas > 1 else "-"
    return Ellipse(
        centre, float(width), float(height), angle=angle, fill=False, edgecolor=colour, linestyle=style, label=label
    )
