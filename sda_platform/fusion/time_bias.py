"""Sensor clocks, term by term: estimated from closed windows, taken out of the windows of the next term but one.

An estimate is a function of a term's observations as they were stamped, and they no longer change: so neither the order
in which data came nor an earlier correction has a say, and whoever fits a window again finds the same offsets. It is
believed when satellites that tell their own state by good clocks anchor it, and two terms in a row say the same.
Arrow in, Arrow out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.fuse import associated, in_order
from sda_platform.fusion.tables import TIME_TAG_BIASES
from sda_platform.fusion.watermarks import WINDOWS_IN_TERM
from sda_platform.lake.arrow import arrays
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases, corrected, estimate_time_tag_biases

CLOCK_SCHEMA = pa.schema([field for field in TIME_TAG_BIASES.arrow_schema if field.name != COMMIT_SEQUENCE])
_HOLDS_AFTER_TERMS = 2
_LEAST_ANCHORS = 5
_LEAST_READINGS = 20
_CERTAIN_SIGMAS = 5.0
# Columns of `time_tag_biases` by attribute of `TimeTagBiases`.
_COLUMN_OF = {
    "offset_s": "offset_s",
    "sigma_s": "sigma_s",
    "observation_count": "readings",
    "anchors": "anchors",
    "bound_s": "bound_s",
    "residual_rms": "residual_rms",
}


def estimated(
    readings: pa.Table,
    previous: pa.Table,
    propagator: Propagator,
    term_ns: int,
    window_ns: int,
    as_of_ns: int,
    sensors: SensorNetwork | None = None,
) -> pa.Table:
    """The rows of `time_tag_biases` for one term: of every sensor that saw an anchor.

    Args:
        readings: the term's observations.
        previous: the rows of the term before.
        propagator: the catalogue.
        term_ns: start of the term.
        window_ns: length of a window.
        as_of_ns: mission time of the commit.
        sensors: the network that made the observations; the shipped one if not given.
    """
    if not readings.num_rows:
        return CLOCK_SCHEMA.empty_table()
    found = _offsets(readings, propagator, window_ns, sensors)
    before = {row["source_id"]: row for row in previous.to_pylist()}
    rows: list[dict[str, Any]] = [
        {
            "source_id": name,
            "term_start_ns": term_ns,
            "holds_from_ns": term_ns + _HOLDS_AFTER_TERMS * WINDOWS_IN_TERM * window_ns,
            **{column: getattr(found, field)[n].item() for field, column in _COLUMN_OF.items()},
            "as_of_ns": as_of_ns,
        }
        for n, name in enumerate(found.source_id.tolist())
    ]
    judged = [{**row, **_as_correction(row, before.get(row["source_id"]))} for row in rows]
    return pa.Table.from_pylist(judged, CLOCK_SCHEMA)


def _as_correction(row: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """How far the estimate may be trusted for a later term, by how it changed since the term before."""
    if before is None:
        return {"correction_sigma_s": None, "is_applied": False}
    sigma_s = float(np.hypot(row["sigma_s"], row["offset_s"] - before["offset_s"]))
    sound = all(each["anchors"] >= _LEAST_ANCHORS and each["readings"] >= _LEAST_READINGS for each in (row, before))
    return {"correction_sigma_s": sigma_s, "is_applied": sound and abs(row["offset_s"]) > _CERTAIN_SIGMAS * sigma_s}


def _offsets(
    readings: pa.Table, propagator: Propagator, window_ns: int, sensors: SensorNetwork | None
) -> TimeTagBiases:
    """Of what was seen in the same window as its own report by a good clock: a satellite with a link is the anchor."""
    ordered = in_order(readings)
    observations = ObservationArrays.from_columns(arrays(ordered), sensors)
    index = associated(ordered, observations, propagator).index
    window = observations.sensor_time_ns // window_ns
    seen = window * len(propagator) + index
    anchor = (observations.source_kind == "isl") & (observations.clock_quality == "gps_locked") & (index >= 0)
    chosen = np.flatnonzero(np.isin(seen, seen[anchor]) & (index >= 0))
    told, group = np.unique(seen[chosen], return_inverse=True)
    return estimate_time_tag_biases(
        observations.take(chosen),
        group,
        propagator,
        told % len(propagator),
        told // len(propagator) * window_ns + window_ns // 2,
        references=set(observations.source_id[anchor].tolist()),
    )


def offsets_of(rows: pa.Table) -> TimeTagBiases:
    """Rows of one term as the estimate that they tell."""
    ordered = rows.sort_by("source_id")
    columns = arrays(ordered, ("source_id", *_COLUMN_OF.values()))
    return TimeTagBiases(columns["source_id"], **{name: columns[column] for name, column in _COLUMN_OF.items()})


def corrections(rows: pa.Table) -> dict[int, TimeTagBiases]:
    """What is taken out of each term's times, by the term's start; ``rows`` of `time_tag_biases`."""
    applied = rows.filter(rows["is_applied"])
    applied = applied.drop_columns("sigma_s").rename_columns({"correction_sigma_s": "sigma_s"})
    terms = pc.unique(applied["holds_from_ns"]).to_pylist()
    return {term: offsets_of(applied.filter(pc.equal(applied["holds_from_ns"], term))) for term in terms}


def corrected_rows(rows: pa.Table, known: Mapping[int, TimeTagBiases], window_ns: int) -> pa.Table:
    """Observations with the ``known`` corrections of their terms taken out of their times, and the doubt that is left.

    The doubt is one column more, ``clock_correction_sigma_s``, as `ObservationArrays` takes it.
    """
    if not known or not rows.num_rows:
        return rows
    observations = ObservationArrays.from_columns(arrays(rows))
    time_ns, sigma_s = observations.sensor_time_ns.copy(), observations.clock_correction_sigma_s.copy()
    terms = time_ns - time_ns % (WINDOWS_IN_TERM * window_ns)
    for term, offsets in known.items():
        right = corrected(observations.take(terms == term), offsets)
        time_ns[terms == term], sigma_s[terms == term] = right.sensor_time_ns, right.clock_correction_sigma_s
    place = rows.column_names.index("sensor_time_ns")
    return rows.set_column(place, "sensor_time_ns", pa.array(time_ns)).append_column(
        "clock_correction_sigma_s", pa.array(sigma_s)
    )


def corrected_windows(rows: pa.Table, window_ns: int) -> set[int]:
    """Starts of the windows whose times the ``rows`` of `time_tag_biases` change."""
    terms = pc.unique(rows.filter(rows["is_applied"])["holds_from_ns"]).to_pylist()
    return {term + number * window_ns for term in terms for number in range(WINDOWS_IN_TERM)}
