"""One contract for the engine of the serving index and for those that it was compared with."""

import random
import shutil
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.serving.engine import Engine
from sda_platform.serving.errors import DamagedIndex
from sda_platform.serving.rocksdb_engine import CACHE_BYTES, RocksDbEngine
from sda_platform_tests.support.lmdb_engine import LmdbEngine
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.serving_engines import ENGINES


def key(number: int) -> bytes:
    return struct.pack(">I", number)


def value(number: int) -> bytes:
    return struct.pack("<I", number) * 20


# The one of the product; the others keep the contract apart from one implementation.
CHOSEN = sampled(ENGINES, "rocksdb", "sqlite")


@pytest.fixture(params=CHOSEN)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(name: str, tmp_path: Path) -> Iterator[Engine]:
    opened = ENGINES[name](tmp_path / name)
    yield opened
    opened.close()


def numbers(pairs: Iterator[tuple[bytes, bytes]]) -> list[int]:
    return [struct.unpack(">I", found)[0] for found, _ in pairs]


def test_each_of_ten_thousand_random_keys_returns_the_value_stored_under_it__BT1_LS3(engine: Engine) -> None:
    chosen = random.Random(1).sample(range(1_000_000), 11_000)
    stored, absent = chosen[:10_000], chosen[10_000:]
    for start in range(0, len(stored), 1000):
        engine.write((key(n), value(n)) for n in stored[start : start + 1000])
    assert [engine.get(key(n)) for n in stored] == [value(n) for n in stored]
    assert engine.multi_get([key(n) for n in absent]) == [None] * len(absent)


def test_a_range_is_exact_ascending_and_includes_both_ends__BT2_LS7(engine: Engine) -> None:
    engine.bulk_load([((key(n), value(n)) for n in range(1, 10_001))])
    assert numbers(engine.scan(key(5000), key(5100))) == list(range(5000, 5101))
    assert numbers(engine.scan(key(255), key(257))) == [255, 256, 257], "numbers order as bytes"
    assert numbers(engine.scan(key(10_001), key(20_000))) == []


def test_a_range_reads_one_state_though_writes_follow__BT18(engine: Engine) -> None:
    engine.bulk_load([((key(n), value(n)) for n in range(100))])
    scan = engine.scan(key(0), key(99))
    first = [next(scan)[0]]
    engine.write([(key(n), b"new") for n in range(100)], [key(50)])
    assert first + [found for found, stored in scan if stored != b"new"] == [key(n) for n in range(100)]


def test_a_bulk_load_of_keys_out_of_order_is_refused__LS11(engine: Engine) -> None:
    with pytest.raises(ValueError, match="ascending"):
        engine.bulk_load([[(key(2), b""), (key(1), b"")]])
    with pytest.raises(ValueError, match="ascending"):
        engine.bulk_load([[(key(3), b""), (key(3), b"")]])


def test_deleted_keys_are_absent_and_all_others_unaffected__BT5_LS5(engine: Engine) -> None:
    engine.bulk_load([((key(n), value(n)) for n in range(5000))])
    deleted = set(random.Random(2).sample(range(5000), 1000))
    engine.write([], [key(n) for n in deleted])
    assert {n for n in range(5000) if engine.get(key(n)) is None} == deleted
    assert numbers(engine.scan(key(0), key(5000))) == [n for n in range(5000) if n not in deleted]
    engine.write([], [key(n) for n in deleted])
    assert len(list(engine.scan(key(0), key(5000)))) == 4000, "deleting twice changes nothing"


def test_the_newest_value_or_deletion_of_a_key_decides__LS8_LS9_LS12(engine: Engine) -> None:
    engine.bulk_load([((key(n), b"first") for n in range(10))])
    engine.write([(key(n), b"second") for n in range(5)])
    engine.write([(key(0), b"third")], [key(1)])
    expected = [b"third", None, *[b"second"] * 3, *[b"first"] * 5]
    assert engine.multi_get([key(n) for n in range(10)]) == expected
    engine.compact()
    assert engine.multi_get([key(n) for n in range(10)]) == expected
    engine.write([(key(1), b"again")])
    assert engine.get(key(1)) == b"again"


