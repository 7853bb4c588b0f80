"""Edits made apart: no silent winner, none lost, and a decision supersedes what it decided."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.edits import next_edit, reconcile
from sda_platform.formats.edits import BadEdit, Edit

OBJECT = 25544


def edit(known: list[Edit], origin: str, value: str) -> Edit:
    return next_edit(
        known, norad_id=OBJECT, attribute="name", value=value, origin=origin, editor="me", edited_time_ns=0
    )


def test_edits_made_apart_are_a_conflict_in_any_order_of_arrival__CS8() -> None:
    base = edit([], "north", "OLD")
    north, south = edit([base], "north", "ISS"), edit([base], "south", "ZARYA")
    for arrived in permutations([base, north, south, north]):
        found = reconcile(arrived)
        assert found.is_conflict
        assert {each.value for each in found.current} == {"ISS", "ZARYA"}
        assert found.superseded == (base,)


def test_a_decision_supersedes_all_that_it_had_seen__CS9() -> None:
    north, south = edit([], "north", "ISS"), edit([], "south", "ZARYA")
    decision = edit([north, south], "north", "ISS (ZARYA)")
    found = reconcile([decision, south, north])
    assert (found.current, found.is_conflict) == ((decision,), False)
    late = edit([south], "south", "SALYUT")
    assert {each.value for each in reconcile([north, south, decision, late]).current} == {"ISS (ZARYA)", "SALYUT"}


def test_equal_values_made_apart_are_no_conflict() -> None:
    found = reconcile([edit([], "north", "ISS"), edit([], "south", "ISS")])
    assert not found.is_conflict
    assert len(found.current) == 2


def test_two_edits_with_one_vector_both_stand() -> None:
    """A site was restored from a backup and counted the same number again."""
    assert reconcile([edit([], "north", "ISS"), edit([], "north", "MIR")]).is_conflict


@st.composite
def histories(draw: st.DrawFn) -> list[Edit]:
    """Edits by three sites, each of which had seen some of the edits before."""
    made: list[Edit] = []
    for number in range(draw(st.integers(1, 7))):
        seen = draw(st.lists(st.sampled_from(made), unique_by=lambda e: e.edit_id)) if made else []
        origin = draw(st.sampled_from(["north", "south", "west"]))
        own = [each for each in made if each.origin == origin]  # a site has seen what it did itself
        made.append(edit([*seen, *own], origin, f"value {number}"))
    return made


@given(histories(), st.randoms(use_true_random=False))
def test_reconciliation_depends_on_no_order_and_loses_nothing__CS17_CS19(made: list[Edit], chance: Random) -> None:
    found = reconcile(made)
    shuffled = [*made, *chance.sample(made, len(made) // 2)]
    chance.shuffle(shuffled)
    assert reconcile(shuffled) == found
    assert {each.edit_id for each in (*found.current, *found.superseded)} == {each.edit_id for each in made}
    assert found.current
    assert not found.held, "whoever has seen only what exists is not held back"


@given(histories(), st.randoms(use_true_random=False))
def test_an_edit_has_no_effect_before_what_it_had_seen__CS8(made: list[Edit], chance: Random) -> None:
    some = chance.sample(made, len(made) // 2 + 1)
    found = reconcile(some)
    assert {e.edit_id for e in (*found.current, *found.superseded, *found.held)} == {e.edit_id for e in some}
    counted = [*found.current, *found.superseded]
    for each in counted:
        for site, count in each.vector.items():
            assert {e.vector[site] for e in counted if e.origin == site} >= set(range(1, count + 1)), each
    assert reconcile([*counted, *made]) == reconcile(made), "it counts as soon as they have come"


def test_an_edit_that_claims_to_have_seen_what_does_not_exist_decides_nothing__44() -> None:
    north, south = edit([], "north", "ISS"), edit([], "south", "ZARYA")
    most = {"north": 10**9, "south": 10**9}
    for vector in ({"west": 1, **most}, {"west": 10**9}, {"west": 1, "north": 2}, {"west": 1, "east": 1}):
        forged = Edit(OBJECT, "name", "FORGED", "west", 1, vector)
        found = reconcile([forged, north, south])
        assert (found.held, found.is_conflict) == ((forged,), True), vector
        assert {each.value for each in found.current} == {"ISS", "ZARYA"}
        decision = edit([forged, north, south], "north", "ISS (ZARYA)")
        assert decision.vector == {"north": 2, "south": 1}, "what is held back was not seen"
    late = edit([north, south], "north", "ISS (ZARYA)")
    forged = Edit(OBJECT, "name", "FORGED", "west", 1, {"west": 1, **most})
    assert reconcile([late, forged, north, south]).current == (late,)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"attribute": "colour"}, "attribute is 'colour', must be one of name"),
        ({"origin": "a b"}, "origin is 'a b'"),
        ({"vector": {"south": 1}}, "vector must count this edit"),
        ({"vector": {"north": 0}}, "vector must count this edit"),
        ({"norad_id": 0}, "norad_id is 0"),
        ({"value": "x" * 5000}, "value has 5000 characters"),
    ],
)
def test_an_edit_that_cannot_be_used_is_refused_with_its_field(facts: dict[str, object], reason: str) -> None:
    sound: dict[str, object] = {
        "norad_id": 1, "attribute": "name", "value": "", "origin": "north", "lamport": 1, "vector": {"north": 1},
    }  # fmt: skip
    Edit(**sound)  # type: ignore[arg-type]
    with pytest.raises(BadEdit, match=reason):
        Edit(**{**sound, **facts})  # type: ignore[arg-type]
