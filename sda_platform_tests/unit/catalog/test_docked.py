"""Docked vehicles stay one body with their station when one of them alone is improved."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.docked import PUBLISHED_WITHIN_NS
from sda_platform.catalog.orbits import Catalogue, catalogue_ahead
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.known_states import KnownStates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.planned_trajectory import Burn, burned
from sda_platform.conjunction.screen import sweeps
from sda_platform.conjunction.screening_tasks import EVENT, TOGETHER, searcher
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.conjunction.whatif import Scene
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import DAY_NS, MINUTE_NS
from sda_platform_tests.support.delta_tables import commit, lake_at

SETS = Path(__file__).parents[2] / "data/screening/supplemental_sets_2025-01-12.omm.csv"
BEGIN_NS = parse_iso_ns("2025-01-13T00:00:00Z")
MEETING_NS, END_NS = BEGIN_NS + DAY_NS // 4, BEGIN_NS + DAY_NS // 2
STATION, VEHICLE, TUG, STRANGER = 25544, 57400, 57401, 60000
PAIR = (STATION, VEHICLE)


def station_set(norad_id: int = STATION, *, ahead_deg: float = 0.0, **values: Any) -> dict[str, Any]:
    """A row with the station's set. One that is ahead of it by some degrees at its epoch is met at MEETING_NS."""
    elements = read_elements(SETS, BEGIN_NS, END_NS).elements
    row = np.flatnonzero(elements.norad_id == STATION)[:1]
    columns = {name: getattr(elements.take(row), name)[0].item() for name in ELEMENT_COLUMNS}
    days = (MEETING_NS - columns["epoch_time_ns"]) / DAY_NS
    columns["mean_anomaly_deg"] += ahead_deg
    columns["mean_motion_rev_per_day"] -= ahead_deg / 360 / days
    plain = {"error_kind": None, "object_name": "", "element_set_number": 1, "originator": "18 SDS"}
    return {**columns, **plain, "source_priority": 0, "norad_id": norad_id, **values}


EPOCH_NS = station_set()["epoch_time_ns"]
OWN = station_set(ahead_deg=0.3, originator=OWN_ORIGINATOR)


def catalogue_of(home: Path, element_sets: list[dict[str, Any]], in_force: list[dict[str, Any]]) -> Catalogue:
    lake = lake_at(home, now_ns=BEGIN_NS)
    commit(lake, ELEMENT_SETS, element_sets)
    commit(lake, ORBITAL_CATALOG, in_force)
    return catalogue_ahead(lake, 0, TableSnapshot(ELEMENT_SETS.name, 0, 1), END_NS)


def improved(home: Path) -> Catalogue:
    """The station with a set of our own, two vehicles with the one that was published for all three, and a stranger."""
    vehicles = [station_set(VEHICLE), station_set(TUG)]
    stranger = station_set(STRANGER, ahead_deg=-0.2)
    return catalogue_of(home, [station_set(), OWN, *vehicles, stranger], [OWN, *vehicles, stranger])


def findings(paths: StatedPaths) -> dict[str, set[tuple[int, int]]]:
    work = sweeps(paths, [STATION], None, scope="all", volumes=Volume.sphere(20.0), objects_per_task=100)
    search = searcher(paths, np.array([STATION]), work, fleet_internal=True)
    tasks = [{"sweep": n, "start_ns": BEGIN_NS, "end_ns": END_NS} for n in range(len(work))]
    rows = [row for batch in search([pa.RecordBatch.from_pylist(tasks)]) for row in batch.to_pylist()]
    found: dict[str, set[tuple[int, int]]] = {EVENT: set(), TOGETHER: set()}
    for row in rows:
        one, other = sorted((row["norad_id_1"], row["norad_id_2"]))
        found[row["kind"]].add((one, other))
    return found


def test_vehicles_with_the_stations_published_set_are_docked_to_it(tmp_path: Path) -> None:
    assert improved(tmp_path).docked == {PAIR, (STATION, TUG), (VEHICLE, TUG)}


