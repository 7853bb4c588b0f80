"""T0 of the campaign, sampled: short histories cut at every step, and some that are drawn by seeds."""

import math

import pytest

from sda_platform_tests.campaign.histories import Case, outcome
from sda_platform_tests.campaign.simulator import run


def test_a_batch_survives_any_fault_at_any_step_and_so_do_drawn_histories() -> None:
    report = run(15, seed=1, stride=31, batches=(1,), processes=1, budget_s=math.inf)
    assert report.is_green, str(report)
    assert report.cases > 50, "the step-by-step cases were tried"


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
