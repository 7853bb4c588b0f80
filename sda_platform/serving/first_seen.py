"""When the content of each address was first answered as it is: the date of answers from tables of the lake.

A content that comes back after another one has a new date, as soon as the other one was answered. An address that is
forgotten has a later date next time; so a date is never before the change.
"""

from collections import OrderedDict
from threading import Lock
from typing import Final

MOST_ADDRESSES: Final = 1_000


class FirstSeen:
    """The content of each address by its hash, and since when; any thread may ask."""

    def __init__(self, most: int = MOST_ADDRESSES) -> None:
        self._most, self._lock = most, Lock()
        self._seen: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def since_s(self, address: str, content: str, now_s: float) -> float:
        """Return since when an address has this content, Unix time."""
        with self._lock:
            known, since_s = self._seen.pop(address, ("", now_s))
            since_s = since_s if known == content else now_s
            self._seen[address] = content, since_s
            if len(self._seen) > self._most:
                self._seen.popitem(last=False)
        return since_s