@pytest.mark.parametrize(
    ("changed", "docked"),
    [
        pytest.param({}, {PAIR}, id="the published sets are equal"),
        pytest.param({"vehicle": {"inclination_deg": 51.6}}, set(), id="it left: its set is another one"),
        pytest.param({"vehicle": {"epoch_time_ns": EPOCH_NS + 1}}, set(), id="of another epoch"),
        pytest.param({"vehicle": {"originator": OWN_ORIGINATOR}}, set(), id="we have determined both"),
        pytest.param({"published": {"epoch_time_ns": EPOCH_NS + MINUTE_NS}}, set(), id="a newer one of the station"),
        pytest.param({"published": {"error_kind": "propagation_refused"}}, set(), id="the station's is refused"),
        pytest.param({"published": {"originator": None}}, {PAIR}, id="no originator is named"),
        pytest.param({"sequence": 0}, set(), id="the published one is not read yet"),
    ],
)  # fmt: skip
def test_what_makes_an_object_docked(tmp_path: Path, changed: dict[str, Any], docked: set[tuple[int, int]]) -> None:
    vehicle = station_set(VEHICLE, **changed.get("vehicle", {}))
    lake = lake_at(tmp_path, now_ns=BEGIN_NS)
    commit(lake, ELEMENT_SETS, [station_set(**changed.get("published", {})), vehicle, OWN])
    commit(lake, ORBITAL_CATALOG, [OWN, vehicle])
    read = TableSnapshot(ELEMENT_SETS.name, 0, changed.get("sequence", 1))
    assert catalogue_ahead(lake, 0, read, END_NS).docked == docked


def test_a_set_published_long_ago_says_nothing_about_today(tmp_path: Path) -> None:
    past = {"epoch_time_ns": BEGIN_NS - PUBLISHED_WITHIN_NS - MINUTE_NS}
    vehicle = station_set(VEHICLE, **past)
    assert catalogue_of(tmp_path, [station_set(**past), vehicle, OWN], [OWN, vehicle]).docked == set()


def test_screening_reports_docked_objects_as_together_and_others_as_events(tmp_path: Path) -> None:
    objects = improved(tmp_path)
    apart = findings(StatedPaths(replace(objects, docked=frozenset())))
    assert apart[EVENT] >= {PAIR, (STATION, TUG), (STATION, STRANGER)}, "without knowing it, they meet"
    found = findings(StatedPaths(objects))
    assert found[EVENT] == apart[EVENT] - objects.docked
    assert found[TOGETHER] >= objects.docked


def test_an_ephemeris_of_the_station_alone_does_not_part_them_either(tmp_path: Path) -> None:
    both = [station_set(), station_set(VEHICLE)]
    objects = catalogue_of(tmp_path, both, both)
    moved = Propagator(ElementSets.from_columns({name: np.array([OWN[name]]) for name in ELEMENT_COLUMNS}))

    def paths(*numbers: int) -> StatedPaths:
        time_ns = np.arange(BEGIN_NS - DAY_NS, END_NS + DAY_NS, MINUTE_NS)
        _, r, v = moved.grid(time_ns)
        covariance = np.repeat(np.diag([1e-4] * 3 + [1e-10] * 3)[None], len(time_ns), axis=0)
        path = Ephemeris(time_ns, np.hstack([r[0], v[0]]), time_ns, covariance, int(time_ns[0]), int(time_ns[-1]))
        stated = OperatorEphemerides(
            np.array(numbers),
            np.zeros(len(numbers), np.int64),
            tuple(map(str, numbers)),
            (path,) * len(numbers),
            ("operator_ephemeris",) * len(numbers),
        )
        return StatedPaths.of(objects, stated)

    assert findings(paths(STATION)) == {EVENT: set(), TOGETHER: {PAIR}}
    assert paths(STATION, VEHICLE).catalogue.docked == set(), "both have a path: their distance is what these say"


def test_a_burn_of_the_station_takes_along_what_is_docked(tmp_path: Path) -> None:
    known = KnownStates.of_sets(improved(tmp_path))
    sizes = ObjectSizes(dict.fromkeys(known.catalogue.norad_id.tolist(), 5.0))
    scene = Scene(known, STATION, BEGIN_NS, END_NS, 10.0, sizes, threshold_km=20.0)
    raised = burned(scene.unchanged, [Burn(BEGIN_NS + MINUTE_NS, (0.0, 0.1, 0.0))], scene.errors)
    for path in (scene.unchanged, raised):
        met = {each.norad_id for each in scene.encounters(path)}
        assert STRANGER in met
        assert not met & {VEHICLE, TUG}
