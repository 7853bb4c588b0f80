"""What a screening's commits record of its settings, and when they can be had again."""

import shutil
from pathlib import Path

import pytest

from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.fusion.resource import FusionResource
from sda_platform.lake.errors import NotReplayable
from sda_platform.orbits.sensing import sensors
from sda_platform.settings import Settings

FLEET = "norad_id,name,operator\n20580,HST,NASA\n"


def test_what_changes_no_row_is_not_recorded_and_stays_as_it_is() -> None:
    then = ScreeningResource(horizon_h=12.0, at_once=2, objects_per_task=10).recorded()
    assert not {"at_once", "objects_per_task"} & set(then)
    again = ScreeningResource(horizon_h=168.0, at_once=7).as_recorded(then)
    assert (again.horizon_h, again.at_once) == (12.0, 7)
    assert again.recorded() == then


def test_a_commit_from_before_the_markings_is_replayed_without_them__44() -> None:
    then = ScreeningResource().recorded()
    assert ScreeningResource().as_recorded(then).keeps_markings
    del then["keeps_markings"]
    assert not ScreeningResource().as_recorded(then).keeps_markings
    assert not ScreeningResource().as_unrecorded().keeps_markings


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


def test_the_fleet_of_the_home_counts_at_once_and_what_a_commit_used_is_kept__48(tmp_path: Path) -> None:
    home, restored = tmp_path / "home", tmp_path / "restored"
    home.mkdir()
    screening = ScreeningResource(**Settings(home=home).screening.model_dump())
    shipped = screening.recorded()
    (home / "fleet.csv").write_text(FLEET)
    assert screening.fleet_norad_ids() == [20580], "it is read without a restart"
    then = screening.recorded()
    (home / "fleet.csv").write_text(FLEET + "25544,ISS,NASA\n")
    assert screening.recorded() != then
    assert screening.as_recorded(then).fleet_norad_ids() == [20580]
    assert screening.as_recorded(shipped).fleet_norad_ids() == ScreeningResource().fleet_norad_ids()
    shutil.copytree(home, restored)
    shutil.rmtree(home)
    again = ScreeningResource(**Settings(home=restored).screening.model_dump()).as_recorded(then)
    assert (again.fleet_norad_ids(), again.recorded()) == ([20580], then), "a home may be restored at another path"


def test_a_list_that_a_variable_names_counts_before_that_of_the_home(tmp_path: Path) -> None:
    named = tmp_path / "named.csv"
    named.write_text(FLEET)
    (tmp_path / "fleet.csv").write_text("norad_id,name,operator\n25544,ISS,NASA\n")
    section = Settings(home=tmp_path, screening={"fleet": str(named)}).screening
    screening = ScreeningResource(**section.model_dump())
    then = screening.recorded()
    named.unlink()
    assert screening.as_recorded(then).fleet_norad_ids() == [20580], "a copy was kept"


def test_sensors_are_those_of_the_home_or_at_the_time_of_the_commit(tmp_path: Path) -> None:
    fusion = FusionResource(**Settings(home=tmp_path).fusion.model_dump())
    shipped = fusion.recorded()
    lines = Path(sensors.__file__).with_name("sensors.csv").read_text().splitlines()
    (tmp_path / "sensors.csv").write_text("\n".join(lines[:2]))
    assert len(fusion.network()) == 1
    assert fusion.as_recorded(fusion.recorded()).network() == fusion.network()
    assert fusion.as_recorded(shipped).network() == sensors.sensor_registry()


def test_a_setting_that_this_version_does_not_know_is_named() -> None:
    with pytest.raises(NotReplayable, match="no setting depth of ScreeningResource"):
        ScreeningResource().as_recorded({**ScreeningResource().recorded(), "depth": 3})
