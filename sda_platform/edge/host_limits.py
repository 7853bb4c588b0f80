"""When the next request to a public server may be sent: one limit for all sources that request of one host.

Operators count the requests of a client, not those of one of its sources. Space-Track allows 30 requests a minute
and 300 an hour, and suspends accounts that exceed this; both hold if requests are 12 s apart.
"""

import json
from pathlib import Path
from typing import Final

from upath import UPath

from sda_platform.lake import durable

SPACING_S: Final = 12.0
"""Least time between two requests to one host."""
_LONGEST_S: Final = 86_400.0


class HostLimits:
    """The earliest time of the next request, by host; kept in ``directory``, so that a restart repeats no request.

    Times are Unix times in seconds. Bounded by the hosts that are configured.
    """

    def __init__(self, directory: Path, spacing_s: float = SPACING_S) -> None:
        self._path, self._spacing_s = UPath(directory / "hosts.json"), spacing_s

    def wait_s(self, host: str, now_s: float) -> float:
        """Return seconds until a request to ``host`` may be sent, 0: now; a day at most, should the clock be
        set back.
        """
        return min(max(self._next_s().get(host, 0.0) - now_s, 0.0), _LONGEST_S)

    def take(self, host: str, now_s: float, requests: int = 1) -> None:
        """Record that ``requests`` are sent to ``host`` now."""
        self._set(host, now_s + requests * self._spacing_s)

    def put_off(self, host: str, now_s: float, wait_s: float) -> None:
        """Record that ``host`` requested a pause of ``wait_s``, of every source."""
        self._set(host, max(now_s + wait_s, self._next_s().get(host, 0.0)))

    def _set(self, host: str, next_s: float) -> None:
        durable.write(self._path, json.dumps({**self._next_s(), host: next_s}).encode())

    def _next_s(self) -> dict[str, float]:
        if not self._path.exists():
            return {}
        try:
            return {str(host): float(time_s) for host, time_s in json.loads(self._path.read_bytes()).items()}
        except (AttributeError, TypeError, ValueError):
            return {}
