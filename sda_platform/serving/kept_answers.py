"""Large answers are made once for each tag: an equal tag means equal bytes, so they are never stale."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from starlette.responses import Response

MOST_BYTES: Final = 64 * 2**20
"""Bound of what is kept; the answer that was used longest ago leaves first."""
_LEAST_BYTES: Final = 2**15


class KeptAnswers:
    """The newest large answers by tag. Requests for one that is being made wait for it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Response] = OrderedDict()
        self._lock = Lock()
        self._making: dict[str, tuple[Lock, int]] = {}

    def answer(self, tag: str, make: Callable[[], Response]) -> Response:
        """Return the answer under ``tag``, as ``make`` gives it; its bytes are shared, its headers are the caller's."""
        with self._alone(tag):
            if (kept := self._find(tag)) is None:
                kept = make()
                self._keep(tag, kept)
        return Response(kept.body, kept.status_code, dict(kept.headers))

    def _find(self, tag: str) -> Response | None:
        with self._lock:
            if tag in self._kept:
                self._kept.move_to_end(tag)
            return self._kept.get(tag)

    def _keep(self, tag: str, answer: Response) -> None:
        if answer.status_code != 200 or not _LEAST_BYTES <= len(answer.body) <= self._most_bytes:
            return
        with self._lock:
            self._kept[tag] = answer
            self._bytes += len(answer.body)
            while self._bytes > self._most_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= len(oldest.body)

    @contextmanager
    def _alone(self, tag: str) -> Iterator[None]:
        with self._lock:
            lock, users = self._making.get(tag, (Lock(), 0))
            self._making[tag] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._making.pop(tag)
                if users > 1:
                    self._making[tag] = lock, users - 1
