"""The pipeline's screening where objects have sets ahead: each counts in its term, in any cut into tasks."""

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.identities import Identities
from sda_platform.catalog.orbits import Catalogue, catalogue_ahead, sets_ahead
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.assess import ASSESSED_SCHEMA, assess_candidates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.screen import sweeps
from sda_platform.conjunction.screening_tasks import EVENT, searcher
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS, Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.search import spans
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delta_tables import commit, lake_at

SETS = Path(__file__).parents[2] / "data/screening/supplemental_sets_2025-01-12.omm.csv"
BEGIN_NS = parse_iso_ns("2025-01-13T00:00:00Z")
HOUR_NS = 3600 * SECOND_NS
END_NS = BEGIN_NS + 24 * HOUR_NS
SPHERE = Volume.sphere(20.0)
ISS = 25544
Event = tuple[int, int, int, float]


@cache
def catalogue() -> Catalogue:
    """The objects of a real file; the ISS has sets ahead that take over through the day."""
    file = read_elements(SETS, BEGIN_NS, END_NS)
    return Catalogue(Propagator(file.elements), file.names, file.terms)


@cache
def events(
    cuts: tuple[int, ...] = (), objects_per_task: int = 30_000, changed: frozenset[int] | None = None
) -> set[Event]:
    objects = catalogue()
    fleet = objects.norad_id.tolist()
    work = sweeps(StatedPaths(objects), fleet, changed, scope="all", volumes=SPHERE, objects_per_task=objects_per_task)
    search = searcher(StatedPaths(objects), np.zeros(0, dtype=np.int64), work, fleet_internal=True)
    edges = [BEGIN_NS, *cuts, END_NS]
    parts = [part for begin, end in pairwise(edges) for part in spans(begin, end)]
    tasks = [{"sweep": n, "start_ns": begin, "end_ns": end} for n in range(len(work)) for begin, end in parts]
    rows = [row for batch in search([pa.RecordBatch.from_pylist(tasks)]) for row in batch.to_pylist()]
    keys = ("norad_id_1", "norad_id_2", "tca_time_ns", "miss_distance_km")
    return {tuple(row[key] for key in keys) for row in rows if row["kind"] == EVENT}


def test_tasks_find_what_the_whole_window_holds_A1() -> None:
    objects = catalogue()
    assert objects.terms is not None
    rows = np.arange(len(objects))
    work = [(SPHERE, rows)]
    whole = screen_elements(
        objects.propagator.elements,
        objects.terms,
        work,
        rows,
        BEGIN_NS,
        END_NS,
        processes=1,
        report=lambda _n, _all: None,
    ).events
    ids = objects.norad_id
    expected = set(zip(ids[whole.lo].tolist(), ids[whole.hi].tolist(), whole.tca_time_ns.tolist(),
                       whole.miss_distance_km.tolist(), strict=True))  # fmt: skip
    assert len({event for event in expected if ISS in event[:2]}) == 15
    assert events() == expected


def test_cuts_in_time_and_among_objects_change_nothing_A1() -> None:
    objects = catalogue()
    assert objects.terms is not None
    borders = [t for t in objects.terms.from_ns.tolist() if BEGIN_NS < t < END_NS]
    shifts_ns = (0, 1, -1, 300 * SECOND_NS, -300 * SECOND_NS)
    near_borders = tuple(sorted({t + shift for t, shift in zip(borders, shifts_ns, strict=False)}))
    assert events(cuts=near_borders) == events()
    assert events(objects_per_task=7) == events()


def test_screening_an_object_that_changed_finds_what_a_full_run_finds_of_it_A1() -> None:
    assert events(changed=frozenset({ISS})) == {event for event in events() if ISS in event[:2]}


