"""T0 of the campaign, sampled: short histories cut at every step, and some that are drawn by seeds."""

import math

import pytest

from sda_platform_tests.campaign.histories import Case, outcome
from sda_platform_tests.campaign.simulated_partner import delivery
from sda_platform_tests.campaign.simulator import AT_THE_END, exhaustive, foreign_commits, run
from sda_platform_tests.support.sampling import number


def test_a_batch_survives_any_fault_at_any_step_and_so_do_drawn_histories() -> None:
    report = run(8, seed=1, stride=number(61, 122), batches=(1,), processes=1, budget_s=math.inf)
    assert report.is_green, str(report)
    assert report.cases > number(50, 25), "the step-by-step cases were tried"


def test_a_case_is_replayed_exactly_from_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    traces = []
    for case in (Case(seed=6), Case.parse(str(Case(seed=6)))):
        assert outcome(case, trace=True) == []
        traces.append(capsys.readouterr().out)
    assert traces[0] == traces[1]
    assert len(traces[0].splitlines()) > 100


def test_the_text_of_an_unknown_case_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown color"):
        Case.parse("batches=1,color=red")


def test_files_of_different_numbers_differ_damaged_or_not__D15() -> None:
    files = [delivery(n, "radar", "a", 1, is_damaged) for n in range(1, 10) for is_damaged in (False, True)]
    assert len({file.arriving for file in files}) == len(files)


@pytest.mark.parametrize("story", ["twice", "nights"])
def test_a_file_that_comes_twice_and_sixty_nights_of_foreign_commits_change_nothing__D2(story: str) -> None:
    assert outcome(Case.parse(f"batches=2,story={story}")) == []


def test_an_unsynced_compaction_between_any_two_steps_changes_nothing__spec_22() -> None:
    cases = [case for case in foreign_commits() if case.step == AT_THE_END][::60]
    assert [problem for case in cases for problem in outcome(case)] == []
    assert len(cases) > 20


def test_a_case_and_its_text_are_one() -> None:
    cases = list(exhaustive((1,)))
    assert [Case.parse(str(case)) for case in cases] == cases


@pytest.mark.parametrize(
    "seed",
    [
        7367,  # a run was killed after its commit, before it synced an earlier compaction by another process
        7378,  # a lying disk forgot the commit that had refused a segment, and the segment stayed in quarantine
        3454,  # a suspended run removed other bytes, which a sender had sealed under the name of a second delivery
        3855,  # a lone file was reported twice, then completed, and the next run removed it as reported
        1039,  # a power loss parted archived data from its metadata, and then a lying disk forgot the commit
    ],
)
def test_what_lies_beneath_a_commit_and_what_it_refused_are_not_lost_either__spec_97(seed: int) -> None:
    assert outcome(Case(seed=seed)) == []


def test_a_file_that_its_sender_completes_while_it_is_quarantined_is_not_lost__D15() -> None:
    """Seed 679: its metadata came between the look at the lone data and their move."""
    assert outcome(Case(seed=679)) == []


@pytest.mark.parametrize(
    "seed",
    [
        346,  # a power loss brought back the mark of a name, whose commit a recovery had undone
        297,  # a lander was killed between its file and the look whether other bytes had used the name
    ],
)
def test_no_accepted_file_becomes_a_name_conflict__D15(seed: int) -> None:
    assert outcome(Case(seed=seed)) == []
