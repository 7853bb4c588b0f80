"""The list of ground sensors: the shipped one is valid, a user's own is used, a mistake in it names line and reason."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from sda_platform.formats.listings import ListingError
from sda_platform.fusion.resource import FusionResource
from sda_platform.lake.errors import NotReplayable
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.new_sensor import with_sensor
from sda_platform.orbits.sensing.observations import ObservationArrays, stacked
from sda_platform.orbits.sensing.sensors import (
    COLUMNS,
    SensorNetwork,
    references_of,
    sensor_network,
    sensor_registry,
)
from sda_platform.orbits.tracking.association import Reason, associate
from sda_platform_tests.support.scenes import catalogue

HEADER = ",".join(COLUMNS) + "\n"
SITE = {"latitude_deg": "67.86", "longitude_deg": "20.22", "altitude_m": "400"}
RADAR = "radar-77,radar,Kiruna,67.86,20.22,400,5,3000,0.001,0.001,20,0.5,\n"


def written(path: Path, *lines: str) -> Path:
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    return path


def one_observation(sensors: SensorNetwork | None) -> ObservationArrays:
    columns = {
        "source_kind": ["radar"], "source_id": ["radar-77"], "sensor_time_ns": [1_730_419_200_000_000_000],
        "range_m": [1e6], "azimuth_rad": [1.0], "elevation_rad": [0.8], "clock_quality": ["gps_locked"],
    }  # fmt: skip
    return ObservationArrays.from_columns(columns, sensors)


def test_a_users_own_sensor_is_used_and_unknown_to_the_shipped_network(tmp_path: Path) -> None:
    own = sensor_network(written(tmp_path / "own.csv", RADAR))
    assert [sensor.name for sensor in own.of_kind("radar")] == ["Kiruna"]
    measured = prepare(one_observation(own))
    assert measured.usable.all()
    # The site is 20.22 degrees east and 67.86 degrees north: 6,361 km from the centre of the Earth (WGS 84).
    assert np.linalg.norm(measured.site_km) == pytest.approx(6361.0, abs=1.0)
    assert not prepare(one_observation(None)).usable.any()


def test_observations_keep_their_network_when_they_are_chosen_and_joined(tmp_path: Path) -> None:
    own = sensor_network(written(tmp_path / "own.csv", RADAR))
    observations = one_observation(own)
    assert stacked([observations.take([0]), observations]).sensors == own
    assert associate(observations, catalogue()).reason.tolist() != [Reason.UNKNOWN_SENSOR]
    assert associate(one_observation(None), catalogue()).reason.tolist() == [Reason.UNKNOWN_SENSOR]


def test_networks_are_equal_when_their_sensors_are(tmp_path: Path) -> None:
    one, same = (sensor_network(written(tmp_path / name, RADAR)) for name in ("a.csv", "b.csv"))
    assert (one, hash(one)) == (same, hash(same))
    moved = SensorNetwork([dataclasses.replace(one["radar-77"], altitude_m=401.0)])
    assert one != moved


def test_the_shipped_sensors_are_a_list_that_a_user_could_have_written() -> None:
    shipped = sensor_registry()
    assert len(shipped.of_kind("radar")) + len(shipped.of_kind("optical")) == len(shipped) > 10


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (RADAR.replace("67.86", "97.86"), "line 2: latitude_deg is 97.86, must be from -90 to 90"),
        (RADAR.replace("67.86", "north"), "line 2: latitude_deg is 'north', must be a number"),
        (RADAR.replace("67.86", ""), "line 2: latitude_deg is empty, must be"),
        (RADAR.replace(",radar,", ",sonar,"), "line 2: kind is 'sonar', must be radar or optical"),
        (RADAR.replace("radar-77", "kiruna"), "line 2: source_id is 'kiruna', must begin with radar-"),
        (RADAR.replace(",20,", ",,"), "line 2: range_sigma_m is '', must be a positive number"),
        (RADAR + RADAR, "line 3: source_id radar-77 occurs twice"),
        ("", "lists nothing"),
    ],
)
def test_a_mistake_in_the_list_names_line_and_reason(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(ListingError, match=complaint.replace("(", r"\(")):
        sensor_network(written(tmp_path / "own.csv", line))


def test_a_list_may_state_what_angles_refer_to(tmp_path: Path) -> None:
    stated = "angle_frame,angle_refraction"
    telescope = "optical-x,optical,X,10,20,0,15,60000,,,,,5e-6,EME2000,\n"
    path = tmp_path / "own.csv"
    path.write_text(f"{HEADER.strip()},{stated}\n{telescope}{RADAR.strip()},,included\n", encoding="utf-8")
    found = sensor_network(path)
    assert references_of(found["optical-x"]) == {
        "angle_frame": "EME2000",
        "angle_aberration": "",
        "angle_refraction": "",
    }
    assert references_of(found["radar-77"])["angle_refraction"] == "included"
    for line, complaint in [
        (telescope.replace("EME2000", "B1950"), "angle_frame is 'B1950', must be one of TEME"),
        (f"{RADAR.strip()},ICRF,\n", "angle_frame is 'ICRF', must be empty for a radar"),
    ]:
        path.write_text(f"{HEADER.strip()},{stated}\n{line}", encoding="utf-8")
        with pytest.raises(ListingError, match=complaint):
            sensor_network(path)


def test_a_list_may_state_how_many_beams_a_phased_array_has(tmp_path: Path) -> None:
    path, header = tmp_path / "own.csv", f"{HEADER.strip()},beams\n"
    telescope = "optical-x,optical,X,10,20,0,15,60000,,,,,5e-6"
    path.write_text(f"{header}{RADAR.strip()},8\n{telescope},\n", encoding="utf-8")
    found = sensor_network(path)
    assert {name: sensor.beams for name, sensor in found.items()} == {"radar-77": 8, "optical-x": 1}
    assert found != SensorNetwork(dataclasses.replace(each, beams=1) for each in found.values())
    for line, complaint in [
        (f"{RADAR.strip()},0", "beams is '0', must be a whole number from 1 to 100"),
        (f"{RADAR.strip()},2.5", "beams is '2.5', must be a whole number"),
        (f"{telescope},2", "beams is '2', must be empty for a telescope"),
    ]:
        path.write_text(f"{header}{line}\n", encoding="utf-8")
        with pytest.raises(ListingError, match=complaint):
            sensor_network(path)


def test_what_angles_refer_to_belongs_to_a_network_and_leaves_the_text_of_others_alone() -> None:
    """Commits record a hash of the text, so a list without statements has the one that it always had."""
    shipped = sensor_registry()
    other = [dataclasses.replace(s, angle_refraction="included") for s in shipped.values()]
    assert SensorNetwork(other) != shipped
    assert SensorNetwork(shipped.values()) == shipped
    assert repr(shipped).endswith("angle_sigma_rad=4.8481e-06)))")
    assert "angle_frame" not in repr(shipped)


def test_a_commit_records_the_sensors_and_a_replay_refuses_others(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", RADAR)
    fusion = FusionResource(sensors=str(path))
    recorded = fusion.recorded()
    assert fusion.as_recorded(recorded).network() == fusion.network()
    written(path, RADAR.replace("67.86", "67.87"))
    with pytest.raises(NotReplayable, match=r"own\.csv lists other entries"):
        fusion.as_recorded(recorded)


def test_commits_without_a_list_of_their_own_stay_replayable() -> None:
    recorded = FusionResource().recorded()
    assert "lists_sha256" not in recorded
    assert FusionResource().as_recorded(recorded).network() == sensor_registry()


def test_an_added_sensor_is_listed_beside_the_shipped_ones(tmp_path: Path) -> None:
    own = tmp_path / "sensors.csv"
    for name, more in (("radar-77", {"name": "Kiruna (north)"}), ("radar-78", {"beams": "4", "range_sigma_m": "9"})):
        sensor, text = with_sensor(own, name, SITE | more, like="radar-1")
        own.write_text(text)
        assert repr(sensor_network(own)[name]) == repr(sensor)  # what does not apply is NaN, which equals nothing
    found, shipped = sensor_network(own), sensor_registry()
    assert [*found] == [*shipped, "radar-77", "radar-78"]
    assert all(repr(found[name]) == repr(shipped[name]) for name in shipped)
    assert (found["radar-77"].name, found["radar-77"].beams, found["radar-77"].max_range_km) == (
        "Kiruna (north)",
        1,
        5500,
    )
    assert (found["radar-78"].name, found["radar-78"].beams, found["radar-78"].range_sigma_m) == ("radar-78", 4, 9.0)


@pytest.mark.parametrize(
    ("source_id", "stated", "like", "reason"),
    [
        ("radar-77", {}, "radar-1", "latitude_deg is empty, must be from -90 to 90"),
        ("radar-77", {"latitud": "1"}, "radar-1", "'latitud' is no column"),
        ("radar-1", {}, "", "lists radar-1 already"),
        ("radar-77", {}, "radar-99", "'radar-99' is not in the list: radar-1, "),
        ("lidar-77", {}, "", "kind is 'lidar', must be radar or optical"),
        ("optical-x", {}, "radar-1", "is of another kind than radar-1"),
        ("radar-77", {**SITE, "name": "a,b"}, "radar-1", "'a,b' cannot stand in a list"),
        ("radar-77", {**SITE, "name": "a\nb"}, "radar-1", "cannot stand in a list"),
    ],
)
def test_a_sensor_that_cannot_be_added_has_the_reason(
    tmp_path: Path, source_id: str, stated: dict[str, str], like: str, reason: str
) -> None:
    with pytest.raises(ListingError, match=re.escape(reason)):
        with_sensor(tmp_path / "sensors.csv", source_id, stated, like)
