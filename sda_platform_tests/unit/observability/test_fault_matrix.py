"""Every fault of the campaign and the reviews causes exactly its notice, in time, with its side, and one at its end."""

from collections import Counter
from pathlib import Path

import pytest

from sda_platform.observability.vitals.evaluation import VITALS
from sda_platform.observability.vitals.faults import Side
from sda_platform.observability.vitals.notices import Notice, NoticeState
from sda_platform_tests.support.fault_matrix import CASES, FaultCase
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.watched_platform import RULES, watched_platform

ONE_OF_EACH = {(case.vital, case.side): case for case in CASES}.values()


def shown(notices: list[Notice]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(str(each.state), each.vital, str(each.side), tuple(each.subjects)) for each in notices]


@pytest.mark.parametrize("case", sampled(CASES, *ONE_OF_EACH), ids=lambda case: case.fault)
def test_a_fault_rings_once_in_time_with_its_side_and_once_when_it_is_over(case: FaultCase, tmp_path: Path) -> None:
    notice = (case.vital, str(case.side), case.subjects)
    with watched_platform(tmp_path) as platform:
        case.before(platform)
        platform.lives = case.lives
        platform.at(0.0)
        case.strike(platform)
        if case.allowed_s:
            assert shown(platform.at(0.5)) == []
            assert shown(platform.at(case.allowed_s - 1.0)) == [], "what is allowed rings nothing"
        within_s = case.allowed_s + RULES.interval_s
        assert shown(platform.at(within_s)) == [(NoticeState.BEGUN, *notice)]
        assert shown(platform.at(within_s + RULES.interval_s)) == [], "it rings once"
        case.repair(platform)
        assert shown(platform.at(platform.t_s + RULES.interval_s)) == [(NoticeState.OVER, *notice)]


def test_the_matrix_has_every_vital_and_every_side() -> None:
    assert len(CASES) >= 60
    assert {case.vital for case in CASES} == {vital.name for vital in VITALS}
    assert {case.side for case in CASES} == set(Side)
    assert [fault for fault, count in Counter(case.fault for case in CASES).items() if count > 1] == []


def test_what_the_platform_notices_without_a_limit_of_its_own_rings_within_a_minute() -> None:
    assert RULES.interval_s <= 20.0
    late = {case.vital for case in CASES if case.allowed_s + RULES.interval_s > 60.0}
    assert late <= {
        "sources_report", "backlog_is_taken", "no_orphans_wait", "dead_letters_do_not_grow", "catalogue_is_fresh",
        "screening_is_fresh", "pools_move", "people_are_notified",
    }  # fmt: skip
