"""Messages to a station are signed and counted: forged, altered and repeated ones have no effect."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from sda_platform.ground.message_guard import MessageGuard
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_messages import SignedMessages
from sda_platform.ground.station_server import serve
from sda_platform.orchestration.webhooks import SigningKeys
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.ground_loop import Ground, ground_at
from sda_platform_tests.support.station_packets import packet

ONE, OTHER = "one:whsec_" + "A" * 32, "other:whsec_" + "B" * 32
COMMAND = packet()


def keys(*texts: str) -> SigningKeys:
    return SigningKeys("SDA_STATION_KEYS", " ".join(texts))


@dataclass
class Network:
    """A station behind a guard, and what passed on the way to it."""

    url: str
    station: DurableStation
    memory: Path
    now_ns: int = 10**15
    sent: list[httpx.Request] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def client(self, *texts: str, sender: str = "primary", **more: Any) -> httpx.Client:
        signing = SignedMessages(keys(*texts), sender, lambda: self.now_ns, refused=self.refused.append)
        return httpx.Client(base_url=self.url, auth=signing, event_hooks={"request": [self.sent.append]}, **more)

    def again(self, request: httpx.Request, **changed: Any) -> httpx.Response:
        """Send bytes that were heard on the way, as they are or changed."""
        with httpx.Client() as client:
            content, headers = (
                changed.get("content", request.content),
                {**request.headers, **changed.get("headers", {})},
            )
            return client.request("POST", changed.get("url", request.url), content=content, headers=headers)

    def executed(self) -> list[str]:
        return [row[0] for row in self.station._database.execute("SELECT command_id FROM executions ORDER BY number")]


@contextmanager
def network_at(directory: Path, *texts: str) -> Iterator[Network]:
    memory = directory / "station.sqlite"
    station = DurableStation(memory, lambda: 0)
    server = serve(station, 0, MessageGuard(keys(*texts), memory))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Network(f"http://127.0.0.1:{server.server_port}", station, memory)
    server.shutdown()
    server.server_close()


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with network_at(tmp_path, ONE) as made:
        yield made


def test_a_station_with_keys_executes_only_what_is_signed__46_3(network: Network) -> None:
    with httpx.Client(base_url=network.url) as unsigned:
        assert unsigned.post("/commands", content=COMMAND).status_code == 401
        assert unsigned.post("/promotions", json={"uplink": "x", "above": 0}).status_code == 401
    with network.client(OTHER) as stranger:
        assert stranger.post("/commands", content=COMMAND).status_code == 401
        assert stranger.post("/commands", content=COMMAND).status_code == 401
    with network.client("one:whsec_" + "C" * 32) as forger:
        assert forger.post("/commands", content=COMMAND).status_code == 401
    assert network.executed() == []
    reasons = ["the station has no key 'other'", "the signature is not that of key 'one'"]
    assert network.refused == reasons, "each once in a row"
    with network.client(ONE) as client:
        assert client.post("/commands", content=COMMAND).status_code == 200
    assert network.executed() == ["c"]


@pytest.mark.parametrize("seed", range(10))
def test_no_altered_or_repeated_message_is_accepted__46_3(network: Network, seed: int) -> None:
    chosen = random.Random(seed)
    with network.client(ONE) as client:
        client.post("/commands", content=COMMAND)
    (heard,) = network.sent
    position = chosen.randrange(len(heard.content))
    flipped = bytearray(heard.content)
    flipped[position] ^= 1 << chosen.randrange(8)
    number = int(heard.headers["Station-Number"])
    attempts: list[tuple[dict[str, Any], int]] = [
        ({}, 409),
        ({"content": bytes(flipped)}, 401),
        ({"headers": {"Station-Number": str(number + chosen.randrange(1, 10**9))}}, 401),
        ({"headers": {"Station-Sender": "backup"}}, 401),
        ({"url": f"{network.url}/promotions"}, 401),
    ]
    chosen.shuffle(attempts)
    for changed, status in attempts:
        assert network.again(heard, **changed).status_code == status, changed
    assert network.executed() == ["c"]


@pytest.mark.parametrize("path", ["/heartbeats", "/commands"])
def test_a_restarted_station_accepts_no_earlier_message__46_3(network: Network, tmp_path: Path, path: str) -> None:
    body = COMMAND if path == "/commands" else b'{"uplink": "primary"}'
    with network.client(ONE) as client:
        client.post(path, content=body)
        network.now_ns += SECOND_NS
        client.post(path, content=body)
    with network_at(tmp_path, ONE) as restarted:
        restarted.now_ns = network.now_ns
        for heard in network.sent:
            assert restarted.again(heard, url=f"{restarted.url}{path}").status_code == 409
        with restarted.client(ONE) as client:  # its number rises above what the station may have seen
            assert client.post(path, content=body).status_code == 200, (
                "its number rises above what the station may have seen"
            )


def test_heartbeats_need_no_write_each(network: Network) -> None:
    with network.client(ONE) as client:
        for _ in range(20):
            network.now_ns += SECOND_NS // 20
            client.post("/heartbeats", json={"uplink": "primary"})
    # Of the first one: the bound lies ten seconds ahead.
    assert list(network.station._database.execute("SELECT bound FROM numbers")) == [(10**15 + 10_050_000_000,)]


def test_a_sender_whose_clock_was_set_back_goes_on(network: Network) -> None:
    with network.client(ONE) as client:
        client.post("/promotions", json={"uplink": "primary", "above": 0})
    network.now_ns -= 3600 * SECOND_NS
    with network.client(ONE) as client:
        assert client.post("/promotions", json={"uplink": "primary", "above": 1}).json() == {"token": 2}


def test_a_key_is_changed_without_a_pause(tmp_path: Path) -> None:
    with network_at(tmp_path, ONE, OTHER) as network:
        for texts in ((ONE,), (OTHER, ONE)):
            network.now_ns += SECOND_NS
            with network.client(*texts) as client:
                assert client.post("/heartbeats", json={"uplink": "primary"}).status_code == 200
        assert [each.headers["Station-Key"] for each in network.sent] == ["one", "other"]


@pytest.mark.parametrize(
    ("status", "answer"), [(200, {"outcome": "executed"}), (409, {"reason": "", "above": 2**70}), (409, ["above"])]
)
def test_an_answer_that_the_station_did_not_sign_is_none(status: int, answer: object) -> None:
    forged = httpx.MockTransport(lambda _: httpx.Response(status, json=answer))
    signing = SignedMessages(keys(ONE), "primary", lambda: 1)
    with (
        httpx.Client(base_url="http://station", transport=forged, auth=signing) as client,
        pytest.raises(httpx.RemoteProtocolError, match="not signed"),
    ):
        client.post("/commands", content=COMMAND)


def test_what_a_proxy_refuses_is_a_failed_call(network: Network) -> None:
    proxy = httpx.MockTransport(lambda _: httpx.Response(502, text="<html>"))
    signing = SignedMessages(keys(ONE), "primary", lambda: 1, refused=network.refused.append)
    with httpx.Client(base_url="http://station", transport=proxy, auth=signing) as client:
        assert client.post("/commands", content=COMMAND).status_code == 502
    assert network.refused == ["Bad Gateway"]


@pytest.mark.parametrize(
    "body", ['"the reason"', '["reason"]', "[" * 200_000, '{"reason": {"a": 1}}', "null", "7", "\xff", "9" * 5000]
)
def test_no_refusal_ends_an_uplink__46_3(network: Network, body: str) -> None:
    forger = httpx.MockTransport(lambda _: httpx.Response(502, content=body.encode("latin-1")))
    signing = SignedMessages(keys(ONE), "primary", lambda: 1, refused=network.refused.append)
    with httpx.Client(base_url="http://station", transport=forger, auth=signing) as client:
        assert client.post("/heartbeats", json={"uplink": "primary"}).status_code == 502
    assert network.refused == ["Bad Gateway"]


@pytest.mark.parametrize(("sender", "path"), [("primary", "/promotions"), ("backup", "/heartbeats")])
def test_an_answer_to_another_message_is_none__46_3(network: Network, sender: str, path: str) -> None:
    """Its number is the same: senders and paths count on their own."""
    with network.client(ONE) as client:
        answer = client.post("/heartbeats", json={"uplink": "primary"})
    moved = httpx.MockTransport(lambda _: httpx.Response(200, content=answer.content, headers=answer.headers))
    for who, where, is_genuine in ((sender, path, False), ("primary", "/heartbeats", True)):
        signing = SignedMessages(keys(ONE), who, lambda: network.now_ns)
        with httpx.Client(base_url="http://station", transport=moved, auth=signing) as client:
            if is_genuine:
                assert client.post(where, json={}).status_code == 200
            else:
                with pytest.raises(httpx.RemoteProtocolError, match="not signed"):
                    client.post(where, json={})


def test_a_file_of_keys_that_is_gone_for_a_while_fails_calls_alone(network: Network, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(ONE)
    file.chmod(0o600)
    with network.client(str(file)) as client:
        assert client.post("/heartbeats", json={"uplink": "primary"}).status_code == 200
        file.rename(tmp_path / "away")
        with pytest.raises(httpx.HTTPError):
            client.post("/heartbeats", json={"uplink": "primary"})
        assert "SDA_STATION_KEYS" in network.refused[0]
        (tmp_path / "away").rename(file)
        assert client.post("/heartbeats", json={"uplink": "primary"}).status_code == 200


def test_uplinks_with_the_stations_key_command_it__46_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ground_at(tmp_path, monkeypatch, guard=MessageGuard(keys(ONE), tmp_path / "guard.sqlite")) as ground:
        command = issued(ground)
        ground.uplink("primary", auth=SignedMessages(keys(OTHER), "primary", ground.now_ns))
        ground.run(1)
        assert ground.executed() == []
        ground.uplinks["backup"] = ground.uplink("backup", auth=SignedMessages(keys(ONE), "backup", ground.now_ns))
        ground.run(8)
        assert ground.executed() == [command]


def issued(ground: Ground) -> str:
    return ground.log().issue("SAFE_MODE", expires_in_s=600).command_id
