"""The connection to the NATS server that gets the events of the catalogue."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sda_platform.edge.address import Address
from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import require_tls, secret_content
from sda_platform.serving.event_stream import TIMEOUT_S, Connect

if TYPE_CHECKING:
    from nats.aio.client import Client


def connect_to(server: str, credentials: str = "", *, is_plain_allowed: bool = False) -> Connect:
    """Return what connects to the NATS server at the URL ``server``, with a file of ``credentials`` if one is named.

    Raises Misconfigured for what is no such URL, or is beyond this machine without TLS unless that is allowed. Also
    where others may read the credentials, or the extra ``nats`` is not installed.
    """
    try:
        import nats
    except ImportError:
        raise Misconfigured(
            "SDA_EVENT_STREAM: the client of NATS is not installed: pip install 'sda-platform[nats]'"
        ) from None
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port or 4222
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("nats", "tls"):
        raise Misconfigured("SDA_EVENT_STREAM: write nats://host:port or tls://host:port, special characters as %XX")
    require_tls(server, "SDA_EVENT_STREAM", is_plain_allowed=is_plain_allowed, schemes=("nats", "tls"))
    address = Address(host, port)
    if credentials:
        secret_content(Path(credentials), "SDA_EVENT_STREAM_CREDENTIALS")

    async def connected() -> "Client":
        reasons: list[Exception] = []

        async def note(reason: Exception) -> None:
            reasons[:] = reasons or [reason]

        options: dict[str, Any] = {"user_credentials": credentials} if credentials else {}
        try:
            return await nats.connect(
                server,
                name="sda-catalogue",
                connect_timeout=round(TIMEOUT_S),
                allow_reconnect=False,
                # By default it would try for two minutes before it says that no server answers.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                error_cb=note,
                **options,
            )
        except (OSError, TimeoutError, nats.errors.Error, json.JSONDecodeError) as error:
            raise ConnectionError(
                f"the server of the stream at {address} does not take it: {[*reasons, error][0]}"
            ) from None

    return connected
