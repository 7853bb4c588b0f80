"""The comment by which the errors of an object have long tails."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.stated_tails import stated_degrees, tails_comment


@given(st.floats(1.0, 1e6))
def test_what_is_written_is_read(degrees: float) -> None:
    assert stated_degrees(["another", tails_comment(degrees)]) == pytest.approx(degrees, rel=1e-9)


@pytest.mark.parametrize(
    "comment",
    ["", "DEGREES OF FREEDOM = 3", "ERRORS BY STUDENT T, DEGREES OF FREEDOM = 0.2",
     "errors by Student t, degrees of freedom = x",
     "ERRORS BY STUDENT T, DEGREES OF FREEDOM = 3.1.2",
     "ERRORS BY STUDENT T, DEGREES OF FREEDOM = 3E5", "ERRORS BY STUDENT T, DEGREES OF FREEDOM = 3,5",
     "ERRORS BY STUDENT T, DEGREES OF FREEDOM = -3"],
)  # fmt: skip
def test_without_a_number_of_at_least_one_errors_are_gaussian(comment: str) -> None:
    assert stated_degrees([comment]) == inf
