"""The alert policy: the level of an assessed event, and whether a change of an alert is news.

Every approach that screening finds is an event of interest and is assessed. Only some of them are alerts, and an alert
is sent again only when a change matters. docs/explanation/alert-policy.md has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sda_platform.conjunction.state_choice import flags_in
from sda_platform.formats.markings import Marking
from sda_platform.orbits.risk.levels import DILUTED, RISK_LEVELS, probability_text
from sda_platform.setting_sections import AlertSettings
from sda_platform.units import HOUR_NS, SECOND_NS

BY_PROBABILITY, BY_DILUTION, BY_MANOEUVRE = "probability", "dilution", "suspected_manoeuvre"
BY_STATEMENT, BY_HYSTERESIS = "stated_by_other", "hysteresis"
RULES = (BY_PROBABILITY, BY_DILUTION, BY_MANOEUVRE, BY_STATEMENT, BY_HYSTERESIS)
CHANGES = (
    "new", "risk_level", "probability", "stated_probability", "tca", "miss", "data_quality", "marking", "reopened",
    "closed",
)  # fmt: skip
GREEN, YELLOW, RED = range(3)

# How much farther a miss may be, in sigmas, for an alert to keep a level that it has by dilution.
_HYSTERESIS_SIGMAS = 0.5

Columns = Mapping[str, npt.NDArray[Any]]
Fact = Mapping[str, Any]
FactT = TypeVar("FactT", bound=Fact)
LEVEL_COLUMNS = (
    "norad_id_1", "norad_id_2", "tca_time_ns", "collision_probability", "maximum_probability", "risk_flags",
    "mahalanobis_distance", "is_2d_valid", "risk", "manoeuvre_time_1_ns", "manoeuvre_time_2_ns",
)  # fmt: skip
"""Columns of `conjunction_assessments` that the level depends on."""


@dataclass(frozen=True)
class AlertPolicy:
    """Thresholds by `AlertSettings`; ``members`` has the levels of Pc (yellow, red) of objects with their own."""

    settings: AlertSettings
    members: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def gate_ns(self) -> int:
        """Time to TCA at which the rule of dilution begins to apply, ns."""
        return round(self.settings.dilution_within_h * HOUR_NS)

    def levels(self, events: Columns, previous: npt.ArrayLike, as_of_ns: int) -> npt.NDArray[np.int64]:
        """Return the level (n,) of each event at ``as_of_ns``: GREEN, YELLOW or RED; ``previous`` is the level of its
        alert.

        ``events`` has LEVEL_COLUMNS, each (n,), and `stated_probability`, unless only our own assessment is meant. A
        level is kept until the event falls below its thresholds by the hysteresis.
        """
        before = np.asarray(previous, dtype=np.int64)
        strict, relaxed = self._strict(events, as_of_ns), self._relaxed(events, as_of_ns)
        return np.maximum(_highest(strict), np.minimum(before, _highest(relaxed)))

    def rule(self, events: Columns, level: npt.NDArray[np.int64], as_of_ns: int) -> list[str]:
        """Name the rule, one of RULES, that gives each event (n,) its ``level``."""
        strict = self._strict(events, as_of_ns)
        found = np.select([of_rule >= level for of_rule in strict.values()], list(strict), BY_HYSTERESIS)
        return [str(name) for name in found]

    def changes(self, fact: Fact, sent: Fact) -> list[str]:
        """List the changes, of CHANGES, for which an alert must be sent again since it was ``sent``; often none."""
        floor = self.thresholds(fact)[0] * 10.0**-self.settings.hysteresis_decades
        decades = [
            abs(math.log10(max(fact.get(name) or 0.0, floor) / max(sent.get(name) or 0.0, floor)))
            for name in ("collision_probability", "stated_probability")
        ]
        tca_moved_s = abs(fact["tca_time_ns"] - sent["tca_time_ns"]) / SECOND_NS
        found = {
            "risk_level": fact["risk"] != sent["risk"],
            "probability": decades[0] >= self.settings.revise_decades,
            "stated_probability": decades[1] >= self.settings.revise_decades,
            "tca": tca_moved_s >= self.settings.revise_tca_s,
            "miss": abs(fact["miss_distance_km"] - sent["miss_distance_km"]) >= self.settings.revise_miss_km,
            "data_quality": sent["data_quality"] not in (None, fact["data_quality"]),
            "marking": Marking.of(sent).shown != Marking.of(fact).shown,
        }
        return [name for name, has_changed in found.items() if has_changed]

    def thresholds(self, fact: Fact) -> tuple[float, float]:
        """Return the Pc thresholds of an event: the lower ones of its two objects, else those of the fleet."""
        pairs = [self.members[fact[name]] for name in ("norad_id_1", "norad_id_2") if fact[name] in self.members]
        yellow, red = zip(*(pairs or [(self.settings.yellow_pc, self.settings.red_pc)]), strict=True)
        return min(yellow), min(red)

    def _all_thresholds(self, events: Columns) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        count = len(events["tca_time_ns"])
        yellow, red = (np.full(count, pc) for pc in (self.settings.yellow_pc, self.settings.red_pc))
        names = ("norad_id_1", "norad_id_2")
        own = np.isin(events[names[0]], list(self.members)) | np.isin(events[names[1]], list(self.members))
        for row in np.flatnonzero(own):
            yellow[row], red[row] = self.thresholds({name: int(events[name][row]) for name in names})
        return yellow, red

    def _strict(
        self, events: Columns, as_of_ns: int, decades: float = 0.0, sigmas: float = 0.0
    ) -> dict[str, npt.NDArray[np.int64]]:
        """Levels (n,) by each rule, with thresholds relaxed by ``decades`` and ``sigmas``."""
        settings, factor = self.settings, 10.0**decades
        yellow, red = self._all_thresholds(events)
        # NaN where only others assess the event.
        pc = np.asarray(events["collision_probability"], dtype=np.float64) * factor
        # Without all covariances the 2D Pc cannot be validated; the assessment's level is the highest of all answers.
        is_unvalidated = np.array([valid is None for valid in events["is_2d_valid"]], dtype=np.bool_)
        is_red = (pc >= red) | (is_unvalidated & (np.asarray(events["risk"]) == RISK_LEVELS[RED]))
        by_probability = np.where(is_red, RED, np.where(pc >= yellow, YELLOW, GREEN))
        diluted = np.array([DILUTED in flags_in(flags) for flags in events["risk_flags"]], dtype=np.bool_)
        diluted &= np.asarray(events["tca_time_ns"]) - as_of_ns <= self.gate_ns
        largest = np.asarray(events["maximum_probability"], dtype=np.float64) * factor
        miss = np.asarray(events["mahalanobis_distance"], dtype=np.float64)
        is_red = diluted & (largest >= settings.dilution_red_pc) & (miss <= settings.dilution_red_sigmas + sigmas)
        is_yellow = diluted & (largest >= settings.dilution_yellow_pc)
        is_yellow &= miss <= settings.dilution_yellow_sigmas + sigmas
        by_dilution = np.where(is_red, RED, np.where(is_yellow, YELLOW, GREEN))
        # The path after a manoeuvre is known badly at first, so that Pc is small whatever will be.
        lower = yellow * 10.0**-settings.manoeuvre_decades
        is_suspected = np.fromiter(_suspected(events), np.bool_)
        by_manoeuvre = np.where(is_suspected & (settings.manoeuvre_decades > 0) & (pc >= lower), YELLOW, GREEN)
        by_statement = np.full(len(pc), GREEN)
        if settings.stated_by_other and "stated_probability" in events:
            stated = np.asarray(events["stated_probability"], dtype=np.float64) * factor
            by_statement = np.where(stated >= red, RED, np.where(stated >= yellow, YELLOW, GREEN))
        return {
            BY_PROBABILITY: by_probability,
            BY_DILUTION: by_dilution,
            BY_MANOEUVRE: by_manoeuvre,
            BY_STATEMENT: by_statement,
        }

    def _relaxed(self, events: Columns, as_of_ns: int) -> dict[str, npt.NDArray[np.int64]]:
        return self._strict(events, as_of_ns, self.settings.hysteresis_decades, _HYSTERESIS_SIGMAS)


def largest_reported(alert: Fact) -> float:
    """Return the larger Pc of an alert, our own or a received one; a missing value counts as 0."""
    return max(alert.get(name) or 0.0 for name in ("collision_probability", "stated_probability"))


def reported(alert: Fact) -> str:
    """Write our own Pc and the received one, with its originator, for people."""
    own, stated = alert["collision_probability"], alert.get("stated_probability")
    parts = [] if own is None else [f"Pc {probability_text(own)}"]
    parts += [] if stated is None else [f"Pc {probability_text(stated)} by {alert['stated_by']}"]
    return ", ".join(parts)


def why_level(alert: Fact) -> str:
    """Say in words by which rule an alert has its level; empty where none is recorded."""
    words = {
        BY_PROBABILITY: "by our own Pc",
        BY_DILUTION: "by the largest Pc over all scalings of the covariance",
        BY_MANOEUVRE: "because one of the objects may have manoeuvred",
        BY_STATEMENT: f"by the message of {alert.get('stated_by') or 'another organisation'}",
        BY_HYSTERESIS: "as before, because it is not far enough below its threshold",
    }
    return words.get(alert.get("rule") or "", "")


def urgency(alert: Fact) -> tuple[int, float, int, str]:
    """Return the key that sorts alerts for people: the highest level first, then the largest Pc, then the
    nearest TCA.
    """
    level = RISK_LEVELS.index(alert["risk"])
    return -level, -largest_reported(alert), alert["tca_time_ns"], alert["event_id"]


def most_urgent(alerts: Sequence[FactT], limit: int) -> list[FactT]:
    """Return the first ``limit`` alerts by `urgency`, and every red one beyond: a list for people never cuts a red
    alert.
    """
    ordered = sorted(alerts, key=urgency)
    red = sum(alert["risk"] == RISK_LEVELS[RED] for alert in ordered)
    return ordered[: max(limit, red)]


def _highest(levels: Mapping[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the highest level (n,) of all rules."""
    found: npt.NDArray[np.int64] = np.max(np.stack(list(levels.values())), axis=0)
    return found


def _suspected(events: Columns) -> Iterator[bool]:
    """Yield whether one object of each event is suspected of a manoeuvre; columns with gaps are of floats, or of
    objects.
    """
    for times in zip(events["manoeuvre_time_1_ns"], events["manoeuvre_time_2_ns"], strict=True):
        yield any(at_ns is not None and at_ns > 0 for at_ns in times)
