"""The table of campaigns: each schedule once, failing seeds are repeated, and the check names what broke."""

from pathlib import Path

import pytest

import sda_platform.definitions  # noqa: F401 - declares the balances
from sda_platform.ground_segment.consensus_assets import broken_rules, campaign_rows, failed, failures, missed
from sda_platform.ground_segment.tables import CONSENSUS_CAMPAIGN
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.table_checks import review_declared
from sda_platform.protocols.campaign import MODELS, ScheduleOutcome, schedules
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS

FOUND = [ScheduleOutcome(name, bug, 5, 1, 1, ("broke",)) for name, model in MODELS.items() for bug in model.bugs]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path / "lake")


def campaign(lake: Lake, number: int, *more: ScheduleOutcome) -> list[ScheduleOutcome]:
    done = [*schedules({name: range(3 * number, 3 * number + 3) for name in MODELS}), *FOUND, *more]
    commit(lake, CONSENSUS_CAMPAIGN, campaign_rows(done, number, START_NS))
    return done


def test_campaigns_of_one_mission_time_differ_by_their_number(lake: Lake) -> None:
    for number in (1, 2):
        done = campaign(lake, number)
        assert failures(done) == missed(done) == []
        assert [each.problems for each in review_declared(lake, CONSENSUS_CAMPAIGN).findings] == []
    assert failed(lake.log(CONSENSUS_CAMPAIGN)) == []


def test_a_failing_seed_and_a_missed_bug_are_named_until_a_campaign_without_them(lake: Lake) -> None:
    broken = ScheduleOutcome("raft", "", 99, 1, 1, ("two leaders in term 4",))
    lost = ScheduleOutcome("raft", "stores_votes", 700, 1, 1, ())
    campaign(lake, 1, broken, lost)
    assert failed(lake.log(CONSENSUS_CAMPAIGN))[0]["seed"] == 99, "the next campaign repeats it"
    assert broken_rules(lake.log(CONSENSUS_CAMPAIGN)) == [
        "raft with seed 99: two leaders in term 4",
        "raft: the planted bug stores_votes was not found",
    ]
    campaign(lake, 2)
    assert broken_rules(lake.log(CONSENSUS_CAMPAIGN)) == []
