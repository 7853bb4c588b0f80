"""An uplink's side of the link to its station: commands in space packets, promotions and heartbeats in JSON.

Raises httpx.HTTPError alone: an answer that cannot be read is a failed call.
"""

import logging
from itertools import count
from typing import Any, Final

import httpx

from sda_platform.ground.commands import APID, Command
from sda_platform.ground.space_packets import TOKEN_BELOW, UnusablePacket, encode_command
from sda_platform.ground.station_messages import COMMANDS_PATH, HEARTBEATS_PATH, PROMOTIONS_PATH
from sda_platform.ground.verification import answer_of, decode_reports

_log = logging.getLogger(__name__)
COMMAND_TIMEOUT_S: Final = 3.0
"""Longer than a station takes that is slow and no failure: an answer 0.6 s late, and a command of 1.5 s."""


class StationLink:
    """How the uplink ``name`` calls its station, whose APID is ``apid``."""

    def __init__(self, client: httpx.Client, name: str, apid: int = APID) -> None:
        self._client, self._name, self._apid = client, name, apid
        self._counts = count()
        self._reported = ""

    def heartbeat(self) -> dict[str, Any]:
        """Send a heartbeat; returns what the station knows of its uplinks."""
        return self._asked(HEARTBEATS_PATH, {"uplink": self._name})

    def promote(self, above: int, token: int | None = None) -> int:
        """Return the token of a promotion, ``token`` if that of a lease is given; 0: another uplink was sooner."""
        offered = {} if token is None else {"token": token}
        granted = self._asked(PROMOTIONS_PATH, {"uplink": self._name, "above": above, **offered}).get("token")
        if type(granted) is not int or not 0 <= granted < TOKEN_BELOW:
            raise httpx.RemoteProtocolError(f"the station grants the token {granted!r}"[:80])
        return granted

    def send(self, command: Command, token: int) -> dict[str, Any]:
        """Send a command under ``token``; returns what the station reports (`verification.answer_of`)."""
        fields = {
            "command_id": command.command_id,
            "kind": command.kind,
            "azimuth_deg": command.azimuth_deg,
            "elevation_deg": command.elevation_deg,
            "token": token,
            "sender": self._name,
            "expires_time_ns": command.expires_ns,
        }
        packet, request_id = encode_command(fields, self._apid, next(self._counts))
        answer = self._client.post(
            COMMANDS_PATH,
            content=packet,
            headers={"Content-Type": "application/octet-stream"},
            timeout=COMMAND_TIMEOUT_S,
        ).raise_for_status()
        try:
            found = answer_of(decode_reports(answer.content, self._apid), request_id)
        except UnusablePacket as error:
            reason = f"the station's answer: {error}"
            if reason != self._reported:
                _log.warning(reason)
            self._reported = reason
            raise httpx.RemoteProtocolError(reason, request=answer.request) from None
        self._reported = ""
        return found

    def _asked(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._client.post(path, json=body).raise_for_status()
        try:
            found = answer.json()
        except (ValueError, RecursionError):  # RecursionError: deep nesting
            found = None
        if not isinstance(found, dict):
            raise httpx.RemoteProtocolError("the station's answer is no object", request=answer.request)
        return found
