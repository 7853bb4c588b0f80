"""What the peers of a server share, so that none takes all of it. A peer is who connects; behind a proxy all are one.

Stdlib only.
"""

import asyncio
import ipaddress
from collections import Counter
from typing import Final
from weakref import WeakValueDictionary

_NETWORK_BITS: Final = 64


def peer_of(client: tuple[str, int] | None) -> str:
    """Return the peer of a connection from ``client``: its address, of IPv6 its network, which may be one machine's."""
    host = client[0] if client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4 or address.ipv4_mapped:
        return host
    return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))


def is_fair(mine: int, all_together: int, most: int) -> bool:
    """Return whether a peer may hold ``mine`` of ``most`` where ``all_together`` are held, its own included.

    It may hold as much as is left free: alone half of all, beside another greedy one a third, and another always finds
    some.
    """
    return mine <= most - all_together


class FairShare:
    """A bound ``most`` that peers share; for one thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """How much is held."""
        return self._held.total()

    def takes(self, peer: str, amount: int = 1) -> bool:
        """Let ``peer`` hold ``amount`` more, if that is fair; return whether it does."""
        if not is_fair(self._held[peer] + amount, self.held + amount, self._most):
            return False
        self._held[peer] += amount
        return True

    def give_back(self, peer: str, amount: int = 1) -> None:
        """End the holding of ``amount`` by ``peer``."""
        self._held[peer] -= amount
        self._held += Counter()  # who holds nothing is forgotten


class PeerTurns:
    """At most ``at_once`` things are done for a peer at a time; its others wait, and hold no thread."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, peer: str) -> asyncio.Semaphore:
        """Return what is entered by ``async with`` for as long as something is done for ``peer``."""
        if (found := self._of.get(peer)) is None:
            self._of[peer] = found = asyncio.Semaphore(self._at_once)
        return found
