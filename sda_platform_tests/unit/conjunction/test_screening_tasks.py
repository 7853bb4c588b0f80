"""The tasks of a screening, carried out one by one as Spark does: together they are the whole, in any cut."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.screen import Scope, sweeps
from sda_platform.conjunction.screening_tasks import EVENT, searcher
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.orbits.screening.search import spans
from sda_platform.orbits.screening.volumes import Volume
from sda_platform_tests.support.object_shell import BEGIN_NS, shell
from sda_platform_tests.support.sampling import sampled

END_NS = BEGIN_NS + 3 * 3_600_000_000_000
SPHERE = Volume.sphere(40.0)
BOXES = {name: Volume("box", 10.0, 30.0, 30.0) for name in ("LEO1", "LEO2", "LEO3", "HEO")}
# A pair of both regimes is inside the volume of the first alone.
UNEQUAL = {**dict.fromkeys(("LEO1", "LEO2", "LEO3"), Volume("box", 1.0, 1.0, 1.0)), "HEO": Volume("box", *[250.0] * 3)}
Pair = tuple[int, int, int]


def events(
    objects: Catalogue,
    fleet: Sequence[int],
    changed: Sequence[int] | None,
    *,
    scope: Scope,
    volumes: dict[str, Volume] | Volume,
    size: int = 30_000,
    internal: bool = True,
) -> set[Pair]:
    chosen = None if changed is None else frozenset(changed)
    work = sweeps(StatedPaths(objects), fleet, chosen, scope=scope, volumes=volumes, objects_per_task=size)
    search = searcher(StatedPaths(objects), np.asarray(fleet, dtype=np.int64), work, fleet_internal=internal)
    tasks = [{"sweep": n, "start_ns": a, "end_ns": b} for n in range(len(work)) for a, b in spans(BEGIN_NS, END_NS)]
    rows = [row for batch in search([pa.RecordBatch.from_pylist(tasks)]) for row in batch.to_pylist()] if tasks else []
    return {(r["norad_id_1"], r["norad_id_2"], r["tca_time_ns"]) for r in rows if r["kind"] == EVENT}


@pytest.mark.parametrize("volumes", [SPHERE, BOXES], ids=["sphere", "boxes"])
@pytest.mark.parametrize("scope", sampled(["all", "fleet"], "fleet"))
def test_screening_what_changed_finds_what_a_full_run_finds_of_it(
    scope: Scope, volumes: dict[str, Volume] | Volume
) -> None:
    objects = shell()
    fleet = objects.norad_id[::4].tolist()
    changed = objects.norad_id[::9].tolist()
    whole = events(objects, fleet, None, scope=scope, volumes=volumes)
    part = events(objects, fleet, changed, scope=scope, volumes=volumes, size=13)
    assert len(part) > 3
    assert part == {event for event in whole if set(event[:2]) & set(changed)}


@pytest.mark.parametrize("scope", ["all", "fleet"])
def test_a_pair_that_only_the_volume_of_the_changed_object_holds_is_found(scope: Scope) -> None:
    objects = shell()
    changed = objects.norad_id[objects.propagator.elements.eccentricity > 0.6].tolist()
    fleet = [*changed, *objects.norad_id[::4].tolist()]
    whole = events(objects, fleet, None, scope=scope, volumes=UNEQUAL)
    part = events(objects, fleet, changed, scope=scope, volumes=UNEQUAL)
    assert len(part) > 3
    assert part == {event for event in whole if set(event[:2]) & set(changed)}


def test_the_number_of_objects_in_a_task_changes_nothing() -> None:
    objects = shell()
    fleet = objects.norad_id[::4].tolist()
    whole = events(objects, fleet, None, scope="all", volumes=SPHERE)
    assert whole == events(objects, fleet, None, scope="all", volumes=SPHERE, size=90)


def test_the_protected_object_comes_first_and_pairs_within_the_fleet_only_where_they_are_wanted() -> None:
    objects = shell()
    fleet = objects.norad_id[::3].tolist()
    told = events(objects, fleet, None, scope="fleet", volumes=SPHERE)
    assert all(first in fleet for first, _, _ in told)
    inside = {event for event in told if event[1] in fleet}
    assert inside
    assert all(first < second for first, second, _ in inside)
    assert events(objects, fleet, None, scope="fleet", volumes=SPHERE, internal=False) == told - inside
