"""How often jumps between element sets are reported that are none, and how many that are there are found.

    python benchmarks/element_jumps.py history.3le.gz

False alarms are counted on debris and rocket bodies, which cannot manoeuvre, and of them on the half (by catalogue
number) that was not used to choose the thresholds. Missed jumps are counted after changing one set of each object, or
all from one on: a change of speed along the track, a wrong mean anomaly, the elements of another object.
"""

import argparse
import dataclasses
import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np

from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits.element_jumps import BAD_FIT, CROSS_TAG, KINDS, MANOEUVRE, classify_jumps
from sda_platform.orbits.elements import ElementSets, semi_major_axis_km
from sda_platform.orbits.propagation import refusal_reasons
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

SAME_SET_NS = 600e9


def main() -> None:
    """Print false alarms and found jumps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    elements, is_passive = read(parser.parse_args().history)
    found = classify_jumps(elements)
    held_out = elements.norad_id % 4 == 2
    print(f"{len(elements):,} sets of {len(np.unique(elements.norad_id)):,} objects")
    for title, chosen in (
        ("debris and rocket bodies, thresholds chosen on them", is_passive & ~held_out),
        ("debris and rocket bodies, held out", is_passive & held_out),
        ("payloads and others", ~is_passive),
    ):
        judged = found.is_judged & chosen
        counts = {KINDS[k]: int((found.kind[judged] == k).sum()) for k in range(1, len(KINDS))}
        rates = ", ".join(f"{kind} {1000 * n / judged.sum():.2f}" for kind, n in counts.items())
        print(f"{title}: {judged.sum():,} sets judged; per 1,000: {rates}")
    sensitivity(elements, found.is_judged & (found.kind == 0) & is_passive)


def sensitivity(elements: ElementSets, quiet: np.ndarray) -> None:
    """Change one quiet set of each object in the middle of its history, and count what is then reported."""
    rng = np.random.default_rng(1)
    middles = middles_of(elements, quiet)
    rows = np.array([row for *_, row in middles])
    for change_m_s in (0.05, 0.2, 1.0, 5.0):
        report(f"manoeuvre of {change_m_s} m/s", manoeuvred(elements, middles, change_m_s), rows, MANOEUVRE)
    anomaly = elements.mean_anomaly_deg.copy()
    anomaly[rows] += np.where(rng.random(len(rows)) < 0.5, 0.5, -0.5)
    report("bad fit, 0.5 deg along the track", dataclasses.replace(elements, mean_anomaly_deg=anomaly), rows, None)
    other = {f.name: getattr(elements, f.name).copy() for f in dataclasses.fields(elements)}
    for name in set(other) - {"norad_id", "epoch_time_ns"}:
        other[name][rows] = other[name][np.roll(rows, 1)]
    report("elements of another object", ElementSets(**other), rows, CROSS_TAG)


def middles_of(elements: ElementSets, quiet: np.ndarray) -> list[tuple[int, int, int]]:
    """Of each object with five ``quiet`` rows: its first row, the row after its last, and the middle quiet one."""
    starts = np.flatnonzero(np.append(True, elements.norad_id[1:] != elements.norad_id[:-1]))
    return [
        (start, end, int(rows[len(rows) // 2]))
        for start, end in pairwise([*starts.tolist(), len(elements)])
        if len(rows := start + np.flatnonzero(quiet[start:end])) > 4
    ]


def manoeuvred(elements: ElementSets, middles: list[tuple[int, int, int]], change_m_s: float) -> ElementSets:
    """The sets after a change of speed along the track, of each object from the middle row on."""
    motion, axis_km = elements.mean_motion_rev_per_day.copy(), semi_major_axis_km(elements)
    for _, end, row in middles:
        motion[row:end] *= 1 - 3 * change_m_s / 1000 / np.sqrt(MU_EARTH_KM3_S2 / axis_km[row])
    changed = dataclasses.replace(elements, mean_motion_rev_per_day=motion)
    return dataclasses.replace(changed, mean_anomaly_deg=_following(changed, elements, middles))


def _following(changed: ElementSets, elements: ElementSets, middles: list[tuple[int, int, int]]) -> np.ndarray:
    """Mean anomalies after the change of motion: the phase that has built up since it."""
    anomaly = elements.mean_anomaly_deg.copy()
    for _, end, row in middles:
        days = (elements.epoch_time_ns[row:end] - elements.epoch_time_ns[row]) / 86_400e9 + 0.25
        faster = changed.mean_motion_rev_per_day[row] - elements.mean_motion_rev_per_day[row]
        anomaly[row:end] = (anomaly[row:end] + 360 * faster * days) % 360
    return anomaly


def report(title: str, elements: ElementSets, rows: np.ndarray, kind: int | None) -> None:
    """Print how many of the changed sets are found, and as what."""
    verdicts = classify_jumps(elements).kind[rows]
    wanted = (BAD_FIT, CROSS_TAG) if kind is None else (kind,)
    counts = ", ".join(f"{KINDS[k]} {np.mean(verdicts == k):.1%}" for k in range(len(KINDS)))
    print(f"{title}: {np.isin(verdicts, wanted).mean():.1%} of {len(rows):,} recognised ({counts})")


def read(path: Path) -> tuple[ElementSets, np.ndarray]:
    """Usable sets by object and epoch, without repetitions, and which objects cannot manoeuvre, by their names."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = decode_element_sets(data, segment_format="tle")
    rows = rows.filter(np.array([kind is None for kind in rows["error_kind"].to_pylist()]))
    rows = rows.sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")])
    elements = ElementSets.from_columns({f.name: rows[f.name].to_numpy() for f in dataclasses.fields(ElementSets)})
    names = np.array([name or "" for name in rows["object_name"].to_pylist()])
    is_new = np.append(
        True, (np.diff(elements.norad_id) != 0) | (np.diff(elements.epoch_time_ns) > SAME_SET_NS)
    ) & np.array([reason is None for reason in refusal_reasons(elements)])
    is_passive = np.array([" DEB" in name or "R/B" in name for name in names])
    return elements.take(is_new), is_passive[is_new]


if __name__ == "__main__":
    main()
