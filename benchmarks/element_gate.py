"""How often right element sets are held before the merge, and how many wrong ones are.

    python benchmarks/element_gate.py history.3le.gz

Each set of the history is judged as it arrives, by the sets before it, and again with the one that follows. A set that
was held and that the next one bears out was right: a false hold, or a real manoeuvre of an object that can manoeuvre.

Wrong sets are planted: one quiet set of each object is given the elements of its neighbour (a cross-tag), a wrong
digit, an implausible mean motion, or those that a fit across a burn gives. Real manoeuvres are planted as well: all
sets from one on.
"""

import argparse
import dataclasses
from pathlib import Path
from typing import Final

import numpy as np
from element_jumps import manoeuvred, middles_of, read
from scipy.spatial import cKDTree

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.element_gate import HELD_FROM, contradictions, has_witness_before
from sda_platform.orbits.element_jumps import BAD_FIT, CROSS_TAG, KINDS, LEAST_SETS, UNSETTLED, classify_jumps
from sda_platform.orbits.elements import ElementSets, are_possible, semi_major_axis_km
from sda_platform.orbits.mean_elements import DIFFERENCE, from_equinoctial, states_and_partials, to_equinoctial
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_NS

FAR_KM: Final = 20.0
"""A planted error that moves the object by less after a day is no worse than an old set."""
_DIGITS: Final = {
    "mean_motion_rev_per_day": (2, 8), "eccentricity": (0, 7), "inclination_deg": (3, 4), "raan_deg": (3, 4),
    "arg_of_pericenter_deg": (3, 4), "mean_anomaly_deg": (3, 4),
}  # fmt: skip
"""Digits before and after the point in two lines."""
_FITTED_FROM_DAYS, _BURN_DAYS, _FITTED_TIMES, _ROUNDS = 1.5, 0.5, 24, 8


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    elements, is_passive = read(parser.parse_args().history)
    everything = np.ones(len(elements), np.bool_)
    first, last = (elements.epoch_time_ns.min() / DAY_NS, elements.epoch_time_ns.max() / DAY_NS)
    print(
        f"{len(elements):,} sets of {len(np.unique(elements.norad_id)):,} objects in {last - first:.0f} days; held "
        f"from {HELD_FROM:g} times the usual deviation, of the object from {LEAST_SETS} sets on"
    )
    judged = has_witness_before(elements, everything, np.arange(len(elements)))
    print(f"{judged.sum():,} follow a set within 30 days and are judged; {(~are_possible(elements)).sum()} implausible")
    at_arrival = contradictions(elements, everything, everything, at_arrival=True).row
    with_next = contradictions(elements, everything, everything)
    for title, chosen in (
        ("all objects", everything),
        ("debris and rocket bodies", is_passive),
        ("payloads and others", ~is_passive),
    ):
        history(
            title,
            elements,
            chosen & judged,
            at_arrival[chosen[at_arrival]],
            with_next.row,
            with_next.kind.astype(np.int64),
        )
    quiet = is_passive & (classify_jumps(elements).kind == 0)
    planted(elements, middles_of(elements, quiet))


def history(
    title: str, elements: ElementSets, chosen: BoolArray, held: IntArray, last: IntArray, kind: IntArray
) -> None:
    """Print what became of the sets that were held as they arrived."""
    kinds = dict(zip(last.tolist(), kind.tolist(), strict=True))
    borne_out = np.array([row for row in held.tolist() if row not in kinds], np.int64)
    rates = {"held at arrival": len(held), "of it borne out by the next set (false)": len(borne_out)}
    for place in (BAD_FIT, CROSS_TAG, UNSETTLED):
        name = "no set follows" if place == UNSETTLED else f"contradicted, {KINDS[place]}"
        rates[name] = sum(kinds.get(row) == place for row in held.tolist())
    print(f"{title}: {chosen.sum():,} judged sets")
    for name, count in rates.items():
        print(f"  {name}: {count:,}, {1000 * count / chosen.sum():.2f} per 1,000")
    if len(borne_out):
        hours = np.diff(elements.epoch_time_ns)[borne_out] / DAY_NS * 24
        print(f"  epochs between a false hold and the next set: median {np.median(hours):.0f} h, 90 % below "
              f"{np.quantile(hours, 0.9):.0f} h")  # fmt: skip


