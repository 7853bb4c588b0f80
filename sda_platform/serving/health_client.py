"""The health report of a running lookup endpoint."""

import ssl
from typing import Any, Final

import httpx

_TIMEOUT_S: Final = 5.0


class NoHealth(Exception):
    """The endpoint does not answer or its answer is no health report; the text has the reason."""


def fetch_health(address: str, trust: ssl.SSLContext | None = None) -> dict[str, Any]:
    """Return the answer of the endpoint at ``address`` (host:port) to ``/health``; with TLS by ``trust``.

    Raises NoHealth.
    """
    try:
        scheme = "https" if trust else "http"
        answer = httpx.get(f"{scheme}://{address}/health", timeout=_TIMEOUT_S, verify=trust or True)
        answer.raise_for_status()
        health = dict(answer.json())
        if "catalogue" not in health:
            raise ValueError("another program may have its port")
        return health
    except (httpx.HTTPError, TypeError, ValueError) as error:
        raise NoHealth(f"the lookup endpoint at {address} does not answer: {error}") from None
