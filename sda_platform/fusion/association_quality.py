"""Association quality: shares of associated, ambiguous and unmatched observations per sensor, and their distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sda_platform import markdown_elements
from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.foreign_text import Markdown
from sda_platform.fusion.fuse import associated, in_order
from sda_platform.fusion.sources import ORBITING
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.chi_square import share_below
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.association import Reason

ASSOCIATED, AMBIGUOUS, UNMATCHED = OUTCOMES = ("associated", "ambiguous", "unmatched")
_LEAST = 20
# Above these shares a cause is likely: a biased sensor, a break-up, or element sets less accurate than modelled.
_MOST_UNMATCHED = 0.5
_MOST_AMBIGUOUS = 0.2
# One true pair in twenty lies beyond the 95 % point.
_TAIL, _MOST_IN_TAIL = 0.95, 0.15


@dataclass(frozen=True, eq=False)
class AssociationOutcomes:
    """Association outcomes of ``m`` observations, each array (m,)."""

    source_id: TextArray
    """All links count as one source, because they name their objects."""
    window_start_ns: IntArray
    outcome: TextArray
    """One of OUTCOMES."""
    index: IntArray
    """Position of the object in the catalogue, -1: none."""
    level: FloatArray
    """Chi-square level of the distance: uniform over 0 to 1 where noise and element errors match their models. NaN
    for an observation without object.
    """

    @classmethod
    def of(
        cls, table: pa.Table, propagator: Propagator, window_ns: int, sensors: SensorNetwork | None = None
    ) -> AssociationOutcomes:
        """Return the outcomes of ``table`` (rows of `observations`) against this catalogue, with the association of the
        fusion.
        """
        rows = in_order(table)
        observations = ObservationArrays.from_columns(arrays(rows), sensors)
        verdict = associated(rows, observations, propagator)
        size = prepare(observations).dimension
        given = verdict.index >= 0
        sure = np.where(verdict.reason == Reason.AMBIGUOUS, AMBIGUOUS, ASSOCIATED)
        return cls(
            source_id=_reported_as(observations),
            window_start_ns=observations.sensor_time_ns // window_ns * window_ns,
            outcome=np.where(given, sure, UNMATCHED),
            index=verdict.index,
            level=np.where(given, share_below(verdict.mahalanobis2, np.maximum(size, 1)), np.nan),
        )

    def of_sensors(self, at_least: int = 1) -> Iterator[tuple[str, AssociationOutcomes]]:
        """Name and outcomes of each sensor with at least ``at_least`` observations, by name."""
        names, count = np.unique(self.source_id, return_counts=True)
        for name in names[count >= at_least].tolist():
            mine = self.source_id == name
            yield name, AssociationOutcomes(*(getattr(self, field)[mine] for field in self.__dataclass_fields__))

    def share(self, outcome: str) -> float:
        """Share of the observations with this outcome, in [0, 1]; 0 without observations."""
        return float(np.mean(self.outcome == outcome)) if len(self.outcome) else 0.0

    def shares(self) -> dict[str, float]:
        """Return the shares of all outcomes, and of objects in the tail."""
        return {**{outcome: self.share(outcome) for outcome in OUTCOMES}, "beyond_95_percent": self.tail}

    @property
    def levels(self) -> FloatArray:
        """The level of each object's first observation; its later ones share the error of its elements."""
        _, first = np.unique(self.index[self.index >= 0], return_index=True)
        return self.level[self.index >= 0][first]

    @property
    def tail(self) -> float:
        """Share of the objects whose observation lies beyond the 95 % point of its distance; 0.05 is expected."""
        return float(np.mean(self.levels > _TAIL)) if len(self.levels) else 0.0

    def problems(self) -> list[str]:
        """Describe all problems found in the associations."""
        found = [
            f"{name}: {sensor.share(UNMATCHED):.0%} of its {len(sensor.outcome)} observations match no object"
            for name, sensor in self.of_sensors(_LEAST)
            if sensor.share(UNMATCHED) > _MOST_UNMATCHED
        ]
        if self.share(AMBIGUOUS) > _MOST_AMBIGUOUS:
            found.append(f"{self.share(AMBIGUOUS):.0%} of the observations fit several objects about as well")
        if len(self.levels) >= _LEAST and self.tail > _MOST_IN_TAIL:
            found.append(f"{self.tail:.0%} of the objects are beyond the 95 % point of their distance, 5 % should be")
        return found


def sensor_table(verdicts: AssociationOutcomes) -> Markdown:
    """Tabulate the shares of each sensor, and its unmatched share in each window."""
    rows = []
    starts_ns = np.unique(verdicts.window_start_ns).tolist()
    for name, sensor in verdicts.of_sensors():
        shares = [f"{sensor.share(outcome):.1%}" for outcome in OUTCOMES]
        unmatched = [sensor.outcome[sensor.window_start_ns == start] == UNMATCHED for start in starts_ns]
        trail = ", ".join(
            f"{np.mean(unmatched_in_window):.0%}" if len(unmatched_in_window) else "–"
            for unmatched_in_window in unmatched
        )
        rows.append((name, len(sensor.outcome), *shares, trail, f"{sensor.tail:.0%}"))
    header = (
        "sensor", "observations", "associated", "ambiguous", "unmatched", "unmatched by window", "beyond 95 %",
    )  # fmt: skip
    return markdown_elements.table(header, rows)


def _reported_as(observations: ObservationArrays) -> TextArray:
    """Return the sources (m,), of which all links are one, and all observers in orbit."""
    orbits = np.char.startswith(observations.source_id, ORBITING)
    return np.where(observations.source_kind == "isl", "isl", np.where(orbits, ORBITING, observations.source_id))
