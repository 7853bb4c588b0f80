"""Commanders with their keys and rights, and what they request of the station `atlantic`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sda_platform.formats.ground_events import ISSUED, GroundEvent
from sda_platform.ground.commanders import CommandAuthority, Commander
from sda_platform.ground.issued_commands import IssuedCommands
from sda_platform.ground.log import CommandLog
from sda_platform.signing_keys import raw_key
from sda_platform_tests.support.ground_loop import Ground
from sda_platform_tests.support.segments import START_NS, after

RIGHTS: Mapping[str, tuple[set[str], set[str]]] = {
    "ann": ({"SAFE_MODE", "REPOINT"}, {"SAFE_MODE"}),
    "bob": (set(), {"SAFE_MODE"}),
    "scheduler": ({"REPOINT"}, set()),
}
KEYS = {name: Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n, name in enumerate((*RIGHTS, "eve"), 1)}
COMMANDERS = {
    name: Commander(raw_key(KEYS[name].public_key()), frozenset(issues), frozenset(confirms))
    for name, (issues, confirms) in RIGHTS.items()
}


def by(name: str) -> CommandAuthority:
    return CommandAuthority(COMMANDERS, name, KEYS[name])


def request(command_id: str, kind: str = "SAFE_MODE") -> GroundEvent:
    direction = (10.0, 20.0) if kind == "REPOINT" else (None, None)
    times: dict[str, Any] = {"issued_time_ns": START_NS, "expires_time_ns": after(600)}
    return GroundEvent("atlantic", ISSUED, START_NS, command_id=command_id, kind=kind, **times,
                       azimuth_deg=direction[0], elevation_deg=direction[1])  # fmt: skip


def sent(events: list[GroundEvent]) -> tuple[list[str], dict[str, str]]:
    """The commands that would be sent after these events, and the refused ones with the reason."""
    issued = IssuedCommands(COMMANDERS)
    refused = issued.add(asdict(each) for each in events)
    return [each.command_id for each in issued.take_while(lambda _: True)], {c.command_id: why for c, why in refused}


def log_of(ground: Ground, name: str) -> CommandLog:
    return CommandLog(ground.lake, str(ground.landing), "atlantic", by(name))
