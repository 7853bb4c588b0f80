"""The serving index: every way to find an object, bound to one version, and never a wrong answer."""

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.serving import keys, record
from sda_platform.serving.errors import DamagedIndex, IndexMismatch
from sda_platform.serving.file_checksum import FileChecksum
from sda_platform.serving.index import CatalogueIndex, records
from sda_platform.serving.lmdb_engine import LmdbEngine
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, bound_to, row, table

IDS = [5, 25, 2554, 25544, 270_387, 799_500_000]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[CatalogueIndex]:
    opened = CatalogueIndex(LmdbEngine(tmp_path))
    yield opened
    opened.engine.close()


def loaded(index: CatalogueIndex, *ids: int) -> CatalogueIndex:
    rows = [row(number) for number in ids]
    older = [row(n, epoch_time_ns=EPOCH_NS - day * DAY_NS, record_number=day) for n in ids for day in (1, 2)]
    index.load(bound_to(3), table(rows), table([*older, *rows]))
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
    index.load(bound_to(1), table(rows), table([]))
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
    index.load(bound_to(1), table([row(number) for number in IDS]), history)
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
    index.load(bound_to(1), table(rows), table([]))
    assert [found.norad_id for found in index.named("iss")] == [1, 2]
    assert [found.norad_id for found in index.named("(zarya)")] == [1]
    assert [found.norad_id for found in index.designated("1998-00")] == [1, 2, 3]
    assert [found.norad_id for found in index.designated("1998-002A")] == [2]


def test_absent_values_come_back_absent(index: CatalogueIndex) -> None:
    absent = dict.fromkeys(
        ("element_set_number", "bstar_per_earth_radius", "mean_motion_dot_rev_per_day2", "object_name", "originator")
    )
    index.load(bound_to(1), table([row(7, **absent)]), table([]))
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


def test_any_flipped_bit_of_a_value_is_refused__PM2() -> None:
    (stored,) = records(table([row(25544)]))
    key = keys.current(25544)
    value = record.encode(key, stored)
    assert record.decode(key, value) == stored
    for bit in range(8 * len(value)):
        damaged = bytearray(value)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedIndex):
            record.decode(key, bytes(damaged))
    for length in range(len(value)):
        with pytest.raises(DamagedIndex):
            record.decode(key, value[:length])


def test_flipped_bits_on_disk_give_an_error_or_the_right_answer__PM3_PM28(tmp_path: Path) -> None:
    """At the next start the file's checksum finds it. In a running index the checksums of the values do."""
    ids = range(1, 501)
    expected = records(table([row(number) for number in ids]))
    store = IndexStore(tmp_path)
    store.rebuild(bound_to(1), table([row(number) for number in ids]), table([])).engine.close()
    (file,) = tmp_path.glob("lmdb/*/data.mdb")
    sound, refused, found = file.read_bytes(), 0, 0
    chance = random.Random(6)
    places = [sound.index(f"OBJECT {number}".encode()) for number in chance.sample(ids, 40)]
    for place in places:
        damaged = bytearray(sound)
        damaged[place - chance.randrange(100)] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        with pytest.raises(DamagedIndex):
            store.open()
        FileChecksum(file).record()
        index = store.open()
        assert index is not None
        try:
            index.verify()
            assert list(index.objects()) == expected, "the bit is one that pads a value to an even length"
        except DamagedIndex:
            found += 1
        try:
            assert [index.get(number) for number in ids] == expected
        except DamagedIndex:
            refused += 1
        index.engine.close()
    assert found >= 38, "the verification finds every bit that is not padding"
    assert refused >= 35, "most of the bits belong to a value, some to a search key"


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
    store.rebuild(bound_to(1), table([row(1)]), table([])).engine.close()
    points = 0
    for crash in crashes():
        with crash:
            IndexStore(tmp_path).rebuild(bound_to(2), table([row(1), row(2)]), table([])).engine.close()
        points += 1
        index = IndexStore(tmp_path).open()
        assert index is not None
        binding = index.verify()
        assert [found.norad_id for found in index.objects()] == [1, 2][: binding.version]
        index.engine.close()
    assert points == 3, "loaded, switched, and without a crash"
    assert binding.version == 2
    assert len(list(tmp_path.glob("lmdb/generation-*"))) == 1


def test_a_store_without_an_index_has_none_and_one_without_its_files_says_so(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    assert store.open() is None
    (tmp_path / "lmdb").mkdir()
    (tmp_path / "lmdb" / "CURRENT").write_text("generation-000007\n")
    with pytest.raises(DamagedIndex, match=r"generation-000007.*rebuild"):
        store.open()
