"""A circuit breaker before a subscriber that other machines run: one that is away costs runs no time.

Runs are processes of their own, so the state is a small file in the home. While the breaker is open, no run and no
sensor asks the subscriber. A file that cannot be read or written opens nothing.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import (
    AlertEntry,
    EntriesMark,
    Outcome,
    Subscriber,
    SubscriberUnavailable,
)
from sda_platform.resilience import BreakerRecord

_FILE = "subscriber_breaker.json"
_OPENS_AFTER, _PAUSE_S, _LONGEST_PAUSE_S = 3, 5.0, 30.0
_Answer = TypeVar("_Answer")


class GuardedSubscriber(Subscriber):
    """``subscriber`` behind a breaker, whose state is in the home ``home``."""

    def __init__(self, subscriber: Subscriber, home: Path, now_s: Callable[[], float] = time.time) -> None:
        self._subscriber, self._place, self._now_s = subscriber, home.absolute() / _FILE, now_s
        self.name = subscriber.name
        self.idempotency = subscriber.idempotency

    @override
    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        return self._guarded(lambda: self._subscriber.apply(batch_id, entries))

    @override
    def mark(self, prefix: str = "") -> EntriesMark:
        return self._guarded(lambda: self._subscriber.mark(prefix))

    @override
    def held(self, prefix: str = "") -> list[AlertEntry]:
        return self._guarded(lambda: self._subscriber.held(prefix))

    def _guarded(self, call: Callable[[], _Answer]) -> _Answer:
        before = BreakerRecord.load(self._place)
        if self._now_s() < before.until_s:
            raise SubscriberUnavailable(before.reason)
        try:
            answer = call()
        except SubscriberUnavailable as error:
            before.failed(
                str(error), self._now_s(), opens_after=_OPENS_AFTER, pause_s=_PAUSE_S, longest_s=_LONGEST_PAUSE_S
            ).save(self._place)
            raise
        if before.failures:
            BreakerRecord().save(self._place)
        return answer


def guarded(subscriber: Subscriber, home: Path) -> Subscriber:
    """``subscriber`` behind a breaker, unless it is a file of this machine."""
    return subscriber if isinstance(subscriber, SqliteSubscriber) else GuardedSubscriber(subscriber, home)
