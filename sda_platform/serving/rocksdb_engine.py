"""RocksDB as the engine of the index: a log-structured merge tree whose blocks carry checksums and are compressed."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    ChecksumType,
    CompactOptions,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    SstFileWriter,
    WriteBatch,
    WriteOptions,
)

from sda_platform.serving.engine import Engine, Pair, Reader, ascending_only
from sda_platform.serving.errors import AlreadyServed, DamagedIndex, ServingError

CACHE_BYTES: Final = 128 * 2**20
"""Bound of the block cache, filters and index blocks included."""
WRITE_BUFFER_BYTES: Final = 4 * 2**20
"""Size at which a memory table is frozen and flushed."""
LEVEL_ZERO_FILES: Final = 4
"""Files of level 0 from which they are compacted into level 1."""
EXAMINED: Final = 100
"""So many pairs are examined at a time, so that no lookup waits long for it."""
_BLOOM_BITS_PER_KEY: Final = 10
_BLOCK_BYTES: Final = 16 * 2**10
_FILE_BYTES: Final = 64 * 2**20
# What the blocks of a file share, such as hashes of segments: it makes them a sixth smaller.
_DICTIONARY_BYTES: Final = 64 * 2**10
_ZLIB_WINDOW, _ZSTD_LEVEL, _STRATEGY = -14, 3, 0
_WRITTEN_AT_ONCE: Final = 5_000
_FIRST_SCANNED: Final = 8
_MOST_SCANNED: Final = 1_024
_TICKERS: Final = {
    "bloom_useful": "rocksdb.bloom.filter.useful",
    "bloom_full_positive": "rocksdb.bloom.filter.full.positive",
    "cache_hits": "rocksdb.block.cache.hit",
    "cache_misses": "rocksdb.block.cache.miss",
}


class RocksDbEngine(Engine):
    """See `serving.engine.Engine`. Blocks carry checksums, which every read verifies.

    All files stay open, so that a state is read to its end after its directory was removed. After a damaged log the map
    is as it was before the damage, whole: who needs all batches binds them to a version.
    """

    def __init__(self, directory: Path, *, write_buffer_bytes: int = WRITE_BUFFER_BYTES) -> None:
        """Raises AlreadyServed where another process, or this one, has the map open; DamagedIndex."""
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._options = _options(write_buffer_bytes)
        try:
            self._map = Rdict(str(directory), self._options, access_type=AccessType.read_write())
        except Exception as error:  # the binding raises its own and plain exceptions
            if "/LOCK: " in str(error):
                raise AlreadyServed(f"{directory}: the index is open in a process; end that first ({error})") from error
            raise DamagedIndex(f"{directory}: RocksDB cannot open the index ({error}); rebuild it") from error
        self._durable = WriteOptions()
        self._durable.sync = True
        self._examined = b""
        self._is_open = True

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        with _reading(self._directory):
            state = self._state()
            try:
                yield state
            finally:
                state.close()

    def get(self, key: bytes) -> bytes | None:
        with _reading(self._directory):
            value: bytes | None = self._map.get(key)
        return value

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with _reading(self._directory):
            values: list[bytes | None] = list(self._map.get(list(keys)) or ())
        return values

    def write(self, puts: Iterable[Pair], deletes: Iterable[bytes] = ()) -> None:
        batch = WriteBatch(raw_mode=True)
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        with _reading(self._directory), self._writing():
            self._map.write(batch, self._durable)

    def bulk_load(self, runs: Iterable[Iterable[Pair]]) -> None:
        """Sorted files, written outside the map and then linked into it: where runs do not overlap, for good."""
        moved = IngestExternalFileOptions()
        moved.set_move_files(True)
        with self._writing():
            for run in runs:
                if files := list(self._files_of(run)):
                    self._map.ingest_external_file(files, moved)

    def examine(self) -> None:
        with _reading(self._directory):
            self._examined = self._state(is_cached=False).passed_over(self._examined, EXAMINED)

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
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._map.close()
        except Exception:
            # It writes what is in memory; of a generation that was removed nothing is needed.
            if self._directory.exists():
                raise

    def _state(self, *, is_cached: bool = True) -> "_State":
        reading = ReadOptions()
        reading.set_verify_checksums(True)
        if not is_cached:
            reading.fill_cache(False)  # type: ignore[call-arg]  # the stub lacks the argument
        return _State(self._map.iter(reading))

    def _files_of(self, run: Iterable[Pair]) -> Iterator[str]:
        """Write a run to files of some 64 MiB; yields their names."""
        pairs, number = ascending_only(run), 0
        while some := list(islice(pairs, _WRITTEN_AT_ONCE)):
            file = self._directory / f"bulk-load-{number}.sst"
            writer = SstFileWriter(self._options)
            writer.open(str(file))
            while some:
                for key, value in some:
                    writer[key] = value
                some = list(islice(pairs, _WRITTEN_AT_ONCE)) if writer.file_size() < _FILE_BYTES else []
            writer.finish()
            number += 1
            yield str(file)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if "IO error" in str(error):
                raise ServingError(f"{self._directory}: the index cannot be written ({error})") from error
            raise


class _State:
    """One state of the map: a cursor, which sees what was there when it was opened; for one thread at a time.

    A snapshot of the binding would not do: its cursors see later writes.
    """

    def __init__(self, cursor: RdictIter) -> None:
        self._cursor = cursor

    def close(self) -> None:
        """Release the state: the map stays open as long as a cursor does."""
        del self._cursor

    def get(self, key: bytes) -> bytes | None:
        self._cursor.seek(key)
        if not self._cursor.valid():
            self._cursor.status()
            return None
        value: bytes | None = self._cursor.value() if self._cursor.key() == key else None
        return value

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def passed_over(self, first: bytes, count: int) -> bytes:
        """Return the key that is ``count`` pairs after ``first``, empty at the end; all blocks between were read."""
        cursor = self._cursor
        cursor.seek(first)
        while count and cursor.valid():
            cursor.next()
            count -= 1
        if cursor.valid():
            return bytes(cursor.key())
        cursor.status()
        return b""

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        # Scans share the cursor: each takes some pairs, more each time, and seeks anew.
        start, count, is_after_start = (last if descending else first), _FIRST_SCANNED, False
        while True:
            cursor = self._cursor
            cursor.seek_for_prev(start) if descending else cursor.seek(start)
            if is_after_start and cursor.valid() and cursor.key() == start:
                cursor.prev() if descending else cursor.next()
            found: list[Pair] = []
            while len(found) < count and cursor.valid() and first <= (key := cursor.key()) <= last:
                found.append((key, cursor.value()))
                cursor.prev() if descending else cursor.next()
            if not cursor.valid():
                cursor.status()
            del cursor
            yield from found
            if len(found) < count:
                return
            start, is_after_start, count = found[-1][0], True, min(2 * count, _MOST_SCANNED)


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
    # Index and filter of a file are read by parts: a search in an old period needs one of each.
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_checksum_type(ChecksumType.crc32c())
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_target_file_size_base(_FILE_BYTES)
    options.set_level_zero_file_num_compaction_trigger(LEVEL_ZERO_FILES)
    options.set_compression_type(DBCompressionType.zstd())
    options.set_compression_options(_ZLIB_WINDOW, _ZSTD_LEVEL, _STRATEGY, _DICTIONARY_BYTES)
    options.set_max_open_files(-1)
    options.set_skip_stats_update_on_db_open(True)
    options.set_paranoid_checks(True)
    options.set_use_fsync(True)
    options.set_keep_log_file_num(2)
    options.enable_statistics()
    return options


def _ticker(text: str, label: str) -> int:
    found = re.search(rf"^{re.escape(label)} COUNT : (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0
