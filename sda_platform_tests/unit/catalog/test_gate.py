"""The gate before the merge: what is held and why, what bears a set out, and that arrival has no part in it."""

import random
import shutil
from pathlib import Path

import pytest

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.catalog.held_model import BORNE_OUT, IMPLAUSIBLE, PLANNED, RELEASED
from sda_platform.catalog.orbits import catalogue_ahead
from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    ELEMENT_SETS,
    ELEMENTS,
    HELD_ELEMENT_SETS,
    IN_FORCE,
    ORBITAL_CATALOG,
)
from sda_platform.formats.edits import CORRECTION, RELEASE
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.orchestration.leases import LeaseResource
from sda_platform.orchestration.replaying import replay_lake
from sda_platform_tests.support.catalogue_merging import (
    HOUR_NS,
    Merging,
    Row,
    histories,
    key,
    landed,
    lifted,
    tagged,
)
from sda_platform_tests.support.delta_tables import commit

pytestmark = pytest.mark.usefixtures("engineless")


def test_a_set_of_another_object_is_held_and_the_object_goes_on__44(merging: Merging) -> None:
    one, other = histories()[:2]
    wrong = tagged(one[-1], other[-1])
    merging.deliver([*one, *other])
    before = merging.in_force()
    merging.deliver([wrong])
    assert merging.in_force() == before
    assert merging.holds() == {key(wrong): "unsettled"}, "it stays in its table, with a reason"
    again = {**wrong, **landed(10_001)}
    assert merging.deliver([again]).holds() == {key(wrong): "unsettled", key(again): "unsettled"}, (
        "its copy is no proof"
    )
    claims = merging.open().log(CATALOG_CONFLICTS).rows().to_pylist()
    assert {key(row) for row in claims if row["outcome"] == IN_FORCE and row["attribute"] == ELEMENTS} == set(
        before.values()
    )


def test_claims_by_originators_of_an_earlier_release_become_claims_of_sources__44(merging: Merging) -> None:
    """All are judged again with the next set, also those of objects without a new one."""
    one, other = ([{**row, "source_name": "spacetrack"} for row in rows] for rows in histories()[:2])
    merging.deliver([*one[:-1], *other])
    lake = merging.open()
    (first,) = lake.log(CATALOG_CONFLICTS).commits()
    claims = lake.log(CATALOG_CONFLICTS).rows().to_pylist()
    shutil.rmtree(lake.log(CATALOG_CONFLICTS).uri)
    earlier = [{**row, "claimant": "18 SDS", "originator": None} for row in claims]
    commit(merging.open(), CATALOG_CONFLICTS, earlier, windows=first.manifest.windows)
    merging.deliver([one[-1]])
    found = merging.open().log(CATALOG_CONFLICTS).rows().to_pylist()
    assert {(row["norad_id"], row["claimant"], row["originator"], key(row)) for row in found} == {
        (rows[-1]["norad_id"], "spacetrack", rows[-1]["originator"] or "", key(rows[-1])) for rows in (one, other)
    }


def test_a_manoeuvre_is_held_until_the_next_set_agrees__44(merging: Merging) -> None:
    rows = histories()[0]
    moved, days = lifted(rows[-2], 0.1), (rows[-1]["epoch_time_ns"] - rows[-2]["epoch_time_ns"]) / (24 * HOUR_NS)
    follows = {**lifted(rows[-1], 0.1), "mean_anomaly_deg": (rows[-1]["mean_anomaly_deg"] + 36 * days) % 360}
    merging.deliver(rows[:-2])
    merging.deliver([moved])
    assert merging.in_force() == {rows[0]["norad_id"]: key(rows[-3])}
    merging.deliver([follows])
    assert merging.in_force() == {rows[0]["norad_id"]: key(follows)}
    assert (merging.holds(), merging.holds(BORNE_OUT)) == ({}, {key(moved): "unsettled"})


def test_a_wrong_set_stays_held_once_the_object_is_seen_where_it_was__44(merging: Merging) -> None:
    rows = histories()[1]
    wrong = {**rows[-2], "mean_anomaly_deg": (rows[-2]["mean_anomaly_deg"] + 60) % 360}
    merging.deliver([*rows[:-2], wrong])
    assert merging.holds() == {key(wrong): "unsettled"}
    merging.deliver([rows[-1]])
    assert merging.holds() == {key(wrong): "cross-tag"}
    assert merging.in_force() == {rows[0]["norad_id"]: key(rows[-1])}


