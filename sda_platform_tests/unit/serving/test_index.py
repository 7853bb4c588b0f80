"""The serving index: every way to find an object, bound to one version, and never a wrong answer."""

import random
import shutil
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sda_platform.serving import keys, record
from sda_platform.serving.errors import AlreadyServed, DamagedIndex, IndexMismatch
from sda_platform.serving.index import IS_HELD, CatalogueIndex, records
from sda_platform.serving.rocksdb_engine import RocksDbEngine
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, bound_to, row, table

IDS = [5, 25, 2554, 25544, 270_387, 799_500_000]
_ODD_SETS = [(1, 0, "A"), (2**40, -1, None), (7, -(2**63) + 1, "É" * 90), (256, 2**63 - 1, "B"), (9, EPOCH_NS, "C")]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[CatalogueIndex]:
    opened = CatalogueIndex(RocksDbEngine(tmp_path))
    yield opened
    opened.engine.close()


def loaded(index: CatalogueIndex, *ids: int) -> CatalogueIndex:
    rows = [row(number) for number in ids]
    older = [row(n, epoch_time_ns=EPOCH_NS - day * DAY_NS, record_number=day) for n in ids for day in (1, 2)]
    index.load(bound_to(3), table(rows), [table([*older, *rows])])
    return index


def test_an_object_is_found_by_its_whole_number_only__PM5_BT1(index: CatalogueIndex) -> None:
    loaded(index, *IDS)
    assert [index.get(number) for number in IDS] == records(table([row(number) for number in IDS]))
    assert index.get(255) is None
    assert [each and each.norad_id for each in index.multi_get([25544, 1, 5])] == [25544, None, 5]


def test_ranges_of_numbers_and_epochs_are_exact_and_sorted__BT2(index: CatalogueIndex) -> None:
    loaded(index, *range(1, 2001))
    assert [found.norad_id for found in index.objects(255, 257)] == [255, 256, 257]
    since, until = EPOCH_NS + 255 * 1_000_000, EPOCH_NS + 257 * 1_000_000
    assert [found.norad_id for found in index.by_epoch(since, until)] == [255, 256, 257]
    assert list(index.by_epoch(EPOCH_NS + 1, EPOCH_NS + 2)) == []


def test_epochs_before_1970_order_before_later_ones(index: CatalogueIndex) -> None:
    rows = [row(1, epoch_time_ns=-DAY_NS), row(2, epoch_time_ns=DAY_NS), row(3, epoch_time_ns=-2 * DAY_NS)]
    index.load(bound_to(1), table(rows), [])
    assert [found.norad_id for found in index.by_epoch(-3 * DAY_NS, 3 * DAY_NS)] == [3, 1, 2]


def test_the_history_of_an_object_is_its_own_and_by_epoch(index: CatalogueIndex) -> None:
    loaded(index, *IDS)
    epochs = [found.epoch_time_ns for found in index.history(2554)]
    assert epochs == [EPOCH_NS - 2 * DAY_NS, EPOCH_NS - DAY_NS, EPOCH_NS + 2554 * 1_000_000]
    assert [f.record_number for f in index.history(2554, until_ns=EPOCH_NS - 2 * DAY_NS)] == [2]
    assert [f.record_number for f in index.history(2554, since_ns=EPOCH_NS - DAY_NS, until_ns=EPOCH_NS)] == [1]


