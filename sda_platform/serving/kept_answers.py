"""Large answers are made once for each tag: an equal tag means equal bytes, so they are never stale."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from starlette.responses import Response

MOST_BYTES: Final = 64 * 2**20
"""Bound of what is kept; the answer that was used longest ago leaves first."""
_MOST_ASKED: Final = 1_000
Asked = tuple[str, ...]
"""What of a request decides the answer from a state."""
_LEAST_BYTES: Final = 2**15


class KeptAnswers:
    """The newest large answers by tag. Requests for one that is being made wait for it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Response] = OrderedDict()
        # What was asked last, with the state that it was answered from and the tag.
        self._asked: OrderedDict[Asked, tuple[str, str]] = OrderedDict()
        self._lock = Lock()
        self._making: dict[str, tuple[Lock, int]] = {}

    def answer(self, tag: str, make: Callable[[], Response], state: str, asked: Asked) -> Response:
        """Return the answer under ``tag``, as ``make`` gives it; its bytes are shared, its headers are the caller's.

        It is `known` by the identity of the ``state`` that it is from, and by what was ``asked``.
        """
        with self._alone(tag):
            if (kept := self._find(tag)) is None:
                kept = make()
                self._keep(tag, kept)
            self._remember(state, asked, tag)
        return _copy(kept)

    def may_know(self, asked: Asked) -> bool:
        """Return whether an answer to this was kept, of whatever state."""
        return asked in self._asked

    def known(self, state: str, asked: Asked) -> tuple[str, Response] | None:
        """Return tag and answer, as `answer` would give it without making it; None where it is not kept."""
        known_state, tag = self._asked.get(asked, ("", ""))
        kept = self._find(tag) if known_state == state else None
        return None if kept is None else (tag, _copy(kept))

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

    def _remember(self, state: str, asked: Asked, tag: str) -> None:
        with self._lock:
            if tag in self._kept:
                self._asked[asked] = state, tag
                self._asked.move_to_end(asked)
            if len(self._asked) > _MOST_ASKED:
                self._asked.popitem(last=False)

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


def _copy(kept: Response) -> Response:
    return Response(kept.body, kept.status_code, dict(kept.headers))
