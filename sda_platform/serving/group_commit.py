"""Group commit of single updates: one durable micro-segment for all that wait (WL-10).

Order of a put: validate, seal and sync, show, acknowledge. A put is never shown before it is durable, and never
acknowledged before it is shown. While one group is synced, the next one gathers, so the rate rises with the load.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from sda_platform import failpoints

T = TypeVar("T")
MOST_WAITING = 10_000
"""Bound of the requests that wait for their group."""
MOST_SETS = 50_000
"""Sets from which a group is closed."""


class Busy(Exception):
    """Too many puts wait; the sender should try again later."""


class GroupCommit(Generic[T]):
    """Seals groups in a thread of its own. ``seal`` makes sets durable and returns what shows them to readers.

    ``T``: a set, with what its caller keeps with it.
    """

    def __init__(self, seal: Callable[[Sequence[T]], Callable[[], None]]) -> None:
        self._seal = seal
        self._waiting: queue.Queue[tuple[Sequence[T], Future[None]] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="group commit", daemon=True)
        self._thread.start()

    def put(self, element_sets: Sequence[T]) -> Future[None]:
        """A future that ends when the sets are durable and shown. Raises Busy; the future raises what sealing does."""
        acknowledged: Future[None] = Future()
        # A put cannot be withdrawn: a sender that goes away must not end the thread of the others.
        acknowledged.set_running_or_notify_cancel()
        try:
            self._waiting.put_nowait((element_sets, acknowledged))
        except queue.Full:
            raise Busy(f"{MOST_WAITING} puts wait to be sealed; try again in a second") from None
        return acknowledged

    def close(self) -> None:
        """Seal what waits, then end."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, is_last = self._gathered(first)
            self._commit(group)
            if is_last:
                return

    def _gathered(self, first: tuple[Sequence[T], Future[None]]) -> tuple[list[tuple[Sequence[T], Future[None]]], bool]:
        group, sets = [first], len(first[0])
        while sets < MOST_SETS:
            try:
                following = self._waiting.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return group, True
            group.append(following)
            sets += len(following[0])
        return group, False

    def _commit(self, group: Sequence[tuple[Sequence[T], Future[None]]]) -> None:
        try:
            failpoints.hit("serving.gathered")
            show = self._seal([each for sets, _ in group for each in sets])
            failpoints.hit("serving.sealed")
            show()
            failpoints.hit("serving.shown")
        except Exception as error:  # the error of each put goes to its caller
            for _, acknowledged in group:
                acknowledged.set_exception(error)
            return
        for _, acknowledged in group:
            acknowledged.set_result(None)
