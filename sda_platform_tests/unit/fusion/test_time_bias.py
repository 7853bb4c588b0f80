"""Clocks by terms: told by two terms in a row, anchored by links, taken out of the next but one."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.time_bias import BIAS_SCHEMA, corrected_rows, corrected_windows, corrections, estimated
from sda_platform.fusion.watermarks import WINDOWS_IN_TERM
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform_tests.support.biased_time_tags import TERM, TERM_NS, observed, satellites
from sda_platform_tests.support.windows import WINDOW_NS


def told(*windows: pa.Table) -> pa.Table:
    """The rows of consecutive terms, a window of each given."""
    rows = [BIAS_SCHEMA.empty_table()]
    for number, window in enumerate(windows):
        rows.append(estimated(window, rows[-1], satellites(), TERM + number * TERM_NS, WINDOW_NS, 0))
    return pa.concat_tables(rows)


def test_one_term_is_not_believed_and_two_that_agree_are_corrected_in_the_next_but_one__DP3_I4() -> None:
    first, second, *_ = observed(50.0)
    assert corrections(told(first)) == {}
    found = corrections(told(first, second))
    assert set(found) == {TERM + 3 * TERM_NS}
    offsets = found[TERM + 3 * TERM_NS]
    assert len(offsets.source_id) >= 1
    np.testing.assert_allclose(offsets.offset_s, 0.050, atol=0.005)
    assert corrected_windows(told(first, second), WINDOW_NS) == {
        TERM + 3 * TERM_NS + n * WINDOW_NS for n in range(WINDOWS_IN_TERM)
    }


def test_a_bias_that_jumps_is_not_corrected_before_it_is_steady_again__DP3_I4() -> None:
    assert corrections(told(observed(0.0)[0], observed(50.0)[1])) == {}


def test_insignificant_biases_are_estimated_and_not_corrected__DP3_I4() -> None:
    rows = told(*observed(0.0)[:2])
    assert rows.num_rows >= 4
    assert corrections(rows) == {}


def test_a_bias_with_too_few_anchors_is_estimated_and_not_corrected__DP3_I4() -> None:
    links = sorted(name for name in set(observed(50.0)[0]["source_id"].to_pylist()) if name.startswith("isl-"))
    fewer = [rows.filter(pc.invert(pc.is_in(rows["source_id"], pa.array(links[4:])))) for rows in observed(50.0)[:2]]
    rows = told(*fewer)
    assert rows.num_rows >= 1
    assert max(rows["anchors"].to_pylist()) <= 4
    assert corrections(rows) == {}


def test_a_corrected_window_is_as_accurate_as_one_of_unbiased_clocks__CS() -> None:
    clocks = corrections(told(*observed(50.0)[:2]))
    start = observed(50.0)[3]["window_start_ns"][0].as_py()
    radars = pa.array(clocks[TERM + 3 * TERM_NS].source_id.tolist())

    def error_km(rows: pa.Table, known: Mapping[int, TimeTagBiases]) -> float:
        fits = window_fuser(satellites(), WINDOW_NS, known)(rows.filter(pc.is_in(rows["source_id"], radars)))
        index = np.searchsorted(satellites().elements.norad_id, fits["norad_id"].to_numpy())
        _, truth, _ = satellites().at(index, np.full(len(index), start + WINDOW_NS // 2))
        found = np.stack([fits[name].to_numpy() for name in ("x_km", "y_km", "z_km")], axis=1)
        return float(np.median(np.linalg.norm(found - truth, axis=1)))

    right_km = error_km(observed(0.0)[3], {})
    assert error_km(observed(50.0)[3], {}) > 3 * right_km
    assert error_km(observed(50.0)[3], clocks) < 1.3 * right_km


def test_a_term_without_links_gives_no_estimate() -> None:
    window = observed(0.0)[0]
    assert told(window.filter(pc.equal(window["source_kind"], "radar"))).num_rows == 0


def test_uncorrelated_observations_are_corrected_like_those_of_the_fits__CS() -> None:
    right, wrong = observed(0.0)[3], observed(50.0)[3]
    clocks = corrections(told(*observed(50.0)[:2]))
    known = pc.is_in(wrong["source_id"], pa.array(clocks[TERM + 3 * TERM_NS].source_id.tolist()))
    after = corrected_rows(wrong, clocks, WINDOW_NS)
    assert after.drop_columns("clock_correction_sigma_s").schema == wrong.schema
    off_ns = pc.subtract(after["sensor_time_ns"], right["sensor_time_ns"])
    assert pc.max(pc.abs(off_ns.filter(known))).as_py() < 5_000_000
    assert pc.equal(after["sensor_time_ns"], wrong["sensor_time_ns"]).equals(pc.invert(known)), "and no others"
    assert corrected_rows(wrong, {}, WINDOW_NS) is wrong
