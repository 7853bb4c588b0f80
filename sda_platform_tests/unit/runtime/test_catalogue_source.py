"""The lake as the source of the serving index: verified versions only, and what was acknowledged next to them."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from jsonschema import Draft202012Validator

from sda_platform.catalog.edit_decoding import facts_of
from sda_platform.catalog.held_model import BORNE_OUT, RELEASED
from sda_platform.catalog.tables import CATALOG_EDITS, ELEMENT_SETS, HELD, HELD_ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.formats.edits import Edit
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.segments import Origin, Sender
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.table import Table
from sda_platform.landing.lander import Lander
from sda_platform.landing.zone import LandingZone
from sda_platform.recovery.review import review
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.serving import micro_segment
from sda_platform.serving.answers import ALERT, CONJUNCTION, SCHEDULED_OBSERVATION
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.crashes import crash_at
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import committed, sets_of, small_catalogue
from sda_platform_tests.unit.history.lakes import decide
from sda_platform_tests.unit.serving.source import Seen

IDS = [5, 11, 25544]
PUT = ElementSet(25544, "ISS", "1998-067A", START_NS, 15.5, 0.001, 51.6, 1.0, 2.0, 3.0, 1e-4, originator="18 SDS")

SENDER = Sender("aurora", "192.0.2.7", 20)


def served(home: Path) -> LiveCatalogue:
    source = LakeSource(lake_at(home / "lake", reads_unverified=False), str(home / "landing"))
    live = LiveCatalogue(source, IndexStore(home / "serving"), lambda: START_NS)
    live.start()
    return live


def put(live: LiveCatalogue) -> None:
    source = live.source
    assert isinstance(source, LakeSource)
    puts = Puts(live, source.land)
    puts.put([PUT], SENDER).result(10)
    puts.close()


def genesis_window(lake: Lake, table: Table) -> TableWindow:
    """The window of a first commit that consumes all of ``table``."""
    head = lake.log(table).head()
    return TableWindow(table.name, 0, head.sequence, -1, head.commit_version, head.manifest_sha256)


def next_window(lake: Lake, table: Table) -> TableWindow:
    """The window of the catalogue's next commit on ``table``, from where its newest one ended."""
    before, now = lake.log(ORBITAL_CATALOG).head(), lake.log(table).head()
    consumed = before.commit.manifest.window(table.name) if before.commit else None
    after, version = (consumed.upto_sequence, consumed.upto_version) if consumed else (0, -1)
    return TableWindow(table.name, after, now.sequence, version, now.commit_version, now.manifest_sha256)


def test_the_index_is_bound_to_the_newest_verified_version(tmp_path: Path) -> None:
    lake = small_catalogue(tmp_path, IDS)
    live = served(tmp_path)
    log = lake.log(ORBITAL_CATALOG)
    binding = live.binding
    assert binding is not None
    assert (binding.version, binding.sequence, binding.objects, binding.sets) == (0, 1, 3, 3)
    assert binding.manifest_sha256 == log.head().manifest_sha256
    assert [each.norad_id for each in Seen(live).objects()] == IDS
    committed(lake, sets_of([12]), is_verified=False)
    assert not live.refresh(), "a commit that was not verified is not served"
    review(lake, ORBITAL_CATALOG)
    assert live.refresh()
    assert [each.norad_id for each in Seen(live).objects()] == [5, 11, 12, 25544]
    live.close()