def planted(elements: ElementSets, middles: list[tuple[int, int, int]]) -> None:
    """Print the shares of planted errors, and of planted manoeuvres, that are held."""
    rows = np.array([row for *_, row in middles])
    rng = np.random.default_rng(1)
    print(f"planted in one quiet set of each of {len(rows):,} debris and rocket bodies: held at arrival; with the next")
    report("elements of the neighbouring orbit", elements, replaced(elements, rows, neighbours(elements, rows)), rows)
    report("a wrong digit", elements, wrong_digits(elements, rows, rng), rows)
    motion = elements.mean_motion_rev_per_day.copy()
    motion[rows] *= rng.choice([0.8, 0.9, 1.1, 1.2], len(rows))
    report("mean motion 10 or 20 % off", elements, dataclasses.replace(elements, mean_motion_rev_per_day=motion), rows)
    for change_m_s in (1.0, 5.0):
        few = middles[:: max(1, len(middles) // 200)]
        changed = across_burn(elements, few, change_m_s)
        report(f"fitted across a burn of {change_m_s:g} m/s", elements, changed, np.array([row for *_, row in few]))
    print("planted manoeuvres, right sets from one on: held at arrival; held with the next")
    for change_m_s in (0.05, 0.2, 1.0, 5.0, 20.0):
        report(f"manoeuvre of {change_m_s:g} m/s", elements, manoeuvred(elements, middles, change_m_s), rows)


def report(title: str, before: ElementSets, after: ElementSets, rows: IntArray) -> None:
    """Print how many of the changed sets are held: of all, and of those that are far off a day later."""
    everything, judged = np.ones(len(after), np.bool_), np.zeros(len(after), np.bool_)
    judged[rows] = True
    is_impossible = ~are_possible(after)
    arrived, later = (
        np.isin(rows, contradictions(after, everything & ~is_impossible, judged, at_arrival=each).row)
        | is_impossible[rows]
        for each in (True, False)
    )
    is_far = ~(far_km(before, after, rows) < FAR_KM)
    shares = [f"{arrived[chosen].mean():.1%}; {later[chosen].mean():.1%}" if chosen.any() else "none"
              for chosen in (is_far | True, is_far)]  # fmt: skip
    print(f"  {title}: {shares[0]}; of the {is_far.mean():.0%} that are {FAR_KM:g} km off after a day {shares[1]}; "
          f"implausible {is_impossible[rows].mean():.1%}", flush=True)  # fmt: skip


def far_km(before: ElementSets, after: ElementSets, rows: IntArray) -> FloatArray:
    """Distance (m,) that the change makes a day after the epoch, km; NaN where the changed set has no state then."""
    day = before.epoch_time_ns[rows] + DAY_NS
    states = [Propagator(each.take(rows)).at(np.arange(len(rows)), day)[1] for each in (before, after)]
    return np.asarray(np.linalg.norm(states[0] - states[1], axis=1))


def replaced(elements: ElementSets, rows: IntArray, others: IntArray) -> ElementSets:
    """The sets with the orbits of ``others`` in the place of ``rows``, at the epochs of these."""
    columns = {field.name: getattr(elements, field.name).copy() for field in dataclasses.fields(elements)}
    for name in set(columns) - {"norad_id"}:
        columns[name][rows] = columns[name][others]
    columns["epoch_time_ns"][rows] = elements.epoch_time_ns[rows]
    days = (elements.epoch_time_ns[rows] - elements.epoch_time_ns[others]) / DAY_NS
    anomaly = columns["mean_anomaly_deg"]
    anomaly[rows] = (anomaly[rows] + 360 * days * columns["mean_motion_rev_per_day"][rows]) % 360
    return ElementSets(**columns)


def neighbours(elements: ElementSets, rows: IntArray) -> IntArray:
    """A set of the object whose orbit is nearest: by plane, size and shape; of its sets that with the nearest epoch."""
    inclination, node = np.radians(elements.inclination_deg), np.radians(elements.raan_deg)
    axis_km = semi_major_axis_km(elements)
    normal = np.stack([np.sin(inclination) * np.sin(node), np.sin(inclination) * np.cos(node), np.cos(inclination)])
    places = np.column_stack([(axis_km * normal).T, axis_km, axis_km * elements.eccentricity])
    day = elements.epoch_time_ns // (5 * DAY_NS)
    found = np.zeros(len(rows), np.int64)
    for each in np.unique(day[rows]):
        of_day, wanted = np.flatnonzero(day == each), np.flatnonzero(day[rows] == each)
        near = of_day[cKDTree(places[of_day]).query(places[rows[wanted]], k=min(40, len(of_day)))[1]]
        is_other = elements.norad_id[near] != elements.norad_id[rows[wanted]][:, None]
        found[wanted] = near[np.arange(len(wanted)), is_other.argmax(axis=1)]
    return found


def wrong_digits(elements: ElementSets, rows: IntArray, rng: np.random.Generator) -> ElementSets:
    """One digit of one field of each set is another one."""
    columns = {name: getattr(elements, name).copy() for name in _DIGITS}
    for row in rows.tolist():
        name = list(_DIGITS)[rng.integers(len(_DIGITS))]
        before, after = _DIGITS[name]
        text = f"{columns[name][row]:0{before + after + 1}.{after}f}"
        while True:
            place = int(rng.integers(len(text)))
            changed = text[:place] + str(rng.integers(10)) + text[place + 1 :]
            in_range = float(changed) < (1 if name == "eccentricity" else 20 if name.startswith("mean_m") else 360)
            if text[place] != "." and changed != text and float(changed) > 0 and in_range:
                break
        columns[name][row] = float(changed)
    return dataclasses.replace(elements, **columns)


def across_burn(elements: ElementSets, middles: list[tuple[int, int, int]], change_m_s: float) -> ElementSets:
    """Sets from one on after a burn; the first of them is fitted to states from before and after it."""
    changed = manoeuvred(elements, middles, change_m_s)
    columns = {field.name: getattr(changed, field.name).copy() for field in dataclasses.fields(changed)}
    for *_, row in middles:
        before, after = elements.take([row]), changed.take([row])
        epoch_ns = int(elements.epoch_time_ns[row])
        times_ns = epoch_ns - (np.linspace(_FITTED_FROM_DAYS, 0, _FITTED_TIMES) * DAY_NS).astype(np.int64)
        none = np.zeros(len(times_ns), np.int64)
        old, new = (np.hstack(Propagator(each).at(none, times_ns)[1:]) for each in (before, after))
        seen = np.where((times_ns < epoch_ns - _BURN_DAYS * DAY_NS)[:, None], old, new)
        fitted = fit(to_equinoctial(before)[0], epoch_ns, float(elements.bstar_per_earth_radius[row]), times_ns, seen)
        for name in _DIGITS:
            columns[name][row] = getattr(fitted, name)[0]
    return ElementSets(**columns)


def fit(start: FloatArray, epoch_ns: int, bstar: float, times_ns: IntArray, seen: FloatArray) -> ElementSets:
    """Elements whose positions at times (m,) are nearest to those of the states (m, 6) that were seen."""

    def sets(unknowns: FloatArray) -> ElementSets:
        return from_equinoctial(unknowns, epoch_ns, bstar)

    unknowns = start.copy()
    for _ in range(_ROUNDS):
        states, partials = states_and_partials(unknowns, DIFFERENCE, sets, times_ns)
        off = (seen - states)[:, :3].ravel()
        if not np.isfinite(off).all():
            break
        unknowns = unknowns + np.linalg.lstsq(partials[:, :3].reshape(-1, 6), off, rcond=None)[0]
    return sets(unknowns[None])


if __name__ == "__main__":
    main()
