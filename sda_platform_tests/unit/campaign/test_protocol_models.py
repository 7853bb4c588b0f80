"""A sample of the campaign over the models of protocols; `make soak MODELS=1` carries out thousands of schedules."""

import pytest

from sda_platform_tests.campaign import __main__ as campaign
from sda_platform_tests.campaign.protocol_models import MODELS, ScheduleOutcome, control, judged, run, schedules

# A search that begins shortly before the first schedule that finds the bug; from 0 on the rarest take seconds.
BEGIN = {"stores_votes": 127, "counts_own_term": 115, "changes_one_voter": 36, "is_fenced": 17}
PLANTED = [(name, bug) for name, model in MODELS.items() for bug in model.bugs]


@pytest.mark.parametrize(("name", "bug"), PLANTED)
def test_a_planted_bug_is_found__OR30_ML7(name: str, bug: str) -> None:
    assert control(name, bug, BEGIN.get(bug, 0)).violations


def test_a_failing_seed_and_a_missed_bug_are_named_with_the_command_that_repeats_them() -> None:
    sound = ScheduleOutcome("lease", "", 98, 1, 1, ())
    broken = ScheduleOutcome("raft", "", 99, 1, 1, ("two leaders in term 4", "an entry was lost"))
    found = ScheduleOutcome("lease", "checks_tokens", 7, 1, 1, ("2 writes of former holders were accepted",))
    lost = ScheduleOutcome("raft", "stores_votes", 700, 1, 1, ())
    report = judged(98, [sound, broken], [found, lost])
    assert (report.is_green, report.cases) == (False, 4)
    assert report.points_reached == {"lease.checks_tokens"}
    assert report.points_missed == {"raft.stores_votes"}
    again = "python -m sda_platform_tests.campaign --tier models --seed 99 --point raft"
    assert report.failures == (f"raft: two leaders in term 4; an entry was lost [{again}]",)


def test_the_campaign_carries_out_new_schedules_for_each_seed() -> None:
    report = run(3, seed=120, point="lease|gossip")
    assert report.is_green, str(report)
    assert report.cases == 2 * 3 + len([name for name, _ in PLANTED if name in ("lease", "gossip")])
    assert {each.partition(".")[0] for each in report.points_reached} == {"lease", "gossip"}


def test_the_other_models_hold_in_a_campaign() -> None:
    done = list(schedules({"lease": range(50), "uplink": range(20)}))
    assert [each for each in done if each.violations] == []
    assert {each.model for each in done} == {"lease", "uplink"}


def test_the_program_runs_the_models_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--tier", "models", "--sample", "--point", "lease"]) == 0
    assert "models of protocols: green; 201 cases, 1 points reached, 0 missed" in capsys.readouterr().out
