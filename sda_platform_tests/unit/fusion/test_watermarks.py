"""Watermarks and the closing of windows (DP3)."""

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.fusion.assets import windows_to_fit
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.watermarks import PIPELINE, Arrivals, Lateness, first_open_window, window_start
from sda_platform.fusion.watermarks import advance as advance_with
from sda_platform.units import SECOND_NS

FUSION = FusionResource()
LATENESS = FUSION.lateness
WINDOW_NS = FUSION.window_ns
KINDS = ("radar", "optical", "isl")
T = 1_730_419_200 * SECOND_NS  # a multiple of the window's 30 s


def s(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def advance(
    previous: Mapping[str, int], newest_event_ns: Mapping[str, int], lateness: Lateness, as_of_ns: int
) -> dict[str, int]:
    """The watermarks when everything was received at ``as_of_ns``."""
    return advance_with(
        previous, Arrivals(newest_event_ns, dict.fromkeys(newest_event_ns, as_of_ns)), lateness, as_of_ns
    )


times = st.integers(T - s(3600), T + s(3600))
seen = st.dictionaries(st.sampled_from(KINDS), times)


def test_each_kind_is_late_by_its_bound_exactly__DP3_F2() -> None:
    assert LATENESS.bound_ns == {"radar": s(0.1), "optical": s(30), "isl": s(10)}
    marks = advance({}, dict.fromkeys(KINDS, T), LATENESS, T)
    assert marks == {"radar": T - s(0.1), "optical": T - s(30), "isl": T - s(10), PIPELINE: T - s(30)}


def test_the_pipeline_is_as_complete_as_its_least_complete_source__DP3_F4() -> None:
    marks = advance({}, {"radar": T, "optical": T - s(20), "isl": T}, LATENESS, T)
    assert marks[PIPELINE] == marks["optical"] == T - s(50)


def test_the_slowest_source_dominates_and_tightening_another_changes_nothing__DP3_I13() -> None:
    marks = advance({}, dict.fromkeys(KINDS, T), LATENESS, T)
    tighter = type(LATENESS)({**LATENESS.bound_ns, "radar": 0, "isl": 0}, LATENESS.allowed_ns, LATENESS.idle_after_ns)
    assert advance({}, dict.fromkeys(KINDS, T), tighter, T)[PIPELINE] == marks[PIPELINE] == T - s(30)


@given(st.lists(st.tuples(seen, times), max_size=6))
def test_no_watermark_ever_moves_back__DP3_I10(batches: list[tuple[dict[str, int], int]]) -> None:
    marks: Mapping[str, int] = {}
    for newest, as_of_ns in batches:
        after = advance(marks, newest, LATENESS, as_of_ns)
        assert all(after[kind] >= mark for kind, mark in marks.items())
        marks = after


@given(seen, seen, times)
def test_the_pipelines_watermark_is_never_ahead_of_a_source(
    first: dict[str, int], second: dict[str, int], as_of_ns: int
) -> None:
    marks = advance(advance({}, first, LATENESS, as_of_ns), second, LATENESS, as_of_ns)
    assert all(marks[PIPELINE] <= marks[kind] for kind in KINDS if PIPELINE in marks)


def test_a_silent_source_advances_with_the_mission_clock_once_it_is_idle__E20() -> None:
    marks = advance({}, dict.fromkeys(KINDS, T), LATENESS, T)
    waiting = advance(marks, {"radar": T + s(59)}, LATENESS, T + s(59))
    assert waiting["optical"] == T - s(30)
    idle = advance(waiting, {"radar": T + s(300)}, LATENESS, T + s(300))
    assert idle["optical"] == T + s(300) - s(30) - s(60)
    assert idle[PIPELINE] == idle["optical"], "a telescope in daylight holds nobody up"


def test_a_source_that_never_reported_holds_the_pipeline_however_long_it_is_silent__DP3_F4_E20() -> None:
    marks = advance({}, {"radar": T, "isl": T}, LATENESS, T)
    later = advance(marks, {"radar": T + s(7200), "isl": T + s(7200)}, LATENESS, T + s(7200))
    assert set(later) == {"radar", "isl"}, "no watermark of the telescopes, and none of the pipeline"
    assert advance(later, {"optical": T + s(7199)}, LATENESS, T + s(7200))[PIPELINE] == T + s(7169)


def test_a_kind_of_source_that_does_not_exist_is_not_awaited() -> None:
    links = FusionResource(sources=["radar", "isl"]).lateness
    assert advance({}, {"radar": T, "isl": T}, links, T)[PIPELINE] == T - s(10)


def test_a_backlog_closes_no_window_whose_data_still_waits() -> None:
    """After an outage of the platform the clock is far ahead of what was consumed; receptions tell the truth."""
    marks = advance({}, dict.fromkeys(KINDS, T), LATENESS, T)
    begun = Arrivals(dict.fromkeys(KINDS, T + s(20)), dict.fromkeys(KINDS, T + s(25)))
    assert advance_with(marks, begun, LATENESS, T + s(7200))[PIPELINE] == T + s(20 - 30)


def test_a_clock_that_runs_ahead_cannot_close_windows_of_the_future() -> None:
    assert advance({}, dict.fromkeys(KINDS, T + s(86_400)), LATENESS, T)[PIPELINE] == T - s(30)


@given(times)
def test_windows_align_to_the_epoch_and_tile_time__DP3_I7(event_ns: int) -> None:
    start = window_start(event_ns, WINDOW_NS)
    assert start % WINDOW_NS == 0
    assert start <= event_ns < start + WINDOW_NS


@pytest.mark.parametrize(("watermark_ns", "open_from"), [(T + s(35) - 1, T), (T + s(35), T + s(30))])
def test_a_window_closes_when_the_watermark_is_its_end_plus_the_allowed_lateness__DP3_I15(
    watermark_ns: int, open_from: int
) -> None:
    assert first_open_window(watermark_ns, WINDOW_NS, LATENESS) == open_from


def observed(*seen: tuple[int, int | None]) -> pa.Table:
    """Observations (or raw records) by sensor time and how often they came back from dead letters."""
    return pa.table(
        {
            "sensor_time_ns": pa.array([time_ns for time_ns, _ in seen], pa.int64()),
            "reprocess_count": pa.array([count for _, count in seen], pa.int64()),
        }
    )


def test_what_comes_after_the_lateness_budget_is_counted_and_left_out__DP3_Q4_E12() -> None:
    arrived = observed(*((t, None) for t in (T, T + s(29.999), T + s(30), T + s(61), T + s(31))))
    assert windows_to_fit(arrived, observed(), T + s(30), WINDOW_NS) == ([T + s(30), T + s(60)], 2)


def test_what_was_reprocessed_has_its_closed_window_fitted_again__E26() -> None:
    new, known = observed((T, 1), (T + 5, None)), observed((T - s(60), 2), (T + s(40), None))
    assert windows_to_fit(new, known, T + s(30), WINDOW_NS) == ([T - s(60), T], 1), "live data keeps its rule"


def test_before_the_first_commit_every_window_is_open() -> None:
    first_open_ns = first_open_window(0, WINDOW_NS, LATENESS)
    assert windows_to_fit(observed((T + s(30), None), (5, None)), observed(), first_open_ns, WINDOW_NS) == (
        [0, T + s(30)],
        0,
    )
