"""The year in an hour, in short: eighteen days with everything that the year brings but the change to summer time."""

from pathlib import Path

from sda_platform.history.lifecycle import LifecyclePolicy
from sda_platform_tests.campaign.year import report, run
from sda_platform_tests.campaign.year_plan import IN_EACH_RUN, YearPlan

DAYS, LANDINGS_A_DAY = 18, 3
SHORT = YearPlan(
    days=DAYS,
    commits=DAYS * LANDINGS_A_DAY * IN_EACH_RUN,
    start="2016-12-20T00:00:00Z",
    telescope_away=(0.15, 0.30),
    checkpoint_every=10,
    policy=LifecyclePolicy(small_files=6),
)


def test_weeks_without_a_hand_lose_double_and_keep_nothing_spec_97(tmp_path: Path) -> None:
    found = run(tmp_path, SHORT)
    assert report(found, SHORT).is_green, str(report(found, SHORT))
    done = found.maintenance
    assert min(done["compacted_files"], done["deleted_files"]) > 10, done
    assert len(found.start_seconds) == DAYS // 7 + 1, "every Sunday, and the upgrade"