@pytest.mark.parametrize("hours", [0.0, 7.3, 23.9])
def test_of_each_object_the_set_in_force_is_chosen_A1(hours: float) -> None:
    objects, time_ns = catalogue(), BEGIN_NS + round(hours * HOUR_NS)
    ids = np.unique(objects.norad_id)
    chosen = objects.rows_in_force(ids, np.full(len(ids), time_ns))
    epochs = objects.propagator.elements.epoch_time_ns
    for norad_id, row in zip(ids.tolist(), chosen.tolist(), strict=True):
        own = objects.positions([norad_id])
        come = own[epochs[own] - EPOCH_TOLERANCE_NS <= time_ns]
        assert row == (come[-1] if len(come) else own[0])
    assert objects.objects == len(ids) < len(objects)


def test_the_catalogue_ahead_has_the_sets_that_come_within_the_horizon_A1(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, now_ns=BEGIN_NS)

    def row(norad_id: int, hours: float, name: str, **values: object) -> dict[str, object]:
        epoch = BEGIN_NS + round(hours * HOUR_NS)
        plain = {"error_kind": None, "element_set_number": 1, "originator": None, "source_priority": 0}
        return {**plain, "norad_id": norad_id, "epoch_time_ns": epoch, "object_name": name, **values}

    ahead = [row(7, 5, "second"), row(7, 30, "too late"), row(7, 8, "outranked"),
             row(7, 8, "third", source_priority=10), row(7, 6, "broken", error_kind="propagation_refused"),
             row(9, 5, "not in the catalogue")]  # fmt: skip
    commit(lake, ELEMENT_SETS, [row(7, -1, "first"), row(8, -2, "other"), *ahead])
    commit(lake, ORBITAL_CATALOG, [row(7, -1, "first"), row(8, -2, "other")])
    commit(lake, ELEMENT_SETS, [row(8, 3, "not read")])
    found = catalogue_ahead(lake, 0, TableSnapshot(ELEMENT_SETS.name, 0, 1), END_NS)
    assert found.object_names == ("first", "second", "third", "other")
    assert found.terms is not None
    assert found.terms.from_ns[0] == found.terms.from_ns[3] == ALWAYS_NS
    assert (found.terms.until_ns - BEGIN_NS)[:2].tolist() == [h * HOUR_NS - EPOCH_TOLERANCE_NS for h in (5, 8)]
    new = sets_ahead(lake, ["norad_id"], TableSnapshot(ELEMENT_SETS.name, 1, 2), BEGIN_NS, END_NS, new_after=1)
    assert new.column("norad_id").to_pylist() == [8]
    read, merged = TableSnapshot(ELEMENT_SETS.name, 1, 2), Identities({8: 7})
    new = sets_ahead(lake, ["norad_id"], read, BEGIN_NS, END_NS, new_after=1, identities=merged)
    assert new.column("norad_id").to_pylist() == [7], "a merged satellite's sets count for the one that survives"


def test_an_approach_is_assessed_by_the_sets_in_force_at_its_time_A1() -> None:
    """The first set of the ISS in the file, used all day, puts this approach elsewhere."""
    objects = catalogue()
    one, other, tca_ns, miss_km = max((e for e in events() if ISS in e[:2]), key=lambda event: event[2])
    row = {"event_id": "a", "norad_id_1": one, "norad_id_2": other, "tca_time_ns": tca_ns}
    candidates = pa.Table.from_pylist([row], ASSESSED_SCHEMA)
    unstated = OperatorEphemerides.none()
    nobody = Tracks.of(TRACKS.arrow_schema.empty_table().select(TRACK_COLUMNS))
    (found,) = assess_candidates(candidates, objects, nobody, unstated, SPHERE, ObjectSizes()).to_pylist()
    assert abs(found["miss_distance_km"] - miss_km) < 1e-6
    assert objects.terms is not None
    for_ever = Terms(objects.terms.row, objects.terms.from_ns, np.full(len(objects), FOREVER_NS))
    first = Catalogue(objects.propagator, objects.object_names, for_ever)
    (wrong,) = assess_candidates(candidates, first, nobody, unstated, SPHERE, ObjectSizes()).to_pylist()
    assert abs(wrong["miss_distance_km"] - miss_km) > 1e-3
