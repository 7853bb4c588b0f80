"""The order of markings, and the marking of what follows from marked data: one rule for every table and answer."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.markings import (
    CLASSIFICATIONS,
    DATA_MODES,
    UNMARKED,
    Marking,
    classification_of,
    highest,
    stated,
    stated_in,
)

CLASSIFICATION = st.none() | st.sampled_from([*CLASSIFICATIONS, "SBU", "Proprietary; not for release"])
MARKINGS = st.lists(st.builds(Marking, CLASSIFICATION, st.none() | st.sampled_from(DATA_MODES)), max_size=4)


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([("U", "REAL"), ("U", "REAL")], ("U", "REAL")),
        ([("C", "REAL"), ("U", "EXERCISE")], ("C", "EXERCISE")),
        ([("C", "TEST"), ("S", "EXERCISE")], ("S", "EXERCISE + TEST")),
        ([("S", "REAL"), ("SBU", "REAL")], ("S + SBU", "REAL")),
        ([("U", "REAL"), ("SBU", None)], ("SBU", None)),
        ([("U", "REAL"), (None, None)], (None, None)),
        ([("C", "EXERCISE"), (None, None)], ("C", "EXERCISE")),
        ([], (None, None)),
    ],
)
def test_what_follows_from_marked_data_is_marked_as_the_highest_of_them__44(
    marks: list[tuple[str, str]], expected: tuple[str | None, str | None]
) -> None:
    for order in permutations(marks):
        assert highest(Marking(*each) for each in order) == expected


@given(MARKINGS, MARKINGS)
def test_no_order_and_no_step_lowers_a_marking__44(one: list[Marking], other: list[Marking]) -> None:
    whole = highest([*one, *other])
    assert whole == highest([*reversed(other), *reversed(one)])
    if one and other:
        assert whole == highest([highest(one), highest(other)])
    for each in (*one, *other):
        assert each.classification in (None, "U", whole.classification) or (
            each.classification in CLASSIFICATIONS[1:] or each.classification in str(whole.classification).split(" + ")
        )
        assert whole.classification is None or each.classification is not None or whole.classification != "U"
        assert each.data_mode in (None, "REAL") or each.data_mode in str(whole.data_mode).split(" + ")


def test_a_statement_that_is_absent_takes_nothing_from_the_others__44() -> None:
    assert stated([UNMARKED, Marking("U", "REAL")]) == ("U", "REAL")
    assert stated([Marking("U", "REAL"), Marking("C", "EXERCISE")]) == ("C", "EXERCISE"), "a record lowers no source"
    assert stated([UNMARKED, UNMARKED]) == UNMARKED


@pytest.mark.parametrize(
    ("text", "expected"),
    [("secret", "S"), (" Unclassified ", "U"), ("c", "C"), ("TOP  SECRET", "TOP SECRET"), ("", None), (None, None)],
)
def test_a_classification_in_words_is_its_letter_and_another_text_stays__44(
    text: str | None, expected: str | None
) -> None:
    assert classification_of(text) == expected


@given(CLASSIFICATION, st.sampled_from(DATA_MODES))
def test_comments_state_what_they_were_made_of__44(classification: str | None, data_mode: str) -> None:
    marking = Marking(classification, data_mode)
    found = stated_in(["HBR = 20 [m]", *marking.comments()])
    assert found == Marking(
        None if classification == "U" else classification, None if data_mode == "REAL" else data_mode
    )
    assert stated_in(["DATA MODE: MAYBE"]) == UNMARKED
