"""Addresses of sockets, and the sockets that listen there."""

import ipaddress
import socket
from typing import NamedTuple


class Address(NamedTuple):
    """Host and port; port 0 means any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """``host:port`` or ``[::1]:port``. Raises ValueError."""
        host, separator, port = text.strip().rpartition(":")
        if not separator or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise ValueError(f"{text!r} is no address; write host:port")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def listening_udp(address: Address, receive_buffer_bytes: int) -> socket.socket:
    """A non-blocking UDP socket bound to ``address``. Raises OSError."""
    opened = socket.socket(_family(address), socket.SOCK_DGRAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        opened.setblocking(False)
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


def listening_tcp(address: Address, backlog: int) -> socket.socket:
    """A TCP socket that listens at ``address``. Raises OSError."""
    return socket.create_server(address, family=_family(address), backlog=backlog)


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address.host else socket.AF_INET
