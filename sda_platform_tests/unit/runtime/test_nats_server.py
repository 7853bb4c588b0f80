"""The server of the stream of events: what a setting may name, and what a wrong one is answered."""

import asyncio
from pathlib import Path

import pytest

from sda_platform.lake.errors import Misconfigured
from sda_platform.runtime.nats_server import connect_to
from sda_platform.runtime.processes import free_port

pytest.importorskip("nats")


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("localhost:4222", "write nats://host:port or tls://host:port"),
        ("http://localhost:4222", "write nats://host:port"),
        ("nats://", "write nats://host:port"),
        ("nats://me:se/cret@host:4222", "write nats://host:port"),
        ("nats://me:secret@nats.example.org", "anybody between here and nats.example.org could read"),
    ],
)
def test_a_server_that_cannot_be_meant_is_refused_without_its_password__44_7(server: str, reason: str) -> None:
    with pytest.raises(Misconfigured, match=reason) as refused:
        connect_to(server)
    assert "secret" not in str(refused.value) and "se/cret" not in str(refused.value)


def test_a_trusted_network_needs_no_tls_and_credentials_belong_to_their_user__44_7(tmp_path: Path) -> None:
    connect_to("nats://nats.example.org", is_plain_allowed=True)
    connect_to("tls://nats.example.org")
    (tmp_path / "user.creds").write_text("x")
    (tmp_path / "user.creds").chmod(0o644)
    with pytest.raises(Misconfigured, match=r"SDA_EVENT_STREAM_CREDENTIALS: others may use .*user\.creds"):
        connect_to("nats://127.0.0.1", str(tmp_path / "user.creds"))


def test_a_server_that_does_not_answer_is_named_without_its_password__44_7() -> None:
    port = free_port(0)
    with pytest.raises(ConnectionError, match=f"the server of the stream at 127.0.0.1:{port} does not take it") as gone:
        asyncio.run(connect_to(f"nats://me:secret@127.0.0.1:{port}")())
    assert "secret" not in str(gone.value)
