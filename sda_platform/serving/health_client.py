"""The health report of a running lookup endpoint."""

import ssl
from typing import Any, Final

import httpx

_TIMEOUT_S: Final = 5.0


class NoHealth(Exception):
    """The endpoint does not answer or its answer is no health report; the text has the reason."""


def fetch_health(url: str, trust: ssl.SSLContext | None = None) -> dict[str, Any]:
    """Return the answer of the endpoint at ``url`` to ``/health``; with TLS by ``trust``. Raises NoHealth."""
    try:
        answer = httpx.get(f"{url}/health", timeout=_TIMEOUT_S, verify=trust or True)
        answer.raise_for_status()
        health = dict(answer.json())
        if "catalogue" not in health:
            raise ValueError("another program may have its port")
        return health
    except (httpx.HTTPError, TypeError, ValueError) as error:
        raise NoHealth(f"the lookup endpoint at {url} does not answer: {error}") from None
