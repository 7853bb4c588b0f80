"""The lease of a station's active uplink; its token fences the station.

Sites that share an etcd give one lease for each station. A holder stops by its own clock when the lease has run out,
whether it can reach anybody or not; the station refuses its token once another one has promoted itself with a newer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sda_platform.lake.errors import Unavailable

if TYPE_CHECKING:
    from sda_platform.orchestration.leases import Lease

TTL_S = 10
"""Length of the lease, seconds: detection and what is left of it must stay within 30 s from stop to promotion."""
_PAUSE_S = 1.0


class Leases(Protocol):
    """What grants leases: `orchestration.leases.EtcdLeases`."""

    def acquire(self, name: str, ttl_s: int) -> Lease:
        """Return the lease ``name``. Raises Unavailable where another holds it, or no answer comes."""

    def renew(self, lease: Lease) -> None:
        """Extend ``lease``. Raises LeaseLost or Unavailable."""

    def release(self, lease: Lease) -> None:
        """Give ``lease`` up."""

    def is_held(self, lease: Lease) -> bool:
        """Return whether the holder may act, by its own clock."""


@dataclass
class UplinkLease:
    """The lease of one ``station`` as one uplink has it, or tries to get it once a second."""

    leases: Leases
    station: str
    monotonic_s: Callable[[], float]
    ttl_s: int = TTL_S
    _held: Lease | None = None
    _next_s: float = 0.0

    @property
    def is_held(self) -> bool:
        """Whether commands may be sent now."""
        return self._held is not None and self.leases.is_held(self._held)

    def acquire(self) -> int | None:
        """Return the token of the lease; None where another uplink holds it, no answer comes, or the last try was just
        now.
        """
        if self.is_held and self._held is not None:
            return self._held.token
        if self.monotonic_s() < self._next_s:
            return None
        self._next_s = self.monotonic_s() + _PAUSE_S
        try:
            self._held = self.leases.acquire(f"uplink/{self.station}", self.ttl_s)
        except Unavailable:
            return None
        self._next_s = self.monotonic_s() + self.ttl_s / 3
        return self._held.token

    def keep(self) -> bool:
        """Renew when it is time; False once the lease has run out. Without an answer it is tried again until then."""
        if self._held is not None and self.is_held and self.monotonic_s() >= self._next_s:
            self._next_s = self.monotonic_s() + _PAUSE_S
            try:
                self.leases.renew(self._held)
                self._next_s = self.monotonic_s() + self.ttl_s / 3
            except Unavailable:
                return self.is_held
        return self.is_held

    def release(self) -> None:
        """Give it up, so that the other uplink need not wait for its end."""
        if self.is_held and self._held is not None:
            self.leases.release(self._held)
        self._held = None
