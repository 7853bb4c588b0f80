"""The link between uplink and station: each refusal has its reason, and loses no command."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from spacepackets.ecss import PusTc

from sda_platform.ground.commands import APID, Command
from sda_platform.ground.message_guard import MessageGuard
from sda_platform.ground.short_answers import ShortAnswers
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_link import StationLink
from sda_platform.ground.station_messages import KEY, NUMBER, SENDER, SIGNATURE, ReportedRefusals, signature
from sda_platform.ground.station_server import serve
from sda_platform.ground.verification import Report, decode_reports, encode_reports
from sda_platform.orchestration.webhooks import SigningKeys
from sda_platform_tests.support.ground_loop import ground_at
from sda_platform_tests.support.station_packets import outcome, packet

KEYS = SigningKeys("SDA_STATION_KEYS", "one:whsec_" + "A" * 32)
REPOINT = Command("c", "REPOINT", 0, 10**18, 1.0, 2.0)


@contextmanager
def served(
    directory: Path, apid: int = APID, guard: MessageGuard | None = None
) -> Iterator[tuple[DurableStation, str]]:
    station = DurableStation(directory / "station.sqlite", lambda: 5)
    server = serve(station, 0, guard, apid)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield station, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def executed(station: DurableStation) -> list[str]:
    return [row[0] for row in station._database.execute("SELECT command_id FROM executions ORDER BY number")]


def test_hostile_packets_are_refused_and_cost_the_next_one_nothing__46_3(tmp_path: Path) -> None:
    whole = packet()
    hostile = [b"", whole[:9], whole[:-1], whole + b"\0", whole[:-1] + bytes([whole[-1] ^ 1]), b"\xff" * 65_536, b"{}"]
    with served(tmp_path) as (station, url), httpx.Client(base_url=url) as client:
        for content in hostile:
            answer = client.post("/commands", content=content)
            assert (answer.status_code, bool(answer.json()["reason"])) == (400, True)
        assert executed(station) == []
        answer = client.post("/commands", content=whole)
        assert outcome(answer) == "executed"
        assert [(each.subtype, each.time_ns) for each in decode_reports(answer.content, APID)] == [
            (1, 5),
            (3, 5),
            (7, 5),
        ]
        # As a station that does not know such a command.
        assert [(each.subtype, each.code) for each in decode_reports(_unknown_subtype(client), APID)] == [(2, 4)]
        again = decode_reports(client.post("/commands", content=packet(1)).content, APID)
        assert [each.subtype for each in again] == [2, 1, 3, 7]
        assert [each.request_id & 0x3FFF for each in again] == [1, 0, 0, 0], "the reports of the first packet"
        assert executed(station) == ["c"]


def _unknown_subtype(client: httpx.Client) -> bytes:
    return client.post("/commands", content=bytes(PusTc(128, 77, apid=APID).pack())).content


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("/promotions", b"", "Invalid JSON"),
        ("/promotions", b"[" * 60_000, "Invalid JSON"),
        ("/promotions", b"[1]", "should be an object"),
        ("/promotions", b'{"uplink": "x"}', "above: Field required"),
        ("/promotions", b'{"uplink": "x", "above": 9999999999999999999999}', "above"),
        ("/promotions", b'{"uplink": "x", "above": 0, "token": 9223372036854775808}', "token"),
        ("/heartbeats", b'{"uplink": {"a": 1}}', "uplink: Input should be a valid string"),
        ("/heartbeats", b'{"uplink": "%s"}' % (b"x" * 65), "at most 64 characters"),
        ("/elsewhere", b"", "a station has no /elsewhere"),
    ],
)
def test_messages_of_another_form_are_answered_with_the_reason(
    tmp_path: Path, path: str, content: bytes, reason: str
) -> None:
    with served(tmp_path) as (station, url), httpx.Client(base_url=url) as client:
        answer = client.post(path, content=content)
        assert answer.status_code in (400, 404)
        assert reason in answer.json()["reason"]
        assert station.state() == {"token": 0, "active": "", "silence_s": {}, "beats": {}}


def test_a_station_counts_the_heartbeats_of_few_uplinks(tmp_path: Path) -> None:
    station = DurableStation(tmp_path / "station.sqlite", lambda: 0)
    for number in range(100):
        station.heartbeat(f"forged-{number}")
        station.heartbeat("primary")
    beats = station.state()["beats"]
    assert (len(beats), beats["primary"]) == (16, 100)


def test_a_station_whose_memory_fails_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[str] = []
    with served(tmp_path) as (station, url):
        real, full = station._database, sqlite3.connect(":memory:", check_same_thread=False)
        with httpx.Client(base_url=url, auth=ReportedRefusals(refused.append)) as client:
            monkeypatch.setattr(station, "_database", full)  # it has no tables
            link = StationLink(client, "primary")
            for _ in range(2):
                with pytest.raises(httpx.HTTPStatusError, match="503"):
                    link.send(REPOINT, 1)
            assert refused == ["the station cannot answer: no such table: commands"], "once in a row"
            assert "no such table" in caplog.text
            monkeypatch.setattr(station, "_database", real)
            assert link.send(REPOINT, 1)["outcome"] == "executed"


@pytest.mark.parametrize("number", ["", "-1", "x", "²", "9" * 19, "1" * 5000])
def test_a_signed_number_that_is_none_is_answered(tmp_path: Path, number: str) -> None:
    with served(tmp_path, guard=MessageGuard(KEYS, tmp_path / "guard.sqlite")) as (_, url):
        (key,) = KEYS
        signed = signature(key, b"/heartbeats", b"a", number.encode(), b"{}")
        headers = [(KEY, "one"), (SENDER, "a"), (NUMBER, number), (SIGNATURE, signed)]
        raw = [(name.encode(), value.encode("iso-8859-1")) for name, value in headers]
        answer = httpx.post(f"{url}/heartbeats", content=b"{}", headers=raw)
        assert answer.status_code in (400, 401)
        assert "number" in answer.json()["reason"] or "signature" in answer.json()["reason"]


@pytest.mark.parametrize("name", [KEY, SENDER, NUMBER, SIGNATURE, "Accept"])
def test_a_header_of_any_bytes_is_answered(tmp_path: Path, name: str) -> None:
    with served(tmp_path, guard=MessageGuard(KEYS, tmp_path / "guard.sqlite")) as (_, url):
        answer = httpx.post(f"{url}/heartbeats", content=b"{}", headers=[(name.encode(), b"\xe9\xff" * 20)])
        assert (answer.status_code, bool(answer.json()["reason"])) == (401, True)


def test_a_station_whose_keys_are_gone_says_so(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("one:whsec_" + "A" * 32)
    file.chmod(0o600)
    guard = MessageGuard(SigningKeys("SDA_STATION_KEYS", str(file)), tmp_path / "guard.sqlite")
    file.unlink()
    with served(tmp_path, guard=guard) as (_, url):
        answer = httpx.post(f"{url}/heartbeats", content=b"{}")
        assert answer.status_code == 503
        assert "SDA_STATION_KEYS" in answer.json()["reason"]


def test_a_command_to_another_stations_apid_waits_until_it_is_right__46_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []
    with ground_at(tmp_path, monkeypatch) as ground:
        ground.log().issue("SAFE_MODE", expires_in_s=600, command_id="c")
        ground.uplink("primary", auth=ReportedRefusals(refused.append), apid=7)
        ground.run(1)
        assert (ground.executed(), ground.rows()["c"]["state"]) == ([], "dispatched")
        assert refused == ["APID 7 is not that of the station, 100"]
        ground.uplink("primary")
        ground.run(1)
        assert (ground.executed(), ground.rows()["c"]["state"]) == (["c"], "acknowledged")


def test_a_command_whose_id_no_packet_has_room_for_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ground_at(tmp_path, monkeypatch) as ground:
        issued = ground.log().issue("SAFE_MODE", expires_in_s=600, command_id="c")
        with pytest.raises(ValueError, match="an id has 1 to 255 bytes, not 510"):
            ground.log().issue("SAFE_MODE", expires_in_s=600, command_id="é" * 255)
        long = "c" * 256
        ground.log().append([type(issued)(**{**vars(issued), "command_id": long})])
        ground.log().append([type(issued)(**{**vars(issued), "command_id": f"{long}2", "event": "accepted"})])
        ground.uplink("primary")
        ground.run(1)
        assert ground.executed() == ["c"]
        assert (ground.rows()[long]["state"], ground.rows()[long]["detail"]) == (
            "rejected",
            "an id has 1 to 255 bytes, not 256",
        )


def answering(content: bytes, **more: Any) -> httpx.Client:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=httpx.ByteStream(content), **more))
    return httpx.Client(base_url="http://station", transport=ShortAnswers(transport))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\x08" * 40, packet(), encode_reports([Report(7, 1, 0)], 7, iter([0]))]
)
def test_an_answer_that_is_no_report_is_a_failed_call(content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    link = StationLink(answering(content), "primary")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with pytest.raises(httpx.RemoteProtocolError):
                link.send(REPOINT, 1)
    assert len(caplog.records) == 1, "each reason once in a row"


@pytest.mark.parametrize(
    "content", [b"[1]", b"x", b'{"token": "1"}', b'{"token": -1}', b'{"token": 1e999}', b"[" * 60_000]
)
def test_a_promotion_that_grants_no_token_is_a_failed_call(content: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        StationLink(answering(content), "primary").promote(0)


def test_no_answer_fills_the_memory__46_3() -> None:
    for client in (answering(b"x" * 65_537), answering(b"x", headers={"Content-Encoding": "gzip"})):
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/commands")
    assert len(answering(b"x" * 65_536).post("/commands").content) == 65_536


def test_a_station_that_is_not_done_is_asked_again__46_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a ground system whose antenna moves for longer than an answer may take."""
    with ground_at(tmp_path, monkeypatch) as ground:
        primary = ground.uplink("primary")
        send, sent = primary._link.send, list[Command]()

        def begins(command: Command, token: int) -> dict[str, Any]:
            sent.append(command)
            if len(sent) < 5:
                return {"outcome": "under_way", "times_ns": {"accepted": 1}, "reason": ""}
            return send(command, token)

        monkeypatch.setattr(primary._link, "send", begins)
        ground.log().issue("SAFE_MODE", expires_in_s=600, command_id="c")
        ground.run(1)
        assert (ground.rows()["c"]["state"], len(sent)) == ("acknowledged", 5)
        assert ground.executed() == ["c"]