def test_implausible_orbits_and_planned_manoeuvres_are_held__44(merging: Merging) -> None:
    rows = histories()[2]
    ground = {**rows[-1], **landed(1), "mean_motion_rev_per_day": 17.5, "epoch_time_ns": rows[-1]["epoch_time_ns"] + 1}
    plan = {**rows[-1], **landed(2), "object_name": "X [PM]", "epoch_time_ns": rows[-1]["epoch_time_ns"] + HOUR_NS}
    first = {**ground, "norad_id": 77}
    merging.deliver([*rows, ground, plan, {**first, **landed(3)}])
    assert merging.holds() == {key(ground): IMPLAUSIBLE, key(plan): PLANNED, key(landed(3)): IMPLAUSIBLE}
    assert merging.in_force() == {rows[0]["norad_id"]: key(rows[-1])}, (
        "an object of which nothing else is known has none"
    )


def test_a_prediction_that_leaves_the_orbit_is_held_and_not_screened_ahead__44(merging: Merging) -> None:
    rows = histories()[3]
    merging.now_ns = rows[-1]["epoch_time_ns"] + 6 * HOUR_NS
    ahead = {**lifted(rows[-1], 0.05), **landed(5), "epoch_time_ns": merging.now_ns + 5 * HOUR_NS}
    merging.deliver([*rows, {**ahead, "received_time_ns": merging.now_ns}])
    assert merging.holds() == {key(ahead): PLANNED}
    lake = merging.open()
    sets = TableSnapshot(ELEMENT_SETS.name, 0, 9)
    found = catalogue_ahead(lake, lake.log(ORBITAL_CATALOG).version(), sets, merging.now_ns + 48 * HOUR_NS)
    assert len(found) == 1


def test_a_person_releases_a_set_and_takes_that_back__44(merging: Merging) -> None:
    rows = histories()[0]
    moved, number = lifted(rows[-1], 0.1), rows[0]["norad_id"]
    merging.deliver([*rows[:-1], moved])
    released = merging.edit(number, RELEASE, f"{moved['segment_sha256']}:0")
    merging.deliver(edits=[released])
    assert (merging.in_force(), merging.holds(RELEASED)) == ({number: key(moved)}, {key(moved): "unsettled"})
    (row,) = merging.open().log(HELD_ELEMENT_SETS).rows().to_pylist()
    assert row["released_by"] == "me"
    merging.deliver(edits=[merging.edit(number, RELEASE, "")])
    assert (merging.in_force(), merging.holds()) == ({number: key(rows[-2])}, {key(moved): "unsettled"})


def test_a_corrected_set_counts_for_its_object__44(merging: Merging) -> None:
    one, other = histories()[:2]
    wrong = {**other[-1], **landed(9), "norad_id": one[0]["norad_id"]}
    merging.deliver([*one, *other[:-1], wrong])
    assert list(merging.holds()) == [key(wrong)]
    correction = merging.edit(one[0]["norad_id"], CORRECTION, f"{wrong['segment_sha256']}:0:{other[0]['norad_id']}")
    merging.deliver(edits=[correction])
    assert merging.holds() == {}
    assert merging.in_force() == {one[0]["norad_id"]: key(one[-1]), other[0]["norad_id"]: key(wrong)}


def troubled() -> list[Row]:
    """Histories with cross-tags, a manoeuvre, a wrong newest set, a plan, and a second delivery."""
    one, two, three, four = histories()
    found = [*one, *two, *three[:-6], *(lifted(row, 0.01) for row in three[-6:]), *four]
    found += [tagged(one[10], two[11], 30_000), tagged(two[-1], one[-1], 30_001)]
    found += [{**lifted(four[-1], 0.1), **landed(30_002), "epoch_time_ns": four[-1]["epoch_time_ns"] + 9 * HOUR_NS}]
    found += [
        {**four[5], **landed(30_003)},
        {**two[3], **landed(30_004), "object_name": "TWO [PM]", "epoch_time_ns": two[3]["epoch_time_ns"] + HOUR_NS},
    ]
    return found


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_arrival_has_no_effect_on_the_catalogue__44_CM14(tmp_path: Path, seed: int) -> None:
    chance, sets = random.Random(seed), troubled()
    now_ns = max(row["epoch_time_ns"] for row in sets) + HOUR_NS
    at_once = Merging(tmp_path / "one", now_ns).deliver(sets)
    assert len(at_once.holds()) >= 4
    chance.shuffle(sets)
    apart = Merging(tmp_path / "two", now_ns)
    if seed == 0:  # as it comes
        sets.sort(key=lambda row: row["received_time_ns"])
    for start in range(0, len(sets), 12):
        apart.deliver(sets[start : start + 12])
    assert apart.catalogue() == at_once.catalogue()
    assert apart.holds() == at_once.holds()
    tables = [HELD_ELEMENT_SETS, ORBITAL_CATALOG, CATALOG_CONFLICTS]
    if seed == 1:
        again = replay_lake(apart.open(), str(tmp_path / "again"), {"leases": LeaseResource()}, tables=tables)
        assert [each.differences for each in again] == [(), (), ()]
