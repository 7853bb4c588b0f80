"""RocksDB as an engine: a log-structured merge tree, for bursts of single writes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    ChecksumType,
    CompactOptions,
    DbClosedError,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    Snapshot,
    SstFileWriter,
    WriteBatch,
    WriteOptions,
)

from sda_platform.serving.engine import Pair, Reader, ascending_only
from sda_platform.serving.errors import DamagedIndex

CACHE_BYTES = 32 * 2**20
"""Bound of the block cache, filters and index blocks included."""
WRITE_BUFFER_BYTES = 4 * 2**20
"""Size at which a memory table is frozen and flushed."""
LEVEL_ZERO_FILES = 4
"""Files of level 0 from which they are compacted into level 1."""
_BLOOM_BITS_PER_KEY = 10
_BLOCK_BYTES = 4096
_TICKERS = {
    "bloom_useful": "rocksdb.bloom.filter.useful",
    "bloom_full_positive": "rocksdb.bloom.filter.full.positive",
    "cache_hits": "rocksdb.block.cache.hit",
    "cache_misses": "rocksdb.block.cache.miss",
}


class RocksDbEngine:
    """See `serving.engine.Engine`. Blocks carry checksums, which every read verifies."""

    def __init__(self, directory: Path, *, write_buffer_bytes: int = WRITE_BUFFER_BYTES) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._options = _options(write_buffer_bytes)
        try:
            self._map = Rdict(str(directory), self._options, access_type=AccessType.read_write())
        except Exception as error:  # the binding raises its own and plain exceptions
            raise DamagedIndex(f"{directory}: RocksDB cannot open the index ({error}); rebuild it") from error
        self._durable = WriteOptions()
        self._durable.sync = True

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        with _reading(self._directory):
            yield _Snapshot(self._map.snapshot())

    def get(self, key: bytes) -> bytes | None:
        with _reading(self._directory):
            value: bytes | None = self._map.get(key)
        return value

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with _reading(self._directory):
            values: list[bytes | None] = list(self._map.get(list(keys)) or ())
        return values

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        with self.snapshot() as state:
            yield from state.scan(first, last, descending=descending)

    def write(self, puts: Iterable[Pair], deletes: Iterable[bytes] = ()) -> None:
        batch = WriteBatch(raw_mode=True)
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        self._map.write(batch, self._durable)

    def bulk_load(self, ascending: Iterable[Pair]) -> None:
        """One sorted file, written outside the map and then linked into it."""
        file = self._directory / "bulk-load.sst"
        writer = SstFileWriter(self._options)
        writer.open(str(file))
        is_empty = True
        for key, value in ascending_only(ascending):
            writer[key] = value
            is_empty = False
        if not is_empty:
            writer.finish()
            self._map.ingest_external_file([str(file)])
        file.unlink(missing_ok=True)
        self._map.flush()

    def examine(self) -> None:
        """Nothing to do: each block has a checksum, which is compared when it is read."""

    def compact(self) -> None:
        """Merge every file into the bottom level: one version of each key, no tombstone."""
        self._map.flush()
        choice = CompactOptions()
        choice.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        self._map.compact_range(None, None, choice)

    def statistics(self) -> dict[str, int]:
        files = self._map.live_files()
        text = self._options.get_statistics() or ""
        tickers = {name: _ticker(text, label) for name, label in _TICKERS.items()}
        return {
            "entries": int(self._map.property_int_value("rocksdb.estimate-num-keys") or 0),
            "bytes": sum(int(file["size"]) for file in files),
            "files": len(files),
            "level_zero_files": sum(file["level"] == 0 for file in files),
            "block_cache_bytes": int(self._map.property_int_value("rocksdb.block-cache-usage") or 0),
            **tickers,
        }

    def close(self) -> None:
        with suppress(DbClosedError):
            self._map.close()


class _Snapshot:
    """One state of the map."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes = self._snapshot[key]
        except KeyError:
            return None
        return value

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        reading = ReadOptions()
        reading.set_verify_checksums(True)
        cursor = self._snapshot.iter(reading)
        cursor.seek_for_prev(last) if descending else cursor.seek(first)
        while cursor.valid() and first <= (key := cursor.key()) <= last:
            yield key, cursor.value()
            cursor.prev() if descending else cursor.next()
        cursor.status()


@contextmanager
def _reading(directory: Path) -> Iterator[None]:
    """Raise DamagedIndex for what RocksDB reports as corruption."""
    try:
        yield
    except Exception as error:
        if "Corruption" in str(error):
            raise DamagedIndex(f"{directory}: {error}; rebuild the index") from error
        raise


def _options(write_buffer_bytes: int) -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_size(_BLOCK_BYTES)
    blocks.set_block_cache(Cache(CACHE_BYTES))
    blocks.set_bloom_filter(_BLOOM_BITS_PER_KEY, block_based=False)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_checksum_type(ChecksumType.crc32c())
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_level_zero_file_num_compaction_trigger(LEVEL_ZERO_FILES)
    options.set_compression_type(DBCompressionType.none())
    options.set_paranoid_checks(True)
    options.set_use_fsync(True)
    options.set_keep_log_file_num(2)
    options.enable_statistics()
    return options


def _ticker(text: str, label: str) -> int:
    found = re.search(rf"^{re.escape(label)} COUNT : (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0
