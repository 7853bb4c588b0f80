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
_LEAST_BYTES: Final = 2**15


class KeptAnswers:
    """The newest large answers by tag. Requests for one that is being made wait for it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Response] = OrderedDict()
        # What was asked last, with the state that it was answered from and the tag.
        self._asked: OrderedDict[tuple[str, ...], tuple[str, str]] = OrderedDict()
        self._lock = Lock()
        self._making: dict[str, tuple[Lock, int]] = {}

    def answer(self, tag: str, make: Callable[[], Response], asked: tuple[str, ...]) -> Response:
        """Return the answer under ``tag``, as ``make`` gives it; its bytes are shared, its headers are the caller's.

        ``asked``: the identity of the state that it is from, and what was asked, by which it is `known`.
        """
        with self._alone(tag):
            if (kept := self._find(tag)) is None:
                kept = make()
                self._keep(tag, kept)
            self._remember(asked, tag)
        return _copy(kept)

    def may_know(self, asked: tuple[str, ...]) -> bool:
        """Return whether this was answered last from any state, and kept."""
        return asked in self._asked

    def known(self, asked: tuple[str, ...]) -> tuple[str, Response] | None:
        """Return tag and answer, as `answer` would give it without making it; None where it is not kept."""
        state, *what = asked
        found = self._asked.get(tuple(what))
        if found is None or found[0] != state or (kept := self._find(found[1])) is None:
            return None
        return found[1], _copy(kept)

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

    def _remember(self, asked: tuple[str, ...], tag: str) -> None:
        state, *what = asked
        with self._lock:
            if tag in self._kept:
                self._asked[tuple(what)] = state, tag
                self._asked.move_to_end(tuple(what))
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
