"""The report of an alert: complete without a network, drawn by a real browser; CZML that other tools read."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from sda_platform.clock import iso
from sda_platform.conjunction.alert_page import AlertReport
from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.encounter_figures import encounter_geometry, miss_sigma_km
from sda_platform.conjunction.globe import surroundings
from sda_platform.conjunction.history import EventHistory
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.orbits.two_body import two_body_state
from sda_platform.setting_sections import AlertSettings
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.delta_tables import row
from sda_platform_tests.support.encounters import SIGMAS_KM, TCA_NS, assessed
from sda_platform_tests.support.segments import START_NS, after

POLICY = AlertPolicy(AlertSettings(red_pc=3e-5))


@pytest.fixture
def report() -> AlertReport:
    history = EventHistory.of_correction_log(
        [assessed(hours, degrees_of_freedom_2=2.34) for hours in (0, 6, 12)], (), POLICY
    )
    entry = {"event_id": "an-event", "risk": "red", "as_of_ns": START_NS, "tca_time_ns": TCA_NS, "op": "insert"}
    alerts = [row(CONJUNCTION_ALERTS, **entry, change="risk_level,probability", rule="dilution", status="open")]
    seen = {
        "acknowledged_by": "ann",
        "revision": 0,
        "action": "acknowledge",
        "acknowledged_time_ns": after(60),
        "comment": "<b>looking</b>",
    }
    return AlertReport("an-event", alerts, history, [seen], ["elements of 25544: segment sets.csv record 7"])


def test_the_page_says_what_happened_and_why_and_loads_nothing(report: AlertReport) -> None:
    page = report.html()
    for words in ("ISS &lt;ZARYA&gt;", "risk level, probability</td><td>dilution", "own track", "sets.csv record 7",
                  "&lt;b&gt;looking&lt;/b&gt;", iso(TCA_NS), "1.000e-03", "by the largest Pc over",
                  "long tails: Student&#x27;s t, 2.3 degrees of freedom"):  # fmt: skip
        assert words in page, words
    assert page.count("<svg") == 3
    assert not re.search(r"""(src|href)=["'](?!#|data:)|@import|url\((?!#)""", page), "nothing is loaded from elsewhere"


def test_a_browser_draws_the_orbits_and_both_can_be_seen_at_tca(report: AlertReport, tmp_path: Path) -> None:
    (tmp_path / "alert.html").write_text(report.html(), encoding="utf-8")
    with opened(f"file://{tmp_path}", viewport=(1100, 900)) as page:
        page.goto("/alert.html")
        page.sees("TCA +0.00 s, distance 0.300 km", "Encounter plane", "VANGUARD 1", "ann")
        page.save(tmp_path / "alert.png")
    assert (tmp_path / "alert.png").stat().st_size > 20_000


def test_czml_has_both_orbits_about_tca(report: AlertReport) -> None:
    document, first, second = json.loads(report.czml())
    assert document["clock"]["currentTime"] == first["position"]["epoch"] == iso(TCA_NS)
    for packet, state in ((first, assessed(0)["state_1"]), (second, assessed(0)["state_2"])):
        samples = np.reshape(packet["position"]["cartesian"], (-1, 4))
        assert (np.diff(samples[:, 0]) >= 0).all() and samples[0, 0] < -2800
        r_km, _ = two_body_state([state[:3]] * len(samples), [state[3:]] * len(samples), samples[:, 0])
        np.testing.assert_allclose(samples[:, 1:], 1000 * r_km, atol=10)
        middle = samples[len(samples) // 2]
        np.testing.assert_allclose(middle, [0.0, *(1000 * x for x in state[:3])])


def test_the_globe_has_the_sun_the_prime_meridian_and_three_sigmas_of_each_object() -> None:
    """Eight in the evening at Greenwich: noon is 120 degrees further west, in November south of the equator."""
    around = surroundings(assessed(0))
    longitude, latitude = np.arctan2(around["sun"][1], around["sun"][0]), np.arcsin(around["sun"][2])
    west = np.degrees(around["earth_angle_rad"] - longitude) % 360
    assert west == pytest.approx(120 + 16.4 / 4, abs=0.2)  # the equation of time is 16.4 minutes
    assert np.degrees(latitude) == pytest.approx(-14.7, abs=0.2)
    for axes in around["ellipsoids"]:
        lengths = np.linalg.norm(axes, axis=1)
        np.testing.assert_allclose(lengths, 3000 * np.sort(SIGMAS_KM[:3]), rtol=1e-6)


def test_the_encounter_plane_lies_across_the_relative_velocity_with_the_miss_along_x() -> None:
    event = assessed(0)
    dr, basis, covariances = encounter_geometry(event)
    dv = np.subtract(event["state_2"], event["state_1"])[3:]
    np.testing.assert_allclose(basis @ dv, 0, atol=1e-12)
    np.testing.assert_allclose(basis @ dr, [0.3, 0], atol=1e-9)
    np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-12)
    assert miss_sigma_km(event) == pytest.approx(np.sqrt(2) * SIGMAS_KM[0])
    assert [c.shape for c in covariances] == [(3, 3)] * 2
    hit = assessed(0, state_2=[7000.0, 0.0, 0.0, 0.0, 0.0, 7.546])
    assert np.isfinite(encounter_geometry(hit)[1]).all()
