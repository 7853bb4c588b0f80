"""Signatures of what became of a command: an uplink signs its events with the keys that it shares with its station."""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from sda_platform.formats.ground_events import GroundEvent
from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import UNSIGNED, SigningKey, SigningKeys

_SIGNED: Final = tuple(each.name for each in fields(GroundEvent) if each.name != "signature")


class EventKeys:
    """The keys of `SDA_STATION_KEYS`; without any, events are not signed and all of them count."""

    def __init__(self, keys: SigningKeys = UNSIGNED) -> None:
        self._keys = keys

    def now(self) -> Sequence[SigningKey] | None:
        """Return the keys as they are now: none while their file cannot be used; None where there are to be none."""
        if not self._keys:
            return None
        try:
            return list(self._keys)
        except Misconfigured:
            return []

    def signed(self, event: GroundEvent) -> GroundEvent:
        """Return the event with the signature of the first key, if it can be had."""
        keys = self.now()
        return replace(event, signature=_signature(keys[0], vars(event))) if keys else event


def is_signed(event: Mapping[str, Any], keys: Sequence[SigningKey] | None) -> bool:
    """Return whether one of the ``keys`` signed an event; None: it need not be signed."""
    if keys is None:
        return True
    signature = str(event["signature"] or "").encode()
    return any(hmac.compare_digest(signature, _signature(key, event).encode()) for key in keys)


def _signature(key: SigningKey, event: Mapping[str, Any]) -> str:
    # A table has nothing where an event has an empty text.
    text = json.dumps([event[name] or "" for name in _SIGNED])
    return f"{key.id}:{hmac.digest(key.secret, b'event' + bytes(1) + text.encode(), 'sha256').hex()}"
