"""O10: a campaign that does not see the bugs of which it should warn proves nothing."""

import pytest

from sda_platform_tests.campaign.planted_bugs import PLANTED_BUGS, PlantedBug
from sda_platform_tests.support.sampling import sampled


@pytest.mark.parametrize("bug", sampled(PLANTED_BUGS, *PLANTED_BUGS[::3]), ids=lambda bug: bug.name)
def test_o10_the_planted_bug_is_caught(bug: PlantedBug) -> None:
    assert bug.caught(), f"{bug.name!r} survived"


def test_o10_all_eleven_are_planted_and_those_that_were_once_missed() -> None:
    assert len({bug.name for bug in PLANTED_BUGS}) == 11 + 7
