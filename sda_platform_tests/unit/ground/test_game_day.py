"""Game days: whose turn it is, what is red, and one real rehearsal with a link that is cut."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.formats.game_days import GameDay, encode_game_days, read_game_day
from sda_platform.formats.records import RawRecord
from sda_platform.ground.failure_detection import PathClass
from sda_platform.ground.game_day import fault_of, problems, silence
from sda_platform.ground.pictures import game_days_picture
from sda_platform.ground.rehearsal import FAULTS, LINK_CUT, rehearse
from sda_platform.units import DAY_NS
from sda_platform_tests.support.sampling import sampled

QUICK = PathClass("rehearsal", interval_s=0.1, fixed_timeout_s=1.0, acceptable_pause_s=0.5)
NOW_NS = 20_000 * DAY_NS


def night(day: int, fault: str = LINK_CUT, detected_s: float | None = 1.0, **more: Any) -> dict[str, Any]:
    facts = {"recovered_after_s": 2.0, "detect_within_s": 20.0, "recover_within_s": 30.0, "skipped": "", **more}
    return {"fault": fault, "started_time_ns": NOW_NS + day * DAY_NS, "detected_after_s": detected_s, **facts}


def test_each_fault_has_its_turn__GF26() -> None:
    assert [fault_of(NOW_NS + day * DAY_NS) for day in range(len(FAULTS))] in (
        [*FAULTS], [*FAULTS[1:], *FAULTS[:1]], [*FAULTS[2:], *FAULTS[:2]],
    )  # fmt: skip
    assert fault_of(NOW_NS) == fault_of(NOW_NS + DAY_NS - 1)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], []),
        ([night(0)], []),
        ([night(0, detected_s=None)], ["link cut: not detected within 20 s"]),
        ([night(0, detected_s=21.0)], ["link cut: not detected within 20 s"]),
        ([night(0, recovered_after_s=None)], ["link cut: not recovered within 30 s"]),
        ([night(0, detected_s=None), night(3)], []),
        ([night(0, detected_s=None), night(1, "link slow")], ["link cut: not detected within 20 s"]),
        ([night(0), night(3, detected_s=None, skipped="no disk")], []),
    ],
)
def test_the_last_rehearsal_of_each_fault_counts(rows: list[dict[str, Any]], found: list[str]) -> None:
    assert problems(rows) == found


def test_a_week_without_a_rehearsal_is_red() -> None:
    skipped = [night(day, detected_s=None, skipped="no disk") for day in range(9)]
    assert silence([], NOW_NS) == silence([night(0)], NOW_NS + 7 * DAY_NS) == silence(skipped[:2], NOW_NS) == []
    assert "the last was" in silence([night(0)], NOW_NS + 7 * DAY_NS + 1)[0]
    assert silence(skipped, NOW_NS + 8 * DAY_NS)[0].endswith("none ever was; no disk")


def test_an_outcome_is_read_as_it_was_written_and_shown() -> None:
    outcome = GameDay(LINK_CUT, NOW_NS, None, 2.5, 20.0, 30.0)
    assert read_game_day(RawRecord(0, NOW_NS, encode_game_days([outcome]).strip())) == outcome
    assert "time to detect" in game_days_picture([night(0), night(1, detected_s=None)])


@pytest.mark.parametrize("fault", sampled(FAULTS, LINK_CUT))
def test_a_rehearsed_fault_is_detected_and_recovered_from__GF26(fault: str, tmp_path: Path) -> None:
    outcome = rehearse(fault, tmp_path, QUICK)
    assert outcome.fault == fault
    assert outcome.detected_after_s is not None and outcome.recovered_after_s is not None
    assert 0.3 < outcome.detected_after_s <= outcome.recovered_after_s + 0.1 <= 30.0
