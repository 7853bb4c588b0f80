"""Who may send to a listening source: an allow-list of networks, and for TCP a certificate of a known authority."""

import ipaddress
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
NAME_BYTES: Final = 28
"""Size of a ``sockaddr_in6``; that of IPv4 is shorter."""
_V4_AT, _V6_AT = 4, 8
_MAPPED: Final = bytes(10) + b"\xff\xff"


class AllowedSenders:
    """The senders of ``networks``; without networks: all."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = [tuple(np.frombuffer(part, np.uint8) for part in _as_v6(each)) for each in networks]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def allows(self, host: str) -> bool:
        """Return whether the address ``host`` may send."""
        if not self._networks:
            return True
        packed = ipaddress.ip_address(host.partition("%")[0]).packed
        address = packed if len(packed) == 16 else _MAPPED + packed
        return bool(self._of(np.frombuffer(address, np.uint8)[None, :])[0])

    def allows_each(self, names: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """(n,): whether each of ``names`` (n, `NAME_BYTES`), addresses as Linux writes them, may send."""
        addresses = np.empty((len(names), 16), np.uint8)
        addresses[:, :12] = np.frombuffer(_MAPPED, np.uint8)
        addresses[:, 12:] = names[:, _V4_AT : _V4_AT + 4]
        is_v6 = np.ascontiguousarray(names[:, :2]).view(np.uint16)[:, 0] == socket.AF_INET6
        addresses[is_v6] = names[is_v6, _V6_AT : _V6_AT + 16]
        return self._of(addresses)

    def _of(self, addresses: NDArray[np.uint8]) -> NDArray[np.bool_]:
        found = np.zeros(len(addresses), bool)
        for network, mask in self._networks:
            found |= ((addresses & mask) == network).all(axis=1)
        return found


ALL_SENDERS: Final = AllowedSenders()


def _as_v6(network: Network) -> tuple[bytes, bytes]:
    """Address and mask of 16 bytes: IPv4 as its IPv6-mapped form."""
    address, mask = network.network_address.packed, network.netmask.packed
    return (address, mask) if len(address) == 16 else (_MAPPED + address, b"\xff" * 12 + mask)


def mutual_tls(certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS in which a sender must have a certificate of ``authority``. Raises OSError (ssl.SSLError is one)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    return context
