"""Views that further pages are answered from: each page of a list is of the state that the first was of.

A state is kept while its pages are fetched. The index cannot reuse the room of what has changed since, so there are few
of them, for a short time.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from sda_platform.serving.view import View

MOST_VIEWS: Final = 64
KEPT_S: Final = 60.0
"""So long after its last page a state is kept."""
LONGEST_S: Final = 600.0
"""So long after its first page it is kept at most, whoever asks for pages of it."""


class NotKept(Exception):
    """The state that a page is of is no longer kept."""


@dataclass
class _Kept:
    view: View
    opened: ExitStack
    used_s: float
    since_s: float
    lock: Lock = field(default_factory=Lock)
    """One thread at a time reads a view, or closes it."""
    is_open: bool = True


class KeptViews:
    """Views by their identity; the one that was used longest ago leaves first."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._views: OrderedDict[str, _Kept] = OrderedDict()

    def keep(self, view: View, opened: ExitStack) -> None:
        """Keep a view, and ``opened``, which it reads from; of a state that is kept already it is closed."""
        now_s = self._now_s()
        kept = _Kept(view, opened, now_s, now_s)
        with self._lock:
            unused = [kept] if view.identity in self._views else []
            self._views.setdefault(view.identity, kept)
            unused += self._outdated()
        _close(unused)

    def has(self, identity: str) -> bool:
        """Tell whether a view is kept."""
        return identity in self._views

    def renew(self, identity: str) -> bool:
        """Keep a view for longer, where it is kept; return whether it is. It waits for no reader."""
        with self._lock:
            if kept := self._views.get(identity):
                kept.used_s = self._now_s()
                self._views.move_to_end(identity)
            return kept is not None

    @contextmanager
    def view(self, identity: str) -> Iterator[View]:
        """The kept view, for this thread alone. Raises NotKept."""
        with self._lock:
            unused = self._outdated()
            kept = self._views.get(identity)
            if kept is not None:
                kept.used_s = self._now_s()
                self._views.move_to_end(identity)
        _close(unused)
        if kept is None:
            raise not_kept()
        with kept.lock:
            if not kept.is_open:
                raise not_kept()
            yield kept.view

    def release(self, *, every: bool = False) -> None:
        """Release the views that were not used for a while, or every view."""
        with self._lock:
            unused = list(self._views.values()) if every else self._outdated()
            if every:
                self._views.clear()
        _close(unused)

    def _outdated(self) -> list[_Kept]:
        now_s = self._now_s()
        old = [
            identity
            for identity, each in self._views.items()
            if each.used_s < now_s - KEPT_S or each.since_s < now_s - LONGEST_S
        ]
        found = [self._views.pop(identity) for identity in old]
        while len(self._views) > MOST_VIEWS:
            found.append(self._views.popitem(last=False)[1])
        return found


def _close(unused: list[_Kept]) -> None:
    for kept in unused:
        with kept.lock:
            kept.is_open = False
            kept.opened.close()


def not_kept() -> NotKept:
    """Make the error of a page whose state is gone."""
    return NotKept("the state of the first page is no longer kept: ask for the first page again")
