"""How a path's detector would have done on recorded heartbeats: false alarms, suspicion, and time to detection. Pure.

Each record is played to the detector itself. Suspicion is measured just before each heartbeat, when it is highest. A
silence of up to `LONGEST_LATE_S` that ended by itself is a late heartbeat, so a declaration in it would be false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sda_platform.ground.failover import SUSPECT_PHI
from sda_platform.ground.failure_detection import PATH_CLASSES, PathClass, PhiDetector, deviations_at
from sda_platform.ground.heartbeats import HeartbeatRecord
from sda_platform.units import DAY_S

LONGEST_LATE_S: Final = 30.0
MOST_FALSE_A_DAY: Final = 1.0
"""False declarations of a path a day: each costs a failover."""
MOST_DETECTION_S: Final = 20.0
"""Time to a declaration that leaves the length of a lease, until 30 s from stop to promotion have passed."""
MOST_STEADY_PHI: Final = 2.0
"""Suspicion that regular heartbeats stay below, up to the 98th percentile."""
LEAST_HOURS: Final = 0.1
"""Shorter recordings of a path show neither rare pauses nor a tail: they are shown, and not judged."""
_THRESHOLDS: Final = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 48.0)


@dataclass(frozen=True)
class Calibration:
    """What the recorded heartbeats of one path say of its detector. Gaps and detection in seconds, rates a day."""

    station: str
    heard: str
    path: PathClass
    hours: float
    gap_s: tuple[float, ...]
    """Median, 99 %, 99.9 %, longest."""
    phi: tuple[float, ...]
    """Before a heartbeat: median, 98 %, 99.9 %."""
    false_suspicions: float
    false_declarations: float
    detection_s: tuple[float, ...]
    """From the last heartbeat to the declaration: median and 99 %."""
    advised_phi: float | None
    """The lowest threshold with few false declarations that detects in time; None: no threshold does both."""

    @property
    def is_judged(self) -> bool:
        """Whether there are enough heartbeats."""
        return self.hours >= LEAST_HOURS

    @property
    def name(self) -> str:
        """Return the names of station and uplink."""
        return f"{self.station} {self.heard}"

    def shown(self) -> dict[str, Any]:
        """Return a row of the table for people."""
        gaps = zip(("50 %", "99 %", "99.9 %", "most"), self.gap_s, strict=True)
        phis = zip(("50 %", "98 %", "99.9 %"), self.phi, strict=True)
        return {
            "path": self.name,
            "class": self.path.name,
            "hours": f"{self.hours:.1f}",
            **{f"gap s {name}": f"{each:.3f}" for name, each in gaps},
            **{f"phi {name}": f"{min(each, 999.0):.1f}" for name, each in phis},
            f"phi {SUSPECT_PHI:g} a day": f"{self.false_suspicions:.1f}",
            "declared a day": f"{self.false_declarations:.1f} at {self.path.declare_phi:g}",
            "found s 50 %": f"{self.detection_s[0]:.2f}",
            "found s 99 %": f"{self.detection_s[1]:.2f}",
            "advised phi": "none" if self.advised_phi is None else f"{self.advised_phi:g}",
        }


def calibrations(
    records: Iterable[HeartbeatRecord], classes: Mapping[str, PathClass] = PATH_CLASSES
) -> list[Calibration]:
    """Compute one calibration for each path with records of a known class; by station and uplink."""
    by_path: dict[tuple[str, str, str], list[HeartbeatRecord]] = {}
    for each in records:
        if each.path in classes:
            by_path.setdefault((each.station, each.heard, each.path), []).append(each)
    found = []
    for (station, heard, name), several in sorted(by_path.items()):
        played = np.concatenate([_played(each.gaps_s, classes[name]) for each in several])
        found += [_calibration(station, heard, classes[name], played)] if len(played) else []
    return found


def _calibration(station: str, heard: str, path: PathClass, played: np.ndarray[Any, Any]) -> Calibration:
    gap_s, phi, mean_s, sigma_s = played.T
    days = gap_s.sum() / DAY_S
    is_late = gap_s <= LONGEST_LATE_S

    def false_a_day(threshold: float) -> float:
        return float((is_late & (phi >= threshold)).sum() / days)

    def detection_s(threshold: float) -> tuple[float, ...]:
        return _quantiles(mean_s + path.acceptable_pause_s + deviations_at(threshold) * sigma_s, 50, 99)

    fit = (
        threshold
        for threshold in _THRESHOLDS
        if false_a_day(threshold) <= MOST_FALSE_A_DAY and detection_s(threshold)[1] <= MOST_DETECTION_S
    )
    return Calibration(
        station,
        heard,
        path,
        float(gap_s.sum()) / 3600.0,
        _quantiles(gap_s, 50, 99, 99.9, 100),
        _quantiles(phi[is_late], 50, 98, 99.9),
        false_a_day(SUSPECT_PHI),
        false_a_day(path.declare_phi),
        detection_s(path.declare_phi),
        next(fit, None),
    )


def _quantiles(values: np.ndarray[Any, Any], *percent: float) -> tuple[float, ...]:
    return tuple(float(each) for each in np.percentile(values, percent)) if len(values) else (0.0,) * len(percent)


def _played(gaps_s: Sequence[float], path: PathClass) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A row for each heartbeat after the warm-up: gap, phi before it, mean and sigma of the gaps before it."""
    detector, now_s, rows = PhiDetector(path), 0.0, []
    detector.heartbeat(now_s)
    for number, gap_s in enumerate(gaps_s):
        now_s += gap_s
        if number >= path.warm_up:
            rows.append((gap_s, detector.suspicion(now_s), *detector.gap_s))
        # A declaration begins before the heartbeat, and ends with it.
        detector.is_failed(now_s)
        detector.heartbeat(now_s)
        detector.is_failed(now_s)
    return np.array(rows).reshape(-1, 4)
