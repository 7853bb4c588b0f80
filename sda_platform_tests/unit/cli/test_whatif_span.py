"""`sda whatif` states the span that it screens, and names the alerts after it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_CANDIDATES, SCREENED_FROM, SCREENED_UPTO
from sda_platform.setting_sections import ScreeningSettings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.small_catalogue import small_catalogue

PRIMARY, OTHER = 25544, 43477
TCA_H = 100.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a red alert of the primary in four days."""
    lake = small_catalogue(tmp_path, [PRIMARY, OTHER])
    alert = {"event_id": "0a1b2c3d-4e5f", "op": "insert", "norad_id_1": PRIMARY, "norad_id_2": OTHER, "risk": "red",
             "tca_time_ns": after(TCA_H * 3600)}  # fmt: skip
    another = alert | {"event_id": "ffff0000-4e5f", "norad_id_1": 5}
    commit(lake, CONJUNCTION_ALERTS, [alert, another])
    return tmp_path


def asked(home: Path, *options: str) -> Result:
    start = ["--start", "2024-11-01T00:00:00Z", "--goal", "1e-6"]
    found = CliRunner().invoke(main, ["--home", str(home), "whatif", "--primary", str(PRIMARY), *start, *options])
    assert found.exit_code == 0, found.output
    return found


def test_without_a_span_it_is_that_of_screenings(home: Path) -> None:
    found = asked(home, "--json")
    assert json.loads(found.stdout)["span"] == ["2024-11-01T00:00:00.000Z", "2024-11-08T00:00:00.000Z"]
    assert ScreeningSettings().horizon_h == 7 * 24
    assert "not screened" not in found.stderr


@pytest.mark.parametrize(("upto_h", "end"), [(12.0, "2024-11-01T12:00:00.000Z"), (-1.0, "2024-11-08T00:00:00.000Z")])
def test_it_is_as_far_as_the_newest_screening_of_the_platform(home: Path, upto_h: float, end: str) -> None:
    marks = {SCREENED_FROM: after(-3600.0), SCREENED_UPTO: after(upto_h * 3600)}
    commit(lake_at(home / "lake"), CONJUNCTION_CANDIDATES, [], watermarks=marks)
    found = asked(home, "--json")
    assert json.loads(found.stdout)["span"] == ["2024-11-01T00:00:00.000Z", end]
    assert ("not screened: alert 0a1b2c3d" in found.stderr) == (upto_h > 0)


def test_no_burn_is_needed_of_what_was_screened_alone(home: Path) -> None:
    found = asked(home, "--hours", "72")
    assert after(0) == START_NS
    assert "screened from 2024-11-01 00:00 to 2024-11-04 00:00 UTC" in found.stdout
    assert "no later event until 2024-11-04 00:00 has a Pc above 1e-06" in " ".join(found.stdout.split())
    assert found.stderr.count("not screened: ") == 1
    assert "not screened: alert 0a1b2c3d, red, TCA 2024-11-05 04:00; --hours screens longer" in found.stderr
