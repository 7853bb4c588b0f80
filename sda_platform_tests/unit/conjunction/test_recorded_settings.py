"""What a screening's commits record of its settings, and when they can be had again."""

from pathlib import Path

import pytest

from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.lake.errors import NotReplayable

FLEET = "norad_id,name,operator\n20580,HST,NASA\n"


def test_what_changes_no_row_is_not_recorded_and_stays_as_it_is() -> None:
    then = ScreeningResource(horizon_h=12.0, at_once=2, objects_per_task=10).recorded()
    assert not {"at_once", "objects_per_task"} & set(then)
    again = ScreeningResource(horizon_h=168.0, at_once=7).as_recorded(then)
    assert (again.horizon_h, again.at_once) == (12.0, 7)
    assert again.recorded() == then


def test_a_fleet_that_was_changed_in_its_place_or_is_gone_cannot_be_replayed(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text(FLEET)
    then = ScreeningResource(fleet=str(fleet)).recorded()
    assert ScreeningResource().as_recorded(then).fleet_norad_ids() == [20580]
    fleet.write_text(FLEET + "25544,ISS,NASA\n")
    with pytest.raises(NotReplayable, match=r"fleet\.csv lists other entries than when this was committed"):
        ScreeningResource().as_recorded(then)
    fleet.unlink()
    with pytest.raises(NotReplayable, match=r"fleet\.csv"):
        ScreeningResource().as_recorded(then)


def test_a_setting_that_this_version_does_not_know_is_named() -> None:
    with pytest.raises(NotReplayable, match="no setting depth of ScreeningResource"):
        ScreeningResource().as_recorded({**ScreeningResource().recorded(), "depth": 3})
