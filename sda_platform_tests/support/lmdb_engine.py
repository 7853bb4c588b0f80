"""LMDB as an engine: a memory-mapped, copy-on-write B+ tree with one writer and readers that take no lock."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import lmdb

from sda_platform.serving.engine import Engine, Pair, Reader, ascending_only
from sda_platform.serving.errors import DamagedIndex, ServingError

# Bound of the file. The map is address space, not memory: pages come from the page cache, and the file is sparse.
_MAP_BYTES = 64 * 2**30


class LmdbEngine(Engine):
    """See `serving.engine.Engine`. A value is read in place and copied once; pages carry no checksums."""

    def __init__(self, directory: Path, *, map_bytes: int = _MAP_BYTES) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        try:
            self._environment = lmdb.open(str(directory), map_size=map_bytes, readahead=False, max_readers=1024)
        except lmdb.Error as error:
            raise DamagedIndex(f"{directory}: LMDB cannot open the index ({error}); rebuild it") from error

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        try:
            with self._environment.begin() as transaction:
                yield _Snapshot(transaction)
        except lmdb.Error as error:
            raise DamagedIndex(f"{self._directory}: LMDB cannot read the index ({error}); rebuild it") from error

    def write(self, puts: Iterable[Pair], deletes: Iterable[bytes] = ()) -> None:
        # Sorted keys write each page once.
        self._put(sorted(dict(puts).items()), deletes, append=False)

    def bulk_load(self, runs: Iterable[Iterable[Pair]]) -> None:
        for number, run in enumerate(runs):
            # Appending fills each leaf page before it begins the next.
            self._put(ascending_only(run), (), append=number == 0)

    def compact(self) -> None:
        """LMDB reuses the pages of old versions by itself; its file does not shrink."""

    def statistics(self) -> dict[str, int]:
        facts = self._environment.stat()
        pages = facts["branch_pages"] + facts["leaf_pages"] + facts["overflow_pages"]
        return {
            "entries": facts["entries"],
            "bytes": pages * facts["psize"],
            "depth": facts["depth"],
            "branch_pages": facts["branch_pages"],
            "leaf_pages": facts["leaf_pages"],
            "page_bytes": facts["psize"],
        }

    def examine(self) -> None:
        """Nothing to do: pages carry no checksums."""

    def close(self) -> None:
        self._environment.close()

    def _put(self, puts: Iterable[Pair], deletes: Iterable[bytes], *, append: bool) -> None:
        try:
            with self._environment.begin(write=True) as transaction, transaction.cursor() as cursor:
                for key in deletes:
                    transaction.delete(key)
                cursor.putmulti(puts, append=append)
        except lmdb.MapFullError as error:
            raise ServingError(f"{self._directory}: the index has reached the bound of its file") from error


class _Snapshot:
    """One state of the map: a transaction that reads."""

    def __init__(self, transaction: "lmdb.Transaction[bytes]") -> None:
        self._transaction = transaction

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._transaction.get(key)
        return value

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._transaction.get(key) for key in keys]

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        with self._transaction.cursor() as cursor:
            if descending:
                found = cursor.set_range(last)
                is_there = (found and cursor.key() <= last) or (cursor.prev() if found else cursor.last())
                if is_there:
                    yield from takewhile(lambda pair: pair[0] >= first, cursor.iterprev())
            elif cursor.set_range(first):
                yield from takewhile(lambda pair: pair[0] <= last, cursor)