def test_rows_of_alerts_and_conjunctions_have_the_columns_and_types_of_their_schemas(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    decide(lake, collision_probability=2e-4, tca_time_ns=START_NS)
    source = LakeSource(lake, str(tmp_path / "landing"))
    schemas = source.row_schemas()
    for name, rows in ((ALERT, source.alerts()), (CONJUNCTION, source.conjunctions(7))):
        assert [*rows[0]] and {*rows[0]} == {*schemas[name]["properties"]}, name
        Draft202012Validator(schemas[name]).validate(rows[0])
    assert schemas[SCHEDULED_OBSERVATION]["properties"]["start_time_ns"]["type"] == ["integer", "null"]


def test_a_platform_without_a_catalogue_serves_what_was_put(tmp_path: Path) -> None:
    live = served(tmp_path)
    put(live)
    found = live.get(25544)
    assert found is not None
    assert found.object_name == "ISS"
    live.close()


def test_an_acknowledged_put_survives_a_restart_until_the_catalogue_holds_it__WL3_WL11(tmp_path: Path) -> None:
    lake = small_catalogue(tmp_path, IDS)
    live = served(tmp_path)
    put(live)
    live.close()
    zone = LandingZone(str(tmp_path / "landing"), "elements")
    (segment,) = zone.pending()
    loaded = zone.read(segment)
    assert loaded.defect is None

    again = served(tmp_path)
    assert [each.segment_sha256 for each in [again.get(25544)] if each] == [loaded.sha256]
    again.close()

    newer = sets_of([25544], segment_sha256=loaded.sha256, segment_name=segment.name, epoch_time_ns=START_NS)
    commit(lake, ELEMENT_SETS, newer)
    zone.acknowledge([loaded.ref(1)])
    third = served(tmp_path)
    assert not zone.pending()
    assert [each.segment_sha256 for each in [third.get(25544)] if each] == [loaded.sha256], "between the two tables"
    third.close()


@pytest.mark.parametrize("point", ["landing.data_written", "landing.sealed", "serving.sealed", "serving.shown"])
def test_a_crash_at_any_point_of_a_put_loses_no_sealed_set__WL9(tmp_path: Path, point: str) -> None:
    """Before the seal a put may vanish: it was not acknowledged. From the seal on it is served after a restart."""
    small_catalogue(tmp_path, IDS)
    live = served(tmp_path)
    with crash_at(point):
        put(live)
    live.close()
    again = served(tmp_path)
    found = again.get(25544)
    assert found is not None
    is_served = found.object_name == "ISS"
    assert is_served == (point != "landing.data_written")
    put(again)
    assert len(LandingZone(str(tmp_path / "landing"), "elements").pending_names()) == 1
    assert len(Seen(again).history(25544)) == 2, "a put that is repeated adds nothing"
    again.close()


def test_sets_rank_by_their_client_also_after_a_restart__F1_18(tmp_path: Path) -> None:
    small_catalogue(tmp_path, IDS)
    live = served(tmp_path)
    assert isinstance(live.source, LakeSource)
    puts = Puts(live, live.source.land)
    other = replace(PUT, norad_id=11, international_designator=None, originator="OWNER/OPERATOR")
    futures = [puts.put([each], sender) for each, sender in ((PUT, SENDER), (other, Sender("anyone", "192.0.2.8")))]
    assert all(each.result(10) is None for each in futures)
    puts.close()
    ranks = {number: found.source_priority for number in (25544, 11) if (found := live.get(number))}
    live.close()
    again = served(tmp_path)
    after_restart = {number: found.source_priority for number in (25544, 11) if (found := again.get(number))}
    again.close()
    assert ranks == after_restart == {25544: 20, 11: 0}
    origins = [each.meta.origins for each in LandingZone(str(tmp_path / "landing"), "elements").pending() if each.meta]
    stated = {origin for found in origins for origin in found or ()}
    assert stated == {Origin(1, "aurora", "192.0.2.7", rank=20), Origin(1, "anyone", "192.0.2.8")}


def test_micro_segments_of_other_processes_are_taken_in(tmp_path: Path) -> None:
    small_catalogue(tmp_path, IDS)
    live = served(tmp_path)
    other = served(tmp_path / "other-index")
    data = micro_segment.encode([PUT])
    assert isinstance(live.source, LakeSource)
    live.source.land(micro_segment.segment_name(data), data, [SENDER.origin(1)])
    live.refresh()
    assert len(live.pending) == 1
    live.refresh()
    assert len(live.pending) == 1
    live.close()
    other.close()


def test_sets_of_a_merged_satellite_are_served_under_the_number_that_survives__CS9(tmp_path: Path) -> None:
    """The index is loaded again where edits move sets; what was put for the merged number waits under the other."""
    lake = small_catalogue(tmp_path, IDS)
    live = served(tmp_path)
    assert [each.norad_id for each in Seen(live).objects()] == IDS
    edit = Edit(25544, "merged_into", "11", "north", 1, {"north": 1})
    commit(lake, CATALOG_EDITS, [{**facts_of(edit), "error_kind": None, "error": None}])
    put(live)
    found = live.get(25544)
    assert found is not None
    assert found.object_name == "ISS"
    catalogue_uri = Path(lake.log(ORBITAL_CATALOG).uri)
    shutil.rmtree(catalogue_uri)
    kept = [row for row in sets_of(IDS) if row["norad_id"] != 25544]
    commit(
        lake, ORBITAL_CATALOG, kept, windows=[genesis_window(lake, ELEMENT_SETS), genesis_window(lake, CATALOG_EDITS)]
    )
    review(lake, ORBITAL_CATALOG)
    assert live.refresh()
    assert [each.norad_id for each in Seen(live).objects()] == [5, 11]
    assert live.get(25544) is None
    waiting = live.get(11)
    assert waiting is not None
    assert (waiting.norad_id, waiting.object_name) == (11, "ISS")
    assert len(Seen(live).history(11)) == 3, "its own set, the one of the merged satellite, and the put one"
    put(live)
    assert Seen(live).history(25544) == []
    live.close()


def test_a_set_is_in_its_history_while_it_is_not_held__44(tmp_path: Path) -> None:
    lake = small_catalogue(tmp_path, [5])
    live = served(tmp_path)
    segments = [f"{number:064x}" for number in range(1, 4)]
    steps: list[tuple[list[int], dict[int, str], list[int]]] = [
        ([0, 1], {1: HELD}, [0]),  # held with the commit that brings it
        ([2], {2: HELD, 1: HELD}, [0]),
        ([], {1: RELEASED}, [0, 1]),  # an old one released
        ([], {0: HELD, 2: BORNE_OUT}, [1, 2]),  # an old one held
    ]
    for step, (new, outcomes, expected) in enumerate(steps):
        sets = [
            {**each, "epoch_time_ns": START_NS + number, "segment_sha256": segments[number]}
            for number in new
            for each in sets_of([11], record_number=7)
        ]
        commit(lake, ELEMENT_SETS, sets)
        if step:
            replaced = ", ".join(str(START_NS + number) for number in outcomes)
            DeltaTable(lake.log(HELD_ELEMENT_SETS).uri).delete(f"epoch_time_ns IN ({replaced})")
        held = [
            {"norad_id": 11, "epoch_time_ns": START_NS + number, "segment_sha256": segments[number],
             "record_number": 7, "outcome": outcome}
            for number, outcome in outcomes.items()
        ]  # fmt: skip
        commit(lake, HELD_ELEMENT_SETS, held)
        windows = [next_window(lake, table) for table in (ELEMENT_SETS, HELD_ELEMENT_SETS)]
        commit(lake, ORBITAL_CATALOG, windows=windows)
        review(lake, ORBITAL_CATALOG)
        assert live.refresh()
        assert [each.epoch_time_ns - START_NS for each in Seen(live).history(11)] == expected
        assert live.binding is not None and live.binding.sets == (3 if step == 0 else 4), "held ones included"
    live.close()
    shutil.rmtree(tmp_path / "serving")
    anew = served(tmp_path)
    assert [each.epoch_time_ns - START_NS for each in Seen(anew).history(11)] == expected, "as after a rebuild"
    anew.close()


def test_a_file_of_a_partner_is_no_put_whatever_its_name(tmp_path: Path) -> None:
    """What was put was decoded and accepted before; a file that looks so must pass the intake."""
    small_catalogue(tmp_path, IDS)
    impossible = replace(PUT, eccentricity=0.9, mean_motion_rev_per_day=19.9)
    for name, content in {
        "put-x.csv": micro_segment.encode([impossible]),
        f"put-{24 * 'a'}.csv": micro_segment.encode([replace(impossible, norad_id=5)]),
        "put-y.csv": micro_segment.encode([PUT]).replace(b"2024", b"when", 1),
    }.items():
        (tmp_path / name).write_bytes(content)
        Lander(str(tmp_path / "landing"), lake_at(tmp_path / "lake").clock).land(tmp_path / name)
    assert len(LandingZone(str(tmp_path / "landing"), "elements").pending()) == 3
    live = served(tmp_path)
    found = live.get(25544)
    assert found is not None and found.object_name != "ISS"
    put(live)
    found = live.get(25544)
    assert found is not None and found.object_name == "ISS"
    live.close()
