"""Which object a set is of: the same for every order of arrival, undone by a later edit, undecided by a conflict."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.edits import next_edit
from sda_platform.catalog.identities import NO_IDENTITIES, Identities, identities_of
from sda_platform.formats.edits import CORRECTION, MERGE, BadEdit, Edit

SEGMENTS = ("a" * 64, "b" * 64)
OBJECTS = range(1, 7)


def edit(number: int, value: str, attribute: str = MERGE, *, known: Sequence[Edit] = (), at: str = "north") -> Edit:
    return next_edit(known, norad_id=number, attribute=attribute, value=value, origin=at, editor="me", edited_time_ns=0)


def mapping(identities: Identities) -> dict[tuple[int, str, int], int]:
    """The object of every set that could have been published."""
    keys = [(number, segment, record) for number in OBJECTS for segment in SEGMENTS for record in range(2)]
    return {key: identities.of(*key) for key in keys}


def test_a_merged_satellite_counts_for_the_one_that_survives_along_a_chain__CS9() -> None:
    found = identities_of([edit(1, "2"), edit(2, "3"), edit(4, "")])
    assert found.merges == {1: 3, 2: 3}
    assert found.sources([3]) == {1, 2, 3}
    assert found.changed(NO_IDENTITIES) == {1, 2, 3}


def test_a_correction_moves_the_named_sets_only_and_follows_merges__CS9() -> None:
    value = f"{SEGMENTS[0]}:0:5 {SEGMENTS[1]}:7:6"
    found = identities_of([edit(1, value, CORRECTION), edit(5, "6")])
    assert (found.of(1, SEGMENTS[0], 0), found.of(1, SEGMENTS[1], 7), found.of(1, SEGMENTS[0], 1)) == (6, 6, 1)
    assert found.of(2, SEGMENTS[0], 0) == 2, "a record of that place with another number is not meant"
    assert found.sources([6]) == {1, 5, 6}


def test_merges_in_a_circle_have_no_effect_and_what_leads_to_it_ends_there() -> None:
    assert identities_of([edit(1, "2"), edit(2, "1"), edit(3, "1")]).merges == {3: 1}


def test_edits_made_apart_have_no_effect_until_a_person_decides__CS8() -> None:
    base = edit(1, "2")
    north, south = edit(1, "3", known=[base]), edit(1, "4", known=[base], at="south")
    assert identities_of([base]).merges == {1: 2}
    assert identities_of([base, north, south]) == NO_IDENTITIES
    assert identities_of([base, north, south, edit(1, "4", known=[base, north, south])]).merges == {1: 4}


@st.composite
def histories(draw: st.DrawFn) -> list[Edit]:
    """Merges and corrections by two sites, each of which had seen some of the edits before."""
    made: list[Edit] = []
    numbers = st.sampled_from(list(OBJECTS))
    for _ in range(draw(st.integers(0, 8))):
        number, other = draw(numbers), draw(numbers)
        seen = draw(st.lists(st.sampled_from(made), unique_by=lambda e: e.edit_id)) if made else []
        at = draw(st.sampled_from(["north", "south"]))
        own = [each for each in made if each.origin == at]
        if draw(st.booleans()):
            made.append(edit(number, "" if other == number else str(other), known=[*seen, *own], at=at))
        else:
            value = f"{draw(st.sampled_from(SEGMENTS))}:{draw(st.integers(0, 1))}:{other}"
            made.append(edit(number, value, CORRECTION, known=[*seen, *own], at=at))
    return made


@given(histories(), st.randoms(use_true_random=False))
def test_identities_depend_on_no_order_and_repeat_nothing__CS17_CS19(made: list[Edit], chance: Random) -> None:
    found = identities_of(made)
    shuffled = [*made, *chance.sample(made, len(made) // 2)]
    chance.shuffle(shuffled)
    assert identities_of(shuffled) == found
    assert {found.of(each) for each in mapping(found).values()} <= set(mapping(found).values()), "they are final"
    assert all(found.of(number) == number for number in found.merges.values())


@given(histories())
def test_later_edits_undo_all__CS9(made: list[Edit]) -> None:
    undone = [edit(number, "", name, known=made) for number, name in {each.key for each in made}]
    assert identities_of([*made, *undone]) == NO_IDENTITIES


@given(histories(), histories())
def test_only_changed_objects_gain_or_lose_sets(first: list[Edit], more: list[Edit]) -> None:
    """What the catalogue merges again after edits: everything else is as it was."""
    before, now = identities_of(first), identities_of([*first, *more])
    changed = now.changed(before)
    for key, number in mapping(now).items():
        if before.of(*key) != number:
            assert {before.of(*key), number} <= changed
        if number in changed:
            assert key[0] in now.sources(changed)
    assert (now.digest == before.digest) == (now == before)


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        (MERGE, "1", "another object"),
        (MERGE, "ISS", "'ISS', must be the catalogue number"),
        (MERGE, "-4", "must be the catalogue number"),
        (CORRECTION, "3", "'3', must be <SHA-256"),
        (CORRECTION, f"{SEGMENTS[0]}:0:2 {SEGMENTS[0]}:x:2", "x:2', must be"),
    ],
)
def test_an_edit_that_names_no_object_is_refused(attribute: str, value: str, reason: str) -> None:
    with pytest.raises(BadEdit, match=reason):
        edit(1, value, attribute)
