"""Datagrams are read many at once, and alone where the system cannot; both ways give the same frames."""

import socket
from collections.abc import Iterator

import pytest

from sda_platform.edge.address import Address, listening_udp
from sda_platform.edge.datagrams import MAX_DATAGRAM_BYTES, DatagramReader
from sda_platform.edge.frames import Frames

both = pytest.mark.parametrize("reads_many", [True, False])


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A listening socket, and one that sends to it."""
    with (
        listening_udp(Address("127.0.0.1", 0), 2**20) as opened,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        sender.connect(opened.getsockname())
        yield opened, sender


def payloads(frames: Frames) -> list[bytes]:
    return [frames.payload(row) for row in range(len(frames))]


@both
def test_what_waits_is_read_in_order_up_to_the_bound__DP1_Q1(
    pair: tuple[socket.socket, socket.socket], reads_many: bool
) -> None:
    opened, sender = pair
    sent = [b"", b"x" * 60, b"y" * 59, b"z" * MAX_DATAGRAM_BYTES, b"last"]
    for payload in sent:
        sender.send(payload)
    reader = DatagramReader(at_once=3, reads_many=reads_many)
    assert payloads(reader.read(opened)) == sent[:3]
    assert payloads(reader.read(opened)) == sent[3:]
    assert payloads(reader.read(opened)) == []


@both
def test_of_a_longer_datagram_the_first_bytes_are_kept(
    pair: tuple[socket.socket, socket.socket], reads_many: bool
) -> None:
    opened, sender = pair
    sender.send(b"a" * (MAX_DATAGRAM_BYTES + 100))
    sender.send(b"b")
    found = payloads(DatagramReader(reads_many=reads_many).read(opened))
    assert found == [b"a" * MAX_DATAGRAM_BYTES, b"b"]


@both
def test_an_error_of_the_socket_is_raised(reads_many: bool) -> None:
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        DatagramReader(reads_many=reads_many).read(closed)
