"""Who may send: networks for UDP and TCP, and certificates for TCP. What others send does not land."""

import asyncio
import ipaddress
import socket
import ssl
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest

from sda_platform.edge.address import Address, listening_udp
from sda_platform.edge.config import ConfigError, load_config
from sda_platform.edge.datagrams import DatagramReader
from sda_platform.edge.senders import AllowedSenders
from sda_platform_tests.support.certificates import make_certificates
from sda_platform_tests.support.collectors import address, beacons, collecting, framed, payloads, radar_frames, until
from sda_platform_tests.support.socket_sources import ended, sealed

FOREIGN = "127.0.0.2"


def allowing(*networks: str) -> AllowedSenders:
    return AllowedSenders([ipaddress.ip_network(each) for each in networks])


@pytest.mark.parametrize(
    ("networks", "host", "is_allowed"),
    [
        ((), "192.0.2.1", True),
        (("10.1.0.0/16",), "10.1.255.3", True),
        (("10.1.0.0/16",), "10.2.0.1", False),
        (("10.1.0.0/16",), "::ffff:10.1.2.3", True),
        (("10.1.0.0/16",), "::10.1.2.3", False),
        (("10.1.0.0/16", "192.0.2.7"), "192.0.2.7", True),
        (("192.0.2.7",), "192.0.2.8", False),
        (("2001:db8::/32",), "2001:db8:1::5", True),
        (("2001:db8::/32",), "2001:db9::5", False),
        (("fe80::/10",), "fe80::1%eth0", True),
        (("0.0.0.0/0",), "2001:db8::1", False),
        (("::/0",), "10.0.0.1", True),
    ],
)
def test_an_address_is_allowed_by_its_network(networks: tuple[str, ...], host: str, is_allowed: bool) -> None:
    assert allowing(*networks).allows(host) is is_allowed


@pytest.mark.parametrize("reads_many", [True, False])
@pytest.mark.parametrize(("host", "foreign"), [("127.0.0.1", FOREIGN), ("::1", "")])
def test_datagrams_of_others_are_left_out_however_many_come(reads_many: bool, host: str, foreign: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        listening_udp(Address(host, 0), 2**20) as opened,
        socket.socket(family, socket.SOCK_DGRAM) as own,
        socket.socket(family, socket.SOCK_DGRAM) as other,
    ):
        reader = DatagramReader(4, allowed=allowing(host), reads_many=reads_many)
        closed = DatagramReader(4, allowed=allowing("192.0.2.1"), reads_many=reads_many)
        if foreign:
            other.bind((foreign, 0))
            for number in range(9):  # more than one read, and the own one is behind them
                other.sendto(b"forged %d" % number, opened.getsockname())
        for payload in (b"one", b"two"):
            own.sendto(payload, opened.getsockname())
        found = []
        while len(frames := reader.read(opened)):
            found += [frames.payload(row) for row in range(len(frames))]
        assert (found, reader.refused) == ([b"one", b"two"], 9 if foreign else 0)
        own.sendto(b"three", opened.getsockname())
        assert (len(closed.read(opened)), closed.refused) == (0, 1)


def test_a_radar_that_is_not_on_the_list_lands_nothing(tmp_path: Path) -> None:
    radar = {"radar-a": {"kind": "radar", "bind": "127.0.0.1:0", "allow": ["127.0.0.1"]}}
    frames = radar_frames(20, tracks=10)

    async def scenario() -> None:
        async with collecting(tmp_path, radar) as collector:
            for host, sent in ((FOREIGN, frames[10:]), ("127.0.0.1", frames[:10])):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    sender.bind((host, 0))
                    for frame in sent:
                        sender.sendto(frame, address(collector, "radar-a"))
            await sealed(collector, "radar-a", 10)
            await until(lambda: collector.supervised["radar-a"].source.errors == {"refused_sender": 10})

    asyncio.run(scenario())
    assert sorted(payloads(tmp_path, "radar")) == sorted(frames[:10])


def test_a_link_that_is_not_on_the_list_is_closed_and_lands_nothing(tmp_path: Path) -> None:
    links = {"links": {"kind": "isl", "bind": "127.0.0.1:0", "allow": ["127.0.0.1/32"]}}

    async def scenario() -> None:
        async with collecting(tmp_path, links) as collector:
            place = address(collector, "links")
            reader, writer = await asyncio.open_connection(*place, local_addr=(FOREIGN, 0))
            writer.write(framed(beacons(3)))
            assert await ended(reader) == b""
            _, own = await asyncio.open_connection(*place)
            own.write(framed(beacons(2)))
            await sealed(collector, "links", 2)
            assert collector.supervised["links"].source.errors == {"refused_sender": 1}
            own.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == beacons(2)


def test_a_sender_without_a_certificate_of_the_authority_lands_nothing(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    own = {name: str(tmp_path / f"right.{end}") for name, end in (("certificate", "crt"), ("key", "key"))}
    links = {"links": {"kind": "isl", "bind": "127.0.0.1:0", **own, "sender_authority": str(tmp_path / "right.crt")}}

    def context(name: str) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(tmp_path / "right.crt"))
        if name:
            made.load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        return made

    async def attempt(place: tuple[str, int], tls: ssl.SSLContext | None) -> None:
        try:
            reader, writer = await asyncio.open_connection(*place, ssl=tls)
            writer.write(framed(beacons(3)))
            await ended(reader)
            writer.close()
        except OSError:  # refused in the handshake
            return

    async def scenario() -> None:
        async with collecting(tmp_path / "home", links) as collector:
            place = address(collector, "links")
            for tls in (None, context(""), context("other"), context("expired")):
                await attempt(place, tls)
            _, writer = await asyncio.open_connection(*place, ssl=context("right"))
            writer.write(framed(beacons(2)))
            await sealed(collector, "links", 2)
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path / "home", "isl") == beacons(2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ('allow = ["10.0.0.1/8"]', "has host bits set"),
        ('allow = ["radar.example"]', "does not appear to be an IPv4 or IPv6 network"),
        ('certificate = "a.crt"', "TLS needs certificate, key and sender_authority"),
        ('certificate = "/no"\nkey = "/no"\nsender_authority = "/no"', r"cannot be used: .*No such file"),
    ],
)
def test_what_would_leave_a_socket_open_or_shut_is_refused(tmp_path: Path, options: str, reason: str) -> None:
    file = tmp_path / "collect.toml"
    file.write_text(f'[sources.links]\nkind = "isl"\nbind = "127.0.0.1:7000"\n{options}\n')
    with pytest.raises(ConfigError, match=reason):
        load_config(file)


def test_one_warning_names_the_sources_that_accept_every_sender(tmp_path: Path) -> None:
    listening: dict[str, Any] = {"bind": "127.0.0.1:0"}
    sources = {
        "links": {"kind": "isl", **listening},
        "radar-a": {"kind": "radar", **listening},
        "radar-b": {"kind": "radar", **listening, "allow": ["127.0.0.1"]},
    }

    async def scenario() -> str:
        async with collecting(tmp_path, sources) as collector:
            return cast("StringIO", collector.log.stream).getvalue()

    warnings = [line for line in asyncio.run(scenario()).splitlines() if "every sender is accepted" in line]
    assert len(warnings) == 1 and "links, radar-a" in warnings[0] and "radar-b" not in warnings[0]
