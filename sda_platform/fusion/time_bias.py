"""Time-tag biases of sensors per term: estimated from closed windows, corrected two terms later.

An estimate depends on a term's observations as they were stamped, which are final. It is therefore independent of
arrival order and of earlier corrections. It is applied when satellites that report their own state with good clocks
anchor it, and when two consecutive terms agree. Arrow in, Arrow out.
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
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases, corrected, estimate_time_tag_biases

BIAS_SCHEMA = TIME_TAG_BIASES.content_schema
_HOLDS_AFTER_TERMS = 2
_MIN_ANCHORS = 5
_MIN_OBSERVATIONS = 20
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
    term_rows: pa.Table,
    previous: pa.Table,
    propagator: Propagator,
    term_ns: int,
    window_ns: int,
    as_of_ns: int,
    sensors: SensorNetwork | None = None,
) -> pa.Table:
    """Return the rows of `time_tag_biases` for one term: one per sensor that observed an anchor.

    Args:
        term_rows: the term's observations.
        previous: the rows of the term before.
        propagator: the catalogue.
        term_ns: start of the term.
        window_ns: length of a window.
        as_of_ns: mission time of the commit.
        sensors: the network that made the observations; the shipped one if not given.
    """
    if not term_rows.num_rows:
        return BIAS_SCHEMA.empty_table()
    found = _estimate(term_rows, propagator, window_ns, sensors)
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
    return pa.Table.from_pylist(judged, BIAS_SCHEMA)


def _as_correction(row: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """Uncertainty as a correction for a later term, by the change since the term before, and whether it is applied."""
    if before is None:
        return {"correction_sigma_s": None, "is_applied": False}
    sigma_s = float(np.hypot(row["sigma_s"], row["offset_s"] - before["offset_s"]))
    sound = all(each["anchors"] >= _MIN_ANCHORS and each["readings"] >= _MIN_OBSERVATIONS for each in (row, before))
    return {"correction_sigma_s": sigma_s, "is_applied": sound and abs(row["offset_s"]) > _CERTAIN_SIGMAS * sigma_s}


def _estimate(
    term_rows: pa.Table, propagator: Propagator, window_ns: int, sensors: SensorNetwork | None
) -> TimeTagBiases:
    """Biases from objects observed in the same window as their own report by a good clock (the anchor)."""
    ordered = in_order(term_rows)
    observations = ObservationArrays.from_columns(arrays(ordered), sensors)
    index = associated(ordered, observations, propagator).index
    window = observations.sensor_time_ns // window_ns
    seen = window * len(propagator) + index
    anchor = (observations.source_kind == "isl") & (observations.clock_quality == "gps_locked") & (index >= 0)
    chosen = np.flatnonzero(np.isin(seen, seen[anchor]) & (index >= 0))
    anchored, group = np.unique(seen[chosen], return_inverse=True)
    return estimate_time_tag_biases(
        observations.take(chosen),
        group,
        propagator,
        anchored % len(propagator),
        anchored // len(propagator) * window_ns + window_ns // 2,
        references=set(observations.source_id[anchor].tolist()),
    )


def biases_of(rows: pa.Table) -> TimeTagBiases:
    """Return rows of one term as `TimeTagBiases`."""
    ordered = rows.sort_by("source_id")
    columns = arrays(ordered, ("source_id", *_COLUMN_OF.values()))
    return TimeTagBiases(columns["source_id"], **{name: columns[column] for name, column in _COLUMN_OF.items()})


def corrections(rows: pa.Table) -> dict[int, TimeTagBiases]:
    """Return the applied biases by start of the term that they correct; ``rows`` of `time_tag_biases`."""
    applied = rows.filter(rows["is_applied"])
    applied = applied.drop_columns("sigma_s").rename_columns({"correction_sigma_s": "sigma_s"})
    terms = pc.unique(applied["holds_from_ns"]).to_pylist()
    return {term: biases_of(applied.filter(pc.equal(applied["holds_from_ns"], term))) for term in terms}


def corrected_rows(rows: pa.Table, known: Mapping[int, TimeTagBiases], window_ns: int) -> pa.Table:
    """Observations with the ``known`` corrections of their terms subtracted from their times.

    The added column ``clock_correction_sigma_s`` is the 1 sigma of the correction, as in `ObservationArrays`.
    """
    if not known or not rows.num_rows:
        return rows
    observations = ObservationArrays.from_columns(arrays(rows))
    time_ns, sigma_s = observations.sensor_time_ns.copy(), observations.clock_correction_sigma_s.copy()
    terms = time_ns - time_ns % (WINDOWS_IN_TERM * window_ns)
    for term, offsets in known.items():
        unbiased = corrected(observations.take(terms == term), offsets)
        time_ns[terms == term], sigma_s[terms == term] = unbiased.sensor_time_ns, unbiased.clock_correction_sigma_s
    place = rows.column_names.index("sensor_time_ns")
    return rows.set_column(place, "sensor_time_ns", pa.array(time_ns)).append_column(
        "clock_correction_sigma_s", pa.array(sigma_s)
    )


def corrected_windows(rows: pa.Table, window_ns: int) -> set[int]:
    """Starts of the windows whose times the ``rows`` of `time_tag_biases` correct."""
    terms = pc.unique(rows.filter(rows["is_applied"])["holds_from_ns"]).to_pylist()
    return {term + number * window_ns for term in terms for number in range(WINDOWS_IN_TERM)}
