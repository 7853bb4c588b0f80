"""Leases on versions: the reader of old versions keeps the maintenance from removing files of these versions.

A lease is a small file beside the tables. Its holder renews it; the lease of a holder that was killed ends by itself.
The deletion of data files and the clean-up of logs obey every lease that has not ended (`history.expiry`,
`history.log_cleanup`). While a lease cannot be read, neither removes anything: it may hold any version.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter

from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.storage import location

LEASE_S = 300.0
"""How long a lease lasts that is not renewed; a living holder renews it three times as often."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class VersionLease:
    """``versions``: by table the Delta versions that must stay readable until ``until_ms`` (Unix time, wall clock)."""

    lease_id: str
    purpose: str
    holder: str
    versions: Mapping[str, Sequence[int]]
    until_ms: int


class VersionLeases:
    """The leases of the lake at ``lake_uri``."""

    def __init__(self, lake_uri: str, now_ms: Callable[[], int] = _wall_ms) -> None:
        self._directory = location(lake_uri) / "_leases"
        self._now_ms = now_ms

    def take(self, snapshots: Iterable[TableSnapshot], purpose: str, ttl_s: float = LEASE_S) -> VersionLease:
        """Hold these snapshots for ``ttl_s`` seconds; on disk on return."""
        read = sorted({(each.table, each.version) for each in snapshots if each.version >= 0})
        versions = {table: [version for _, version in each] for table, each in groupby(read, itemgetter(0))}
        holder = f"{os.uname().nodename}:{os.getpid()}"
        return self._written(VersionLease(str(uuid.uuid4()), purpose, holder, versions, 0), ttl_s)

    def renew(self, lease: VersionLease, ttl_s: float = LEASE_S) -> VersionLease:
        """Let the lease last ``ttl_s`` seconds from now."""
        return self._written(lease, ttl_s)

    def release(self, lease: VersionLease) -> None:
        """End the lease."""
        self._file(lease.lease_id).unlink(missing_ok=True)

    @contextmanager
    def held(self, snapshots: Iterable[TableSnapshot], purpose: str, ttl_s: float = LEASE_S) -> Iterator[VersionLease]:
        """Hold these snapshots while the context is open, however long that is."""
        lease, ended = self.take(snapshots, purpose, ttl_s), threading.Event()

        def keep_alive() -> None:
            while not ended.wait(ttl_s / 3):
                with suppress(OSError):  # such as a full disk; the next renewal is in time
                    self.renew(lease, ttl_s)

        heartbeat = threading.Thread(target=keep_alive, name="version-lease", daemon=True)
        heartbeat.start()
        try:
            yield lease
        finally:
            ended.set()
            heartbeat.join()
            self.release(lease)

    def active(self) -> list[VersionLease]:
        """Return the leases that have not ended, by their end. Raises InvariantError where one cannot be read."""
        now_ms = self._now_ms()
        return sorted((each for each in self._all() if each.until_ms > now_ms), key=lambda each: each.until_ms)

    def versions_of(self, table: str) -> list[int]:
        """Return the versions of ``table`` that are held. Raises as `active`."""
        return sorted({version for each in self.active() for version in each.versions.get(table, ())})

    def sweep(self) -> int:
        """Remove the files of leases that have ended; returns how many. Raises as `active`."""
        active = {each.lease_id for each in self.active()}
        ended = [each for each in self._all() if each.lease_id not in active]
        for each in ended:
            self.release(each)
        return len(ended)

    def _written(self, lease: VersionLease, ttl_s: float) -> VersionLease:
        renewed = VersionLease(**{**asdict(lease), "until_ms": self._now_ms() + round(ttl_s * 1000)})
        durable.write(self._file(lease.lease_id), json.dumps(asdict(renewed)).encode())
        return renewed

    def _all(self) -> Iterator[VersionLease]:
        for file in self._directory.glob("*.json") if self._directory.exists() else ():
            try:
                yield VersionLease(**json.loads(file.read_text()))
            except FileNotFoundError:
                continue  # released meanwhile
            except (ValueError, TypeError) as error:
                raise InvariantError(
                    f"{file}: this lease is damaged ({error}), so no file of a table is removed; "
                    "remove the lease when no query and no tagging runs"
                ) from None

    def _file(self, lease_id: str) -> UPath:
        return self._directory / f"{lease_id}.json"
