"""Times without a listener are entries that survive the process; sockets that are handed over leave none."""

import asyncio
import os
import socket
from pathlib import Path

from sda_platform.edge.address import Address, listening_tcp, listening_udp
from sda_platform.edge.handover import VARIABLE, Sockets
from sda_platform.edge.listening import ListeningLog, NotListened
from sda_platform_tests.support.collectors import collecting, until

SECOND_NS = 10**9
LOOPBACK = Address("127.0.0.1", 0)
RADAR = {"radar-a": {"kind": "radar", "bind": "127.0.0.1:0"}}


def test_a_source_that_listens_again_has_an_entry_also_after_a_restart(tmp_path: Path) -> None:
    log = ListeningLog(tmp_path)
    assert log.note(["a", "b"], 0) == []
    assert log.note(["a"], SECOND_NS) == []
    again = ListeningLog(tmp_path)
    assert again.note(["a", "b"], 9 * SECOND_NS) == [
        NotListened("a", SECOND_NS, 9 * SECOND_NS),
        NotListened("b", 0, 9 * SECOND_NS),
    ]
    assert (again.seconds, again.last_of("a")) == ({"a": 8.0, "b": 9.0}, NotListened("a", SECOND_NS, 9 * SECOND_NS))
    assert ListeningLog(tmp_path).entries == again.entries


def test_a_damaged_file_begins_anew(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"entries": [{"x": 1}], "last_ns": {}, "seconds": {}}'):
        (tmp_path / "listening.json").write_text(text)
        log = ListeningLog(tmp_path)
        assert (log.entries, log.note(["a"], 1)) == ([], [])


def test_handed_over_sockets_are_no_gap(tmp_path: Path) -> None:
    ListeningLog(tmp_path).note(["a"], 0)
    log = ListeningLog(tmp_path)
    assert log.note(["a"], 60 * SECOND_NS, is_handed_over=True) == []
    assert log.note(["a"], 61 * SECOND_NS) == []


def test_a_collector_notes_its_gap_and_reports_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "collector").mkdir()
        ListeningLog(tmp_path / "collector").note(["radar-a"], 0)
        async with collecting(tmp_path, RADAR) as collector:
            await until(lambda: bool(collector.listening_log.entries))
            (entry,) = collector.listening_log.entries
            assert (entry.source, entry.from_ns) == ("radar-a", 0)

    asyncio.run(scenario())


def test_what_is_sent_between_two_processes_waits_in_the_handed_over_sockets() -> None:
    before = Sockets()
    udp = before.listen("a 127.0.0.1:0", lambda: listening_udp(LOOPBACK, 10_000))
    tcp = before.listen("b 127.0.0.1:0", lambda: listening_tcp(LOOPBACK, 8))
    before.listen("gone 127.0.0.1:1", lambda: listening_tcp(LOOPBACK, 8))
    before.is_handing_over = True
    for key in ("a 127.0.0.1:0", "b 127.0.0.1:0", "gone 127.0.0.1:1"):
        before.release(key)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"frame", udp.getsockname())
    with socket.create_connection(tcp.getsockname()) as link:
        link.sendall(b"beacon")
        os.environ |= before.environment()
        after = Sockets.of_environment()
        assert VARIABLE not in os.environ
        assert after.inherited == {"a", "b", "gone"}
        assert after.listen("a 127.0.0.1:0", lambda: listening_udp(LOOPBACK, 10_000)).recv(100) == b"frame"
        connection, _ = after.listen("b 127.0.0.1:0", lambda: listening_tcp(LOOPBACK, 8)).accept()
        with connection:
            assert connection.recv(100) == b"beacon"
    after.close_unused()
    assert after.inherited == {"a", "b"}
    for each in [*before._open.values()]:
        each.detach()  # they are those of the next process
    for key in ("a 127.0.0.1:0", "b 127.0.0.1:0"):
        after.release(key)
    assert after.listen("a 127.0.0.1:0", lambda: listening_udp(LOOPBACK, 10_000)).getsockname() != ("127.0.0.1", 0)
    after.release("a 127.0.0.1:0")
