"""What a station accepts: messages that are signed by one of its keys, each once."""

import hmac
import json
import re
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sda_platform.ground.station_messages import (
    HEARTBEATS_PATH,
    KEY,
    NUMBER,
    OLD_NUMBER,
    SENDER,
    SIGNATURE,
    answer_signature,
    signature,
)
from sda_platform.orchestration.webhooks import SigningKey, SigningKeys
from sda_platform.units import SECOND_NS

# Heartbeats need no write each: their durable bound is ahead, and a restarted station continues above it.
_AHEAD_NS: Final = 10 * SECOND_NS
# So that SQLite can store it.
_NUMBER_BELOW: Final = 2**62
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS numbers (sender TEXT, path TEXT, bound INTEGER NOT NULL, PRIMARY KEY (sender, path));
"""


@dataclass(frozen=True)
class MessageRefusal:
    """Why a station does not accept a message, as an HTTP answer."""

    status: int
    reason: str
    above: int = 0
    """The number that the sender's next one must exceed."""

    def body(self) -> bytes:
        """Return the answer's content."""
        return json.dumps({"reason": self.reason, "above": self.above}).encode()


class MessageGuard:
    """What a station accepts: messages signed by one of ``keys``, each once; its memory is a file at ``path``."""

    def __init__(self, keys: SigningKeys, path: Path) -> None:
        self._keys, self._lock = keys, threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30.0)
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(_SCHEMA)
        rows = self._database.execute("SELECT sender, path, bound FROM numbers")
        self._bound: dict[tuple[str, str], int] = {(sender, where): bound for sender, where, bound in rows}
        self._highest = dict(self._bound)

    def refusal(self, path: str, headers: Mapping[str, str], body: bytes) -> MessageRefusal | None:
        """Return why a message is not accepted; None: it is, and no other with its number will be."""
        sender, number = headers.get(SENDER, ""), headers.get(NUMBER, "")
        key = self._key(headers)
        if key is None:
            named = headers.get(KEY)
            return MessageRefusal(401, f"the station has no key {named!r}" if named else "the message is not signed")
        parts = path.encode(), sender.encode(), number.encode(), body
        if not hmac.compare_digest(headers.get(SIGNATURE, "").encode(), signature(key, *parts).encode()):
            return MessageRefusal(401, f"the signature is not that of key {key.id!r}")
        if not _NUMBER.fullmatch(number) or int(number) >= _NUMBER_BELOW:
            return MessageRefusal(400, f"the number {number[:40]!r} is none below {_NUMBER_BELOW}")
        with self._lock:
            highest = self._highest.get((sender, path), 0)
            if int(number) <= highest:
                return MessageRefusal(OLD_NUMBER, f"number {number} is not above {highest}", highest)
            self._accept(sender, path, int(number))
        return None

    def answer_headers(self, path: str, headers: Mapping[str, str], status: int, answer: bytes) -> dict[str, str]:
        """Return what an answer to a message with ``headers`` to ``path`` adds; its signature was that of its key."""
        key = self._key(headers)
        return {SIGNATURE: answer_signature(key, path, headers, status, answer)} if key else {}

    def _key(self, headers: Mapping[str, str]) -> SigningKey | None:
        return next((each for each in self._keys if each.id == headers.get(KEY)), None)

    def _accept(self, sender: str, path: str, number: int) -> None:
        if number > self._bound.get((sender, path), 0):
            bound = number + _AHEAD_NS if path == HEARTBEATS_PATH else number
            self._database.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?, ?)", (sender, path, bound))
            self._bound[sender, path] = bound
        self._highest[sender, path] = number
