"""Commands to a station as their space packets, and its answers."""

from typing import Any

import httpx

from sda_platform.ground.commands import APID
from sda_platform.ground.space_packets import encode_command
from sda_platform.ground.verification import answer_of, decode_reports

COMMAND = {
    "command_id": "c",
    "kind": "SAFE_MODE",
    "token": 1,
    "sender": "primary",
    "expires_time_ns": 10**18,
    "azimuth_deg": None,
    "elevation_deg": None,
}


def packet(sequence_count: int = 0, **changed: Any) -> bytes:
    return encode_command({**COMMAND, **changed}, APID, sequence_count)[0]


def outcome(answer: httpx.Response) -> str:
    reports = decode_reports(answer.content, APID)
    return str(answer_of(reports, reports[0].request_id)["outcome"])
