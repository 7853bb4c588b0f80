"""The pages of a process: an address that sends slowly, or often, holds no thread from others."""

import socket
from collections.abc import Iterator

import pytest

from sda_platform.runtime.pages import PageAnswer, Pages
from sda_platform_tests.support.running_platform import eventually

REQUEST = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class QuickPages(Pages):
    within_s = 1.0


@pytest.fixture
def port() -> Iterator[int]:
    with QuickPages("127.0.0.1", 0, {"/health": lambda: PageAnswer(b"ok", "text/plain")}) as pages:
        yield pages.port


def connected(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))


def answer(peer: socket.socket) -> bytes:
    """All that comes until the server closes."""
    found = b""
    try:
        while part := peer.recv(4096):
            found += part
    except ConnectionResetError:
        pass
    return found


def asked(port: int, source: str = "127.0.0.1") -> bytes:
    """What a quick request is answered; nothing where the connection is closed."""
    with connected(port, source) as peer:
        try:
            peer.sendall(REQUEST)
        except ConnectionError:
            return b""
        return answer(peer)


def test_a_request_that_never_ends_is_closed_however_often_a_byte_comes(port: int) -> None:
    with connected(port) as slow:
        slow.settimeout(0.1)
        sent = 0
        try:
            for letter in REQUEST[:-1] * 100:
                slow.send(bytes([letter]))
                sent += 1
                try:
                    assert slow.recv(100) == b""
                    break
                except TimeoutError:
                    continue
        except ConnectionError:
            pass
        assert sent < 100, "each byte came a tenth of a second after the one before"


def test_an_address_has_a_share_and_others_are_answered_meanwhile(port: int) -> None:
    held = [connected(port) for _ in range(80)]
    try:
        assert b"200" in asked(port, "127.0.0.2")
        assert b"" in {answer(each) for each in held[-8:]}, "those beyond the share are closed"
    finally:
        for each in held:
            each.close()
    assert eventually(lambda: b"200" in asked(port), 20), "its places are given back"