def test_compaction_keeps_every_live_key_and_reclaims_old_versions__LS6_LS24(tmp_path: Path) -> None:
    engine = RocksDbEngine(tmp_path, write_buffer_bytes=64 * 1024)
    for version in range(4):
        engine.write((key(n), value(n + version)) for n in range(2000))
    engine.write([], [key(n) for n in range(0, 2000, 2)])
    engine.compact()
    after = engine.statistics()
    assert after["entries"] == 1000
    assert after["level_zero_files"] == 0
    assert after["bytes"] < 1.5 * 1000 * 84
    assert [engine.get(key(n)) for n in range(2000)] == [value(n + 3) if n % 2 else None for n in range(2000)]
    engine.close()


def test_bloom_filters_answer_more_than_95_percent_of_absent_probes__LS4(tmp_path: Path) -> None:
    engine = RocksDbEngine(tmp_path)
    engine.bulk_load([((key(2 * n), value(n)) for n in range(20_000))])
    absent = [key(2 * n + 1) for n in random.Random(3).sample(range(19_000), 1000)]
    before = engine.statistics()
    assert engine.multi_get(absent) == [None] * 1000
    after = engine.statistics()
    skipped = after["bloom_useful"] - before["bloom_useful"]
    assert skipped > 950, f"{skipped} of 1000 probes inside the range of keys were skipped"
    engine.close()


def test_a_bulk_load_of_100000_keys_fills_more_than_95_percent_of_the_leaves__BT3_BT4(tmp_path: Path) -> None:
    loaded, inserted = LmdbEngine(tmp_path / "loaded"), LmdbEngine(tmp_path / "inserted")
    pairs = [(key(n), struct.pack("<IH", n, n % 7)) for n in range(100_000)]
    loaded.bulk_load([pairs])
    shuffled = random.Random(4).sample(pairs, len(pairs))
    for start in range(0, len(shuffled), 10_000):
        inserted.write(shuffled[start : start + 10_000])
    facts, other = loaded.statistics(), inserted.statistics()
    used = 100_000 * (8 + 4 + 6 + 2)  # node header, key, value, pointer to the node
    fill = used / (facts["leaf_pages"] * (facts["page_bytes"] - 16))
    assert fill > 0.95, f"{facts['leaf_pages']} leaves are filled to {fill:.1%}"
    assert facts["depth"] == 3
    assert facts["leaf_pages"] < other["leaf_pages"]
    assert list(inserted.scan(key(0), key(100_000))) == pairs
    loaded.close()
    inserted.close()


def test_the_hot_set_is_read_from_the_cache__PM4(tmp_path: Path) -> None:
    engine = RocksDbEngine(tmp_path)
    engine.bulk_load([((key(n), value(n)) for n in range(20_000))])
    hot = [key(n) for n in random.Random(5).sample(range(20_000), 200)]
    for _ in range(50):
        engine.multi_get(hot)
    facts = engine.statistics()
    rate = facts["cache_hits"] / (facts["cache_hits"] + facts["cache_misses"])
    assert rate > 0.9, f"{facts['cache_hits']} hits, {facts['cache_misses']} misses"
    engine.close()


def test_memory_stays_bounded_whatever_is_read__PM20(tmp_path: Path, name: str) -> None:
    engine = ENGINES[name](tmp_path)
    engine.bulk_load([((key(n), bytes(400)) for n in range(100_000))])
    tracemalloc.start()
    assert sum(1 for _ in engine.scan(key(0), key(100_000))) == 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20, f"a scan of 40 MB held {peak} bytes"
    assert engine.statistics().get("block_cache_bytes", 0) <= 1.1 * CACHE_BYTES
    engine.close()


def test_what_was_written_is_there_after_opening_again__WL2(tmp_path: Path, name: str) -> None:
    engine = ENGINES[name](tmp_path)
    engine.write((key(n), value(n)) for n in range(5000))
    engine.close()
    engine.close()
    again = ENGINES[name](tmp_path)
    assert [stored for _, stored in again.scan(key(0), key(5000))] == [value(n) for n in range(5000)]
    again.close()


