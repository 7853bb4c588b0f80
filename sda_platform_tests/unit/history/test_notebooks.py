"""The example notebooks run from beginning to end, on a lake with a year in it."""

import json
from pathlib import Path
from typing import Any

import pytest

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.unit.history.lakes import EVENT, add, approach, decide, elements

NOTEBOOKS = Path(__file__).parents[3] / "docs" / "notebooks"
DAY_NS = 86_400 * 10**9
BEGIN_NS = 1_730_419_200 * 10**9
FLEET = (25544, 20580, 38358)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two years of events every tenth day, objects launched month by month, three sensors, and one delivered alert."""
    home = tmp_path_factory.mktemp("home")
    lake = lake_at(home / "lake")
    sets = [
        {**elements(7 + n, BEGIN_NS + 30 * n * DAY_NS, record=n), "mean_motion_rev_per_day": 15.5 if n % 2 else 1.0027}
        for n in range(12)
    ]
    add(lake, ELEMENT_SETS, *sets)
    add(lake, ORBITAL_CATALOG, *sets)
    seen = [
        {"observation_id": f"o{n}", "source_id": f"radar-{n % 3}", "source_kind": "radar", "sensor_time_ns": n * 10**9,
         "received_time_ns": (n + 2 + n % 3) * 10**9}
        for n in range(300)
    ]  # fmt: skip
    add(lake, RAW_RECORDS, *seen)
    add(lake, OBSERVATIONS, *seen)
    add(lake, DEAD_LETTERS, {"source_id": "radar-1", "segment_sha256": "s", "record_number": 1})
    add(lake, TIME_TAG_BIASES, {"source_id": "radar-2", "term_start_ns": 0, "offset_s": 0.25, "is_applied": True})
    fit = {"fit_id": "f1", "norad_id": 7, "sequence": 0, "op": "insert", "observation_ids": ["o1", "o2"]}
    add(lake, FUSED_TRACKS, fit)
    add(lake, TRACKS, {"norad_id": 7, "track_id": "f1"})
    met = [
        {
            **approach(f"{n:08d}-0000-5000-8000-000000000000", norad_id_1=FLEET[n % 3], norad_id_2=40_000 + n % 4),
            "tca_time_ns": BEGIN_NS + 10 * n * DAY_NS, "miss_distance_km": 1.0 + n, "risk": "red" if n % 5 else "green",
        }
        for n in range(73)
    ]  # fmt: skip
    for table in (CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS):
        add(lake, table, *({k: v for k, v in row.items() if k in table.arrow_schema.names} for row in met))
    decide(lake, EVENT, track_id_1="f1", state_source_1="fused_track", state_source_2="element_set")
    assert lake.log(CONJUNCTION_ALERTS).head().sequence == 1
    add(lake, ALERT_DELIVERIES, {"subscriber": "sqlite", "alert_id": EVENT, "sequence": 0, "op": "insert"})
    return home


def run(name: str) -> dict[str, Any]:
    """What the code cells of a notebook, run one after the other, leave behind."""
    names: dict[str, Any] = {}
    for cell in json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "notebooks are kept without results"
            exec(compile("".join(cell["source"]), f"{name}.ipynb", "exec"), names)
    return names


@pytest.fixture
def notebook(home: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, Any]:
    monkeypatch.setenv("SDA_HOME", str(home))
    monkeypatch.chdir(home)
    return run(request.param)


@pytest.mark.parametrize("notebook", ["fleet_year"], indirect=True)
def test_a_year_of_conjunctions_of_a_fleet(notebook: dict[str, Any]) -> None:
    assert len(notebook["year"]) == 37, "of two years, the last"
    assert notebook["by_month"].sum().to_dict() == {"green": 7, "red": 30}
    assert notebook["closest"]["miss_distance_km"].tolist() == [float(n) for n in range(37, 47)]
    assert set(notebook["neighbours"].index) == {40_000, 40_001, 40_002, 40_003}


@pytest.mark.parametrize("notebook", ["sensor_performance"], indirect=True)
def test_sensor_performance(notebook: dict[str, Any]) -> None:
    sensors = notebook["sensors"].set_index("source_id")
    assert sensors["observations"].to_dict() == {f"radar-{n}": 100 for n in range(3)}
    assert sensors["median_delay_s"].to_dict() == {"radar-0": 2.0, "radar-1": 3.0, "radar-2": 4.0}
    assert sensors["rejected"].to_dict() == {"radar-0": 0, "radar-1": 1, "radar-2": 0}
    assert sensors.loc["radar-2", "clock_offset_s"] == 0.25


@pytest.mark.parametrize("notebook", ["catalogue_growth"], indirect=True)
def test_catalogue_growth(notebook: dict[str, Any]) -> None:
    assert notebook["growth"].iloc[-1] == 12
    assert notebook["regimes"].to_dict() == {"low": 6, "geostationary": 6, "medium": 0, "high": 0}


@pytest.mark.parametrize("notebook", ["one_alert"], indirect=True)
def test_one_alert_end_to_end(notebook: dict[str, Any]) -> None:
    assert (notebook["alert_id"], notebook["revisions"]["risk"].tolist()) == (EVENT, ["red"])
    assert notebook["sources"] == {7: "fused_track", 8: "element_set"}
    assert [row["source_id"] for row in notebook["observations"]] == ["radar-1", "radar-2"]
    assert len(notebook["deliveries"]) == 1


def test_every_notebook_has_a_test() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {
        "fleet_year", "sensor_performance", "catalogue_growth", "one_alert",
    }  # fmt: skip
