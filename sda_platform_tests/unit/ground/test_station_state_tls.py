"""Station state of other machines is read and written over TLS, by the rule of the subscriber."""

import ssl
from typing import Any

import pg8000.native
import pytest

from sda_platform.ground.station_state import StationState
from sda_platform.lake.errors import Misconfigured


class Connected(Exception):
    """The connection would be made now."""


@pytest.mark.parametrize(
    ("server", "verifies"),
    [
        ("127.0.0.1", None),
        ("db.example.org", True),
        ("192.0.2.7", True),
        ("192.0.2.7?sslmode=verify-full", True),
        ("192.0.2.7?sslmode=verify-ca", False),
        ("192.0.2.7?sslmode=disable", None),
    ],
)
def test_beyond_this_machine_the_server_is_verified(
    monkeypatch: pytest.MonkeyPatch, server: str, verifies: bool | None
) -> None:
    host, _, query = server.partition("?")
    contexts: list[ssl.SSLContext | None] = []

    def connect(*_: Any, **options: Any) -> None:
        contexts.append(options["ssl_context"])
        raise Connected

    monkeypatch.setattr(pg8000.native, "Connection", connect)
    with pytest.raises(Connected):
        StationState([f"postgresql://sda:secret@{host}/sda{query and '?'}{query}"]).statuses()
    (context,) = contexts
    assert (context and context.check_hostname) == verifies
    assert context is None or context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("query", ["sslmode=require-it", "ssl=off"])
def test_an_unknown_parameter_is_refused_without_the_password(query: str) -> None:
    with pytest.raises(Misconfigured, match="SDA_STATION_STATE: ") as refused:
        StationState([f"postgresql://sda:secret@192.0.2.7/sda?{query}"]).statuses()
    assert "secret" not in str(refused.value)
