"""What the demo's sensors have to see."""

import numpy as np

from sda_platform.cli.simulated_world import observed_world
from sda_platform.orbits.frames import site_is_dark
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.simulation.reference import REFERENCE_TIME_NS

MINUTE_NS = 60 * 10**9


def test_each_kind_of_sensor_reports_whatever_is_of_interest__DP3_F4() -> None:
    segments = observed_world("nominal", start_ns=REFERENCE_TIME_NS, duration_s=20.0, seed=1, objects=[])
    assert {segment.feed for segment in segments} == {"radar", "optical", "isl"}


def test_it_is_night_over_some_telescope_at_any_time_of_the_year() -> None:
    time_ns = REFERENCE_TIME_NS + np.arange(0, 366 * 24 * 60, 20) * MINUTE_NS
    telescopes = [sensor for sensor in sensor_registry().values() if sensor.kind == "optical"]
    dark = [site_is_dark(t.latitude_deg, t.longitude_deg, time_ns) for t in telescopes]
    assert np.any(dark, axis=0).all()
