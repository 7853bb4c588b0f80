"""Objects whose tracks are refined first: the fleet, then those of assessed events whose TCA is ahead."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.conjunction import objects_of_interest
from sda_platform.conjunction.objects_of_interest import InterestResource
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.lake.lake import Lake
from sda_platform.setting_sections import RefinementSettings
from sda_platform_tests.support.delta_tables import commit, lake_at

NOW_NS = 1_000


def event(name: str, pair: tuple[int, int], probability: float, **facts: Any) -> dict[str, Any]:
    numbers = {"norad_id_1": pair[0], "norad_id_2": pair[1]}
    known = {"sequence": 0, "op": "insert", "tca_time_ns": NOW_NS + 1}
    return {"event_id": name, **numbers, "maximum_probability": probability, **known, **facts}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path / "lake", now_ns=NOW_NS)


@pytest.fixture
def interest(tmp_path: Path) -> InterestResource:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("norad_id,name,operator\n7,B,X\n5,A,X\n")
    return InterestResource(**RefinementSettings(fleet=str(fleet)).model_dump())


def test_the_fleet_comes_first_then_objects_of_events_ahead_by_maximum_probability(
    lake: Lake, interest: InterestResource
) -> None:
    commit(
        lake,
        CONJUNCTION_ASSESSMENTS,
        [
            event("a", (5, 40), 1e-6),
            event("b", (7, 30), 1e-3),
            event("passed", (7, 50), 1e-2, tca_time_ns=NOW_NS),
            event("withdrawn", (7, 60), 1e-2),
            event("withdrawn", (7, 60), 1e-2, sequence=0, op="retract"),
            event("later passed", (7, 70), 1e-2),
            event("later passed", (7, 70), 1e-2, op="retract"),
            event("later passed", (7, 70), 1e-2, sequence=1, tca_time_ns=NOW_NS - 1),
        ],
    )
    assert interest.objects_of_interest(lake) == [5, 7, 30, 40]


def test_there_are_at_most_so_many(lake: Lake, interest: InterestResource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_of_interest, "MOST_OBJECTS", 3)
    commit(lake, CONJUNCTION_ASSESSMENTS, [event("a", (5, 40), 1e-6), event("b", (7, 30), 1e-3)])
    assert interest.objects_of_interest(lake) == [5, 7, 30]


def test_a_commit_records_the_objects_and_a_replay_has_them(lake: Lake, interest: InterestResource) -> None:
    recorded = interest.at_present(lake).recorded()
    assert recorded == {"at_once": 20, "first": [5, 7]}
    commit(lake, CONJUNCTION_ASSESSMENTS, [event("a", (5, 40), 1e-6)])
    then = InterestResource().as_recorded(recorded)
    assert then.at_present(lake).first == [5, 7]
