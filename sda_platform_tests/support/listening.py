"""The addresses at which processes listen, by the kernel's tables (Linux)."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

Listener = tuple[IPv4Address | IPv6Address, int]
_LISTEN: Final = "0A"  # a state in /proc/net/tcp


def listeners_of(pid: int) -> set[Listener]:
    """The addresses and ports at which a process listens; none once it has ended."""
    own = set()
    for each in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):  # closed meanwhile
            own.add(str(each.readlink()))
    return {listener for listener, inode in _in_network_of(pid) if f"socket:[{inode}]" in own}


def listeners_beside(pid: int) -> set[Listener]:
    """The addresses and ports at which any process of the same network, such as a container's, listens."""
    return {listener for listener, _ in _in_network_of(pid)}


def _in_network_of(pid: int) -> Iterator[tuple[Listener, str]]:
    """Each listener with the inode of its socket."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        lines: list[str] = []
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        for line in lines:
            local, state, inode = (line.split()[index] for index in (1, 3, 9))
            if state == _LISTEN:
                address, _, port = local.partition(":")
                # Each word of an address is in the byte order of the machine: 127.0.0.1 is 0100007F.
                words = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
                yield (ip_address(socket.inet_ntop(family, words)), int(port, 16)), inode
