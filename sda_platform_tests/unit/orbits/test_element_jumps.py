"""Jumps between element sets: quiet objects stay quiet, and a change is named after what it is."""

import dataclasses
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits.element_jumps import (
    BAD_FIT,
    CROSS_TAG,
    LEAST_SETS,
    MANOEUVRE,
    NONE,
    classify_jumps,
)
from sda_platform.orbits.elements import ElementSets

HISTORY = Path(__file__).parents[2] / "data/history/sets_of_40_objects_2013-10.3le.gz"


@cache
def history() -> tuple[ElementSets, np.ndarray]:
    rows = decode_element_sets(gzip.decompress(HISTORY.read_bytes()), segment_format="tle")
    assert rows["error"].null_count == rows.num_rows
    rows = rows.sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")])
    elements = ElementSets.from_columns({f.name: rows[f.name].to_numpy() for f in dataclasses.fields(ElementSets)})
    is_new = np.append(True, (np.diff(elements.norad_id) != 0) | (np.diff(elements.epoch_time_ns) > 600e9))
    names = np.array(rows["object_name"].to_pylist())
    is_passive = np.array([" DEB" in name or "R/B" in name for name in names])
    return elements.take(is_new), is_passive[is_new]


def quiet_rows() -> np.ndarray:
    """A set in the middle of the history of each object of which no set is reported."""
    elements, _ = history()
    found = classify_jumps(elements)
    rows = []
    for number in np.unique(elements.norad_id):
        own = np.flatnonzero(elements.norad_id == number)
        if (found.kind[own] == NONE).all() and found.is_judged[own].sum() > 5:
            rows.append(int(own[len(own) // 2]))
    assert len(rows) >= 25
    return np.array(rows)


def with_changed(**columns: np.ndarray) -> ElementSets:
    return dataclasses.replace(history()[0], **columns)


def test_real_manoeuvres_are_reported_for_payloads_only() -> None:
    elements, is_passive = history()
    found = classify_jumps(elements)
    manoeuvred = np.unique(elements.norad_id[found.kind == MANOEUVRE])
    assert len(manoeuvred) >= 5
    assert not is_passive[found.kind == MANOEUVRE].any()


def test_a_set_of_another_object_is_a_cross_tag() -> None:
    elements, rows = history()[0], quiet_rows()
    columns = {f.name: getattr(elements, f.name).copy() for f in dataclasses.fields(elements)}
    for name in set(columns) - {"norad_id", "epoch_time_ns"}:
        columns[name][rows] = columns[name][np.roll(rows, 1)]
    verdicts = classify_jumps(ElementSets(**columns))
    assert (verdicts.kind[rows] == CROSS_TAG).mean() > 0.95
    assert (verdicts.kind[rows + 1] == NONE).all(), "the return to the own orbit is no jump"


def test_a_set_that_is_wrong_along_the_track_is_a_bad_fit() -> None:
    anomaly, rows = history()[0].mean_anomaly_deg.copy(), quiet_rows()
    anomaly[rows] += 0.5
    verdicts = classify_jumps(with_changed(mean_anomaly_deg=anomaly)).kind[rows]
    assert np.isin(verdicts, (BAD_FIT, CROSS_TAG)).mean() > 0.8
    assert not (verdicts == MANOEUVRE).any()


def test_a_change_of_energy_that_lasts_is_a_manoeuvre() -> None:
    """Two metres per second along the track, three hours before the set of the middle."""
    elements, rows = history()[0], quiet_rows()
    motion, anomaly = elements.mean_motion_rev_per_day.copy(), elements.mean_anomaly_deg.copy()
    for row in rows:
        own = slice(row, np.flatnonzero(elements.norad_id == elements.norad_id[row])[-1] + 1)
        slower = -3 * 0.002 / (np.cbrt(398600.8 * 2 * np.pi / 86400 * motion[row])) * motion[row]
        days = (elements.epoch_time_ns[own] - elements.epoch_time_ns[row]) / 86_400e9 + 0.125
        motion[own] += slower
        anomaly[own] = (anomaly[own] + 360 * slower * days) % 360
    verdicts = classify_jumps(with_changed(mean_motion_rev_per_day=motion, mean_anomaly_deg=anomaly)).kind[rows]
    assert (verdicts == MANOEUVRE).mean() > 0.9


def test_objects_with_few_sets_are_not_judged() -> None:
    elements = history()[0]
    own = np.flatnonzero(elements.norad_id == elements.norad_id[0])[: LEAST_SETS - 1]
    found = classify_jumps(elements.take(own))
    assert not found.is_judged.any()
    assert (found.kind == NONE).all()


def test_nothing_is_found_where_there_is_nothing() -> None:
    assert len(classify_jumps(history()[0].take(np.array([], int))).kind) == 0


def test_sets_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="ordered by object"):
        classify_jumps(history()[0].take(np.array([1, 0])))
