"""The contract of an ordered key-value engine.

Keys are compared byte by byte. A write is one batch: after a crash all of it is there, or nothing. The platform uses
RocksDB; the tests hold LMDB and SQLite to the same contract. Engines store bytes only; the meaning of keys and values
belongs to `serving.index`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

Pair = tuple[bytes, bytes]


class Reader(Protocol):
    """What reads an ordered map of bytes to bytes."""

    def get(self, key: bytes) -> bytes | None:
        """Return the newest value under ``key``; None where there is none or it was deleted."""

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """`get` of each key, all from one state of the map."""

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        """Return the pairs with ``first`` <= key <= ``last``, in order, from one state of the map; read as they are
        used.
        """


class Engine(Reader, Protocol):
    """An ordered map of bytes to bytes in a directory: one writer, many readers.

    A read opens a state of its own, unless an engine has a shorter way.
    """

    def snapshot(self) -> AbstractContextManager[Reader]:
        """Open one state of the map for all reads in the context, whatever is written meanwhile; for one thread."""

    def get(self, key: bytes) -> bytes | None:
        with self.snapshot() as state:
            return state.get(key)

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self.snapshot() as state:
            return state.multi_get(keys)

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        with self.snapshot() as state:
            yield from state.scan(first, last, descending=descending)

    def write(self, puts: Iterable[Pair], deletes: Iterable[bytes] = ()) -> None:
        """Apply all deletes, then all puts, as one durable batch; a put replaces the value under its key."""

    def bulk_load(self, runs: Iterable[Iterable[Pair]]) -> None:
        """Fill an empty map with runs of pairs, each in strictly ascending order of their keys; durable on return.

        Of a key that several runs have, the last value counts. Raises ValueError for a key of a run that is not above
        the one before it.
        """

    def compact(self) -> None:
        """Reclaim what deletes and overwrites left behind, as far as the engine can."""

    def statistics(self) -> dict[str, int]:
        """Entries, bytes, and what the engine counts: depth and pages of a tree, files and probes of a log."""

    def examine(self) -> None:
        """Compare a part of what is stored with its checksums, each time the next; the writer calls it.

        Raises DamagedIndex.
        """

    def close(self) -> None:
        """Release the directory; the map must not be used afterwards. Twice is harmless."""


def ascending_only(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """``pairs`` as they are. Raises ValueError at a key that is not above its predecessor."""
    previous: bytes | None = None
    for key, value in pairs:
        if previous is not None and key <= previous:
            raise ValueError(f"bulk load needs ascending keys: {key!r} follows {previous!r}")
        previous = key
        yield key, value