def test_a_long_history_is_loaded_in_any_order_and_never_held_as_objects__44(
    index: CatalogueIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sda_platform.serving.index._BATCH", 200)
    chance = random.Random(44)
    past = [
        row(number, epoch_time_ns=chance.randrange(-5, 5) * DAY_NS, record_number=n, segment_sha256=f"{n % 7:064x}")
        for number in IDS
        for n in range(700)
    ]
    chance.shuffle(past)
    history = table(past)
    del past
    tracemalloc.start()
    index.load(
        bound_to(1), table([row(number) for number in IDS]), [history.slice(n, 600) for n in range(0, 4200, 600)]
    )
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert index.verify().sets == history.num_rows
    for number in IDS:
        found = [
            keys.history(number, f.epoch_time_ns, f.segment_sha256, f.record_number) for f in index.history(number)
        ]
        assert (len(found), found) == (700, sorted(found))
    assert peak_bytes < 2_000_000, "4,200 sets as objects of Python are 7 MB"


def test_an_object_is_found_by_any_part_of_its_name_and_by_launch(index: CatalogueIndex) -> None:
    rows = [row(1, object_name="ISS (ZARYA)"), row(2, object_name="MISSING"), row(3, object_name=None)]
    index.load(bound_to(1), table(rows), [])
    assert [found.norad_id for found in index.named("iss")] == [1, 2]
    assert [found.norad_id for found in index.named("(zarya)")] == [1]
    assert [found.norad_id for found in index.designated("1998-00")] == [1, 2, 3]
    assert [found.norad_id for found in index.designated("1998-002A")] == [2]


def test_absent_values_come_back_absent(index: CatalogueIndex) -> None:
    absent = dict.fromkeys(
        ("element_set_number", "bstar_per_earth_radius", "mean_motion_dot_rev_per_day2", "object_name", "originator")
    )
    index.load(bound_to(1), table([row(7, **absent)]), [])
    assert index.get(7) == records(table([row(7, **absent)]))[0]


def test_an_update_replaces_rows_and_moves_the_binding_in_one_step(index: CatalogueIndex) -> None:
    loaded(index, 1, 2, 3)
    changed = [row(2, object_name="RENAMED", epoch_time_ns=EPOCH_NS + DAY_NS), row(4)]
    binding = index.update(bound_to(4), table(changed), table(changed))
    assert (binding.version, binding.objects, binding.sets) == (4, 4, 11)
    assert index.require(4) == index.verify() == binding
    assert [found.norad_id for found in index.named("object")] == [1, 3, 4]
    assert [found.norad_id for found in index.by_epoch(EPOCH_NS, EPOCH_NS + DAY_NS)] == [1, 3, 4, 2]
    assert index.update(bound_to(5), table(changed), table(changed)).sets == 11, "a repeated update adds nothing"
    assert index.verify().version == 5


def test_an_update_during_a_search_is_no_damage(index: CatalogueIndex) -> None:
    loaded(index, 1, 2, 3)
    by_name, by_epoch = index.named("object"), index.by_epoch(EPOCH_NS, EPOCH_NS + DAY_NS)
    assert next(by_name).norad_id == next(by_epoch).norad_id == 1
    changed = [row(2, object_name="RENAMED", epoch_time_ns=EPOCH_NS + DAY_NS // 2)]
    index.update(bound_to(4), table(changed), table(changed))
    expected = records(table([*changed, row(3)]))
    assert list(by_name) == list(by_epoch) == expected


def test_a_reader_refuses_an_index_of_another_version(index: CatalogueIndex) -> None:
    with pytest.raises(IndexMismatch, match="holds nothing, version 3"):
        index.require(3)
    loaded(index, 1)
    assert index.require(3).version == 3
    with pytest.raises(IndexMismatch, match="holds version 3, version 4"):
        index.require(4)


def test_a_value_under_another_key_is_refused__PM2(index: CatalogueIndex) -> None:
    loaded(index, 1, 2)
    index.engine.write([(keys.current(1), index.engine.get(keys.current(2)) or b"")])
    with pytest.raises(DamagedIndex, match="rebuild"):
        index.get(1)


def test_keys_and_values_of_many_sets_are_those_of_one() -> None:
    rows = [
        row(number, epoch_time_ns=epoch_ns, object_name=name, record_number=2**32 - 1)
        for number, epoch_ns, name in _ODD_SETS
    ]
    places = record.places(table(rows))
    for held in (False, True):
        found = keys.listed(keys.histories(places, np.full(len(rows), held)))
        for key, each, value in zip(found, records(table(rows)), record.encode(table(rows)), strict=True):
            place = each.norad_id, each.epoch_time_ns, each.segment_sha256, each.record_number
            assert key == keys.history(*place, is_held=held)
            assert keys.other_place(key) == keys.history(*place, is_held=not held)
            assert record.decode(key, value) == record.decode(keys.current(each.norad_id), value) == each
            begin_ns, end_ns = keys.span_of(keys.period(*place[:2]))
            assert begin_ns <= each.epoch_time_ns <= end_ns
            with pytest.raises(DamagedIndex, match="rebuild"):
                record.decode(key, value[: keys.PLACE.size + 90])
    with pytest.raises(ValueError, match="object_name: a text is longer"):
        record.encode(table([row(1, object_name="x" * 70_000)]))


def test_flipped_bits_on_disk_give_an_error_or_the_right_answer__PM3_PM28(tmp_path: Path) -> None:
    """In any file of sorted pairs: what a read meets is refused, and examination finds what no read meets."""
    ids = range(1, 501)
    expected = records(table([row(number) for number in ids]))
    history = table([row(n, epoch_time_ns=day * 30 * DAY_NS, record_number=day) for n in ids for day in range(8)])
    store = IndexStore(tmp_path / "sound")
    store.rebuild(bound_to(1), table([row(number) for number in ids]), [history]).engine.close()
    past = {(found.norad_id, found.epoch_time_ns): found for found in records(history)}
    chance = random.Random(6)
    names = sorted(file.name for file in (tmp_path / "sound").glob("rocksdb/*/*.sst"))
    refused = 0
    for number in range(60):
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "sound", copy)
        (file,) = copy.glob(f"rocksdb/*/{names[number % len(names)]}")
        data = bytearray(file.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
        try:
            index = IndexStore(copy).open()
        except DamagedIndex:
            refused += 1
            continue
        assert index is not None
        is_refused = False
        for norad_id in (*ids[:3], *ids[::50]):
            try:
                assert index.get(norad_id) == expected[norad_id - 1]
                assert list(index.history(norad_id)) == [past[norad_id, day * 30 * DAY_NS] for day in range(8)]
            except DamagedIndex as error:
                assert copy.name in str(error), "it names the place"
                is_refused = True
        try:
            assert list(index.objects()) == expected
            for _ in range(5):
                index.engine.examine()
            assert index.verify().sets == len(past)
            assert not is_refused
        except DamagedIndex:
            is_refused = True
        refused += is_refused
        index.engine.close()
        shutil.rmtree(copy)
    assert refused >= 40, "most bits belong to pairs or to what leads to them"


def test_a_long_history_equals_a_plain_list__44(tmp_path: Path) -> None:
    """Epochs over years and before 1970, held and released sets, late old sets, loaded in any order, and updated."""
    for seed in range(6):
        chance = random.Random(seed)
        count = chance.randrange(1, 400)
        years_ns = chance.choice([DAY_NS, 40 * DAY_NS, 3000 * DAY_NS])
        sets = [
            row(
                chance.choice(IDS),
                epoch_time_ns=chance.randrange(-years_ns, years_ns),
                record_number=n,
                segment_sha256=f"{chance.randrange(3):02x}" * 32,
            )
            for n in range(count)
        ]
        held = [chance.random() < 0.2 for _ in sets]
        later = chance.randrange(count + 1)
        whole, loaded_ = IndexStore(tmp_path / f"{seed}-whole"), IndexStore(tmp_path / f"{seed}-updated")
        objects = table([row(number) for number in IDS])
        marked = table(sets).append_column(IS_HELD, [held])
        rebuilt = whole.rebuild(bound_to(2), objects, [marked.slice(n, 50) for n in range(0, count, 50)])
        # What changes is held first, or not, and moves with the update.
        before = [not each if chance.random() < 0.5 else each for each in held]
        updated = loaded_.rebuild(bound_to(1), objects, [table(sets).append_column(IS_HELD, [before]).slice(later)])
        updated.update(bound_to(2), objects.slice(0, 0), marked)
        assert updated.verify() == rebuilt.verify()
        assert [*updated.engine.scan(b"", b"\xff")] == [*rebuilt.engine.scan(b"", b"\xff")]
        oracle = sorted(
            (each for each, is_held in zip(records(table(sets)), held, strict=True) if not is_held),
            key=lambda each: (each.epoch_time_ns, each.segment_sha256, each.record_number),
        )
        for _ in range(40):
            norad_id, (since, until) = chance.choice(IDS), sorted(chance.choices(range(-years_ns, years_ns), k=2))
            wanted = [x for x in oracle if x.norad_id == norad_id and since <= x.epoch_time_ns <= until]
            assert list(rebuilt.history(norad_id, since, until)) == wanted
            assert list(updated.history(norad_id, since, until, descending=True)) == wanted[::-1]
            in_force = next(iter(rebuilt.history(norad_id, until_ns=until, descending=True)), None)
            past = [x for x in oracle if x.norad_id == norad_id and x.epoch_time_ns <= until]
            assert in_force == (past[-1] if past else None)
        rebuilt.engine.close()
        updated.engine.close()


def test_an_open_state_outlives_its_generation__44(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    (tmp_path / "lmdb").mkdir()
    rows = table([row(number) for number in range(1, 3001)])
    first = store.rebuild(bound_to(1), rows, [rows])
    changed = [row(2, object_name="RENAMED")]
    with first.at_one_state() as state:
        first.update(bound_to(2), table(changed), table(changed))
        second = store.rebuild(bound_to(3), table(changed), [])
        assert [each.name for each in (tmp_path / "rocksdb").glob("generation-*")] == ["generation-000002"]
        assert not (tmp_path / "lmdb").exists(), "where earlier releases kept the index"
        assert list(state.objects()) == records(rows)
        assert [found.object_name for found in state.history(2)] == ["OBJECT 2"]
        assert [found.object_name for found in first.history(2)] == ["RENAMED"]
        assert state.binding() != first.binding()
        with ThreadPoolExecutor(2) as pool:
            assert pool.submit(lambda: list(state.objects())).result() == records(rows), "a kept view changes thread"
    first.engine.close()
    with pytest.raises(AlreadyServed, match="open in a process"):
        store.open()
    second.engine.close()


def test_a_lost_search_key_is_found_by_verification(index: CatalogueIndex) -> None:
    loaded(index, 1, 2)
    index.engine.write([], [keys.text(keys.NAME, "OBJECT 2", 2)])
    with pytest.raises(DamagedIndex, match="object 2 cannot be found"):
        index.verify()


def test_a_lost_object_is_found_by_verification(index: CatalogueIndex) -> None:
    loaded(index, 1, 2)
    index.engine.write([], [keys.current(2)])
    with pytest.raises(DamagedIndex, match="1 objects and 6 sets, 2 and 6"):
        index.verify()


def test_a_crash_while_loading_leaves_the_old_index_serving__WL4_WL16(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    store.rebuild(bound_to(1), table([row(1)]), []).engine.close()
    points = 0
    for crash in crashes():
        with crash:
            IndexStore(tmp_path).rebuild(bound_to(2), table([row(1), row(2)]), []).engine.close()
        points += 1
        index = IndexStore(tmp_path).open()
        assert index is not None
        binding = index.verify()
        assert [found.norad_id for found in index.objects()] == [1, 2][: binding.version]
        index.engine.close()
    assert points == 3, "loaded, switched, and without a crash"
    assert binding.version == 2
    assert len(list(tmp_path.glob("rocksdb/generation-*"))) == 1


def test_a_store_without_an_index_has_none_and_one_without_its_files_says_so(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    assert store.open() is None
    (tmp_path / "rocksdb").mkdir()
    (tmp_path / "rocksdb" / "CURRENT").write_text("generation-000007\n")
    with pytest.raises(DamagedIndex, match=r"generation-000007.*rebuild"):
        store.open()
