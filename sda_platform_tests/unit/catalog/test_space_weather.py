"""Space weather comes from a file or is constant; commits record the days that their rows depend on."""

from pathlib import Path

import numpy as np
import pytest

from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.clock import parse_iso_ns
from sda_platform.formats.space_weather import SpaceWeatherError
from sda_platform.setting_sections import SpaceWeatherSettings

NOW_NS = parse_iso_ns("2024-11-01T06:00:00Z")
HEADER = "DATE,AP_AVG,F10.7_OBS,F10.7_OBS_CENTER81\n"
LOW_ORBIT = np.array([[6778.0, 0.0, 0.0, 0.0, 4.7, 6.0]])


def file_of(path: Path, *lines: str) -> str:
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return str(path)


def reading(path: str) -> SpaceWeatherResource:
    return SpaceWeatherResource(**SpaceWeatherSettings(space_weather=path).model_dump())


def eight_of(ap: float) -> dict[str, float]:
    return {f"ap{number}": ap for number in range(1, 9)}


def a_day_later(weather: SpaceWeatherResource) -> np.ndarray:
    then_ns, areas = np.array([[NOW_NS + 86_400 * 10**9]]), np.array([[0.02, 0.02]])
    return np.asarray(weather.dynamics().states(LOW_ORBIT, areas, np.array([NOW_NS]), then_ns)[0, 0, :3])


def test_commits_record_the_days_around_them_and_a_replay_needs_no_file(tmp_path: Path) -> None:
    path = tmp_path / "weather.csv"
    lines = ["2024-10-01,9,300,200", "2024-10-31,8,269.9,204.1", "2024-11-01,12,,203.9", "2025-01-01,9,300,200"]
    here = reading(file_of(path, *lines)).near(NOW_NS)
    recorded = here.recorded()
    assert recorded == {
        "days": {
            "2024-10-31": {"f107": 269.9, "f107_mean": 204.1, **eight_of(8.0)},
            "2024-11-01": {"f107_mean": 203.9, **eight_of(12.0)},
        }
    }
    assert here.stated() == f"{path}: 2 days from 2024-10-31 to 2024-11-01"
    file_of(path, "2024-10-31,80,100,100")
    again = reading(str(path)).as_recorded(recorded).near(NOW_NS)
    np.testing.assert_array_equal(a_day_later(again), a_day_later(here))
    path.unlink()
    assert reading(str(path)).as_recorded(recorded).near(NOW_NS).recorded() == recorded


def test_an_active_sun_moves_a_low_orbit_by_kilometres_within_a_day(tmp_path: Path) -> None:
    constant = SpaceWeatherResource().near(NOW_NS)
    assert constant.recorded() == {"days": {}}
    assert constant.stated() == "F10.7 150, Ap 15 (constant)"
    days = [f"{day},15,250,250" for day in ("2024-10-31", "2024-11-01", "2024-11-02")]
    active = reading(file_of(tmp_path / "w.csv", *days)).near(NOW_NS)
    quiet_km, active_km = a_day_later(constant), a_day_later(active)
    # More drag lowers the orbit, so that the object is ahead.
    assert 5.0 < np.linalg.norm(active_km - quiet_km) < 200.0


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpaceWeatherError, match=r"none\.csv"):
        reading(str(tmp_path / "none.csv")).near(NOW_NS)


def test_a_commit_of_an_earlier_release_has_one_value_a_day(tmp_path: Path) -> None:
    here = reading(file_of(tmp_path / "w.csv", "2024-10-31,8,269.9,204.1", "2024-11-01,12,250,203.9")).near(NOW_NS)
    before = {
        day: {"f107": values["f107"], "f107_mean": values["f107_mean"], "ap": values["ap1"]}
        for day, values in here.recorded()["days"].items()
    }
    np.testing.assert_array_equal(a_day_later(here.as_recorded({"days": before})), a_day_later(here))


def test_a_storm_of_three_hours_counts_in_its_hours(tmp_path: Path) -> None:
    """The same daily average, but the storm after or before the satellite's six hours of interest."""
    path = tmp_path / "w.csv"
    header = HEADER.strip() + "," + ",".join(f"AP{number}" for number in range(1, 9)) + "\n"
    quiet, storm = ["4"] * 8, ["4"] * 5 + ["300", "200", "4"]
    path.write_text(header + "".join(
        f"{day},{sum(map(int, values)) / 8},200,200,{','.join(values)}\n"
        for day, values in (("2024-10-31", quiet), ("2024-11-01", storm), ("2024-11-02", quiet))
    ))  # fmt: skip
    weather = reading(str(path)).near(NOW_NS).dynamics().weather
    hours = np.array([15.0, 21.6, 21.8, 24.8, 27.8])
    midnight_ns = parse_iso_ns("2024-11-01T00:00:00Z")
    _, _, ap = weather.at(midnight_ns + (hours * 3600e9).astype(np.int64))
    np.testing.assert_array_equal(ap, [4, 4, 300, 200, 4])
