"""Lists of conjunctions have one order, whether their numbers are those of an assessment or of its alert."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.conjunction.selection import ORDERS, sort_key
from sda_platform.conjunction.stated_precision import rounded
from sda_platform.orbits.risk.levels import RISK_LEVELS

# Numbers that differ by less than an alert shows are common among them.
FACTS = st.fixed_dictionaries(
    {
        "event_id": st.uuids().map(str),
        "risk": st.sampled_from(RISK_LEVELS),
        "tca_time_ns": st.integers(0, 20_000_000).map(lambda ns: 1_730_419_200_000_000_000 + ns),
        "collision_probability": st.none() | st.floats(1.234e-5, 1.267e-5),
        "stated_probability": st.none() | st.floats(1.234e-5, 1.267e-5),
        "miss_distance_km": st.floats(0.5, 0.51),
        "relative_speed_km_s": st.none() | st.floats(7.5, 7.501),
    }
)


@pytest.mark.parametrize("order", ORDERS)
@given(st.lists(FACTS, unique_by=lambda fact: fact["event_id"]))
def test_alerts_and_their_assessments_have_the_same_order(order: str, assessments: list[dict[str, Any]]) -> None:
    alerts = [{**fact, **rounded(fact)} for fact in assessments]
    listed, on_the_page = (
        [fact["event_id"] for fact in sorted(facts, key=lambda fact: sort_key(order, fact))]
        for facts in (alerts, assessments)
    )
    assert listed == on_the_page
