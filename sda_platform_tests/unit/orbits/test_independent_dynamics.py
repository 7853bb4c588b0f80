"""The numerical model against others: satkit's integration, NRLMSISE-00's densities, and the ILRS orbit of LAGEOS-2."""

import csv
from pathlib import Path

import numpy as np
import pytest

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.space_weather import SpaceWeatherError
from sda_platform.orbits.dynamics.atmosphere import (
    density_kg_m3,
    exospheric_temperature_k,
    geomagnetic_temperature_k,
    night_temperature_k,
    season,
)
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import Dynamics, integrate
from sda_platform.orbits.dynamics.space_weather import SpaceWeather, read_space_weather
from sda_platform_tests.support import lageos

DATA = Path(__file__).parents[2] / "data/dynamics"
EPOCH_NS = parse_iso_ns("2024-11-01T00:00:00Z")
DAY_NS = 86_400 * 10**9


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", _rows("satkit_states.csv"), ids=lambda row: f"{row['orbit']} {row['z_after_km']}")
def test_a_day_of_an_independent_integration_is_met(row: dict[str, str]) -> None:
    start = np.array([float(row[name]) for name in ("x_km", "y_km", "z_km", "vx_km_s", "vy_km_s", "vz_km_s")])
    expected = np.array([float(row[name]) for name in ("x_after_km", "y_after_km", "z_after_km")])
    forces = Forces(reflective_area_m2_kg=float(row["reflective_area_m2_kg"]))
    found = integrate(start, EPOCH_NS, np.array([EPOCH_NS + DAY_NS]), forces)[0, :3]
    # Of 100 m by sunlight, 2 % differ: another constant of the Sun's pressure.
    assert np.linalg.norm(found - expected) < (4e-3 if forces.reflective_area_m2_kg else 5e-4)


def test_densities_are_those_of_nrlmsise_within_a_fifth() -> None:
    ratios = []
    for row in _rows("nrlmsise00.csv"):
        value = {name: float(text) for name, text in row.items() if name != "time_utc"}
        kelvin = exospheric_temperature_k(
            float(night_temperature_k(value["f107"], value["f107_mean"])),
            float(geomagnetic_temperature_k(value["ap"])),
            np.radians(value["latitude_deg"]),
            value["hour_angle_rad"],
            value["solar_declination_rad"],
        )
        found = density_kg_m3(value["height_km"], kelvin, float(season(parse_iso_ns(row["time_utc"]))))
        ratios.append(np.log(found / value["density_kg_m3"]))
    by_height = np.array(ratios).reshape(5, 16)
    assert (np.abs(by_height.mean(axis=1)) < 0.15).all(), "no height is off as a whole"
    assert (by_height.std(axis=1) < [0.15, 0.15, 0.2, 0.25, 0.35]).all()


def test_an_arc_of_eight_hours_predicts_lageos_2_fifteen_hours_ahead_to_a_metre() -> None:
    time_ns, truth = lageos.reference_orbit()
    fitted = lageos.fit(time_ns[time_ns <= time_ns[0] + 8 * 3600 * 10**9])
    ahead = time_ns[(time_ns >= time_ns[0] + 8 * 3600 * 10**9) & (time_ns <= time_ns[0] + 23 * 3600 * 10**9)]
    states = Dynamics(threads=1).states(fitted.state[None], fitted.coefficients[None], time_ns[:1], ahead[None])[0]
    off_m = 1e3 * np.linalg.norm(states[:, :3] - truth[np.isin(time_ns, ahead)], axis=1)
    assert off_m[-1] < 1.5, off_m[-1]
    assert fitted.residual_rms_m < 0.2


def test_a_file_of_space_weather_is_read_and_days_without_values_are_usual_ones(tmp_path: Path) -> None:
    path = tmp_path / "weather.csv"
    path.write_text(
        "DATE,AP_AVG,F10.7_OBS,F10.7_OBS_CENTER81\n2024-10-31,8,269.9,204.1\n2024-11-01,12,250.0,203.9\n2024-11-02,,,\n"
    )
    weather = read_space_weather(path)
    f107, mean, ap = weather.at(EPOCH_NS + np.array([0, 12, 24, 24 * 400]) * 3600 * 10**9)
    np.testing.assert_allclose(f107, [269.9, 269.9, 250.0, 150.0])
    np.testing.assert_allclose(mean, [203.9, 203.9, 150.0, 150.0])
    np.testing.assert_allclose(ap, [8, 12, 12, 15])
    assert SpaceWeather().at(np.array([EPOCH_NS]))[2] == 15


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("DATE,AP_AVG\n2024-11-01,8\n", "column F10.7_OBS is missing"),
        ("DATE,AP_AVG,F10.7_OBS,F10.7_OBS_CENTER81\n2024-11-01,a,1,1\n", "line 2: could not convert"),
        ("DATE,AP_AVG,F10.7_OBS,F10.7_OBS_CENTER81\n", "no days"),
    ],
)
def test_a_wrong_file_of_space_weather_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "weather.csv"
    path.write_text(text)
    with pytest.raises(SpaceWeatherError, match=reason):
        read_space_weather(path)