def test_a_flipped_bit_in_a_block_is_an_error_and_no_answer__PM2_PM3(tmp_path: Path) -> None:
    engine = RocksDbEngine(tmp_path)
    engine.bulk_load([((key(n), value(n)) for n in range(2000))])
    engine.close()
    (file,) = tmp_path.glob("*.sst")
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)
    again = RocksDbEngine(tmp_path)
    with pytest.raises(DamagedIndex, match="rebuild"):
        again.get(key(0))
    with pytest.raises(DamagedIndex, match="rebuild"):
        list(again.scan(key(0), key(2000)))
    again.close()


def test_a_bit_flipped_anywhere_in_rocksdbs_files_gives_no_wrong_answer__PM2_PM3(tmp_path: Path) -> None:
    """An error, or every answer as it was written; the log of the map's work is not read."""
    engine = RocksDbEngine(tmp_path / "sound", write_buffer_bytes=64 * 1024)
    engine.bulk_load([((key(n), value(n)) for n in range(3000))])
    engine.write([(key(n), value(n + 1)) for n in range(100)], [key(2999)])
    engine.compact()
    expected = list(engine.scan(b"", b"\xff"))
    engine.close()
    chance = random.Random(8)
    files = [file.name for file in (tmp_path / "sound").iterdir() if not file.name.startswith(("LOG", "LOCK"))]
    refused = 0
    for number in range(60):
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "sound", copy)
        file = copy / files[number % len(files)]
        data = bytearray(file.read_bytes() or b"\0")
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
        try:
            again = RocksDbEngine(copy)
            try:
                assert list(again.scan(b"", b"\xff")) == expected, file.name
                assert again.multi_get([found for found, _ in expected]) == [stored for _, stored in expected]
                assert again.get(key(2999)) is None
            finally:
                again.close()
        except DamagedIndex:
            refused += 1
        shutil.rmtree(copy)
    assert refused >= 10


_COMPACTING = """
import struct, sys
from pathlib import Path
from sda_platform.serving.rocksdb_engine import RocksDbEngine
engine = RocksDbEngine(Path(sys.argv[1]), write_buffer_bytes=64 * 1024)
for version in range(10**6):
    engine.write((struct.pack(">I", n), struct.pack("<I", version) * 20) for n in range(3000))
    print(version, flush=True)
    engine.compact()
"""


def test_a_process_killed_while_it_compacts_leaves_every_acknowledged_key__LS6_WL2(tmp_path: Path) -> None:
    """Killed at once after a write was acknowledged: the compaction that follows is at work."""
    for rounds in (1, 4, 9):
        program = [sys.executable, "-c", _COMPACTING, str(tmp_path)]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            written = [int(next(process.stdout)) for _ in range(rounds)][-1]
            process.kill()
            written = max([written, *map(int, process.stdout.read().split())])
        engine = RocksDbEngine(tmp_path)
        stored = {found for _, found in engine.scan(b"", b"\xff")}
        assert numbers(engine.scan(b"", b"\xff")) == list(range(3000))
        assert len(stored) == 1, "a write is there whole or not at all"
        assert written <= struct.unpack_from("<I", stored.pop())[0] <= written + 1
        assert engine.statistics()["files"] > 0
        engine.close()


def test_a_file_that_is_no_index_is_refused__PM12_PM29(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not an index at all" * 1000)
    with pytest.raises(DamagedIndex, match="rebuild"):
        LmdbEngine(tmp_path)


_OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "batch", "compact"]), st.integers(0, 30), st.binary(max_size=40)),
    max_size=40,
)


@pytest.mark.parametrize("engine_name", CHOSEN)
@given(operations=_OPERATIONS)
def test_an_engine_behaves_as_a_sorted_map__BT1_LS9(
    operations: list[tuple[str, int, bytes]], engine_name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    engine = ENGINES[engine_name](tmp_path_factory.mktemp("engine"))
    model: dict[bytes, bytes] = {}
    for kind, number, content in operations:
        if kind == "put":
            engine.write([(key(number), content)])
            model[key(number)] = content
        elif kind == "delete":
            engine.write([], [key(number)])
            model.pop(key(number), None)
        elif kind == "batch":
            engine.write([(key(n), content) for n in range(number)], [key(number)])
            model.pop(key(number), None)
            model.update({key(n): content for n in range(number)})
        else:
            engine.compact()
    assert list(engine.scan(b"", b"\xff" * 8)) == sorted(model.items())
    assert engine.multi_get([key(n) for n in range(31)]) == [model.get(key(n)) for n in range(31)]
    engine.close()
