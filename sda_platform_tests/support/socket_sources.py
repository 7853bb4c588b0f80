"""Sources that read sockets, and senders to them."""

import asyncio
import socket
from typing import Any

from sda_platform.edge.collector import Collector
from sda_platform_tests.support.collectors import (
    address,
    until,
)

RADAR = {"radar-a": {"kind": "radar", "bind": "127.0.0.1:0"}}
LINKS: dict[str, dict[str, Any]] = {"links": {"kind": "isl", "bind": "127.0.0.1:0"}}
STATIONS: dict[str, dict[str, Any]] = {"stations": {"kind": "telemetry", "bind": "127.0.0.1:0"}}


def send_datagrams(collector: Collector, name: str, frames: list[bytes]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for frame in frames:
            sender.sendto(frame, address(collector, name))


async def connect(collector: Collector, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(*address(collector, name))


async def sealed(collector: Collector, name: str, records: int) -> None:
    await until(lambda: collector.ledger.of_source(name).sealed >= records)


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What the collector still sends until it closes the connection."""
    async with asyncio.timeout(10):
        try:
            return await reader.read(-1)
        except ConnectionError:
            return b""
