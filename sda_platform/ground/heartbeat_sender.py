"""The heartbeats of an uplink, sent by a thread of their own: a command that takes long delays none of them."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx

# Beats come a little late; one is due with the look that is nearest to its time.
_ON_TIME: Final = 0.99
# An uplink that takes no answers for longer has stopped anyway.
_MOST_ANSWERS: Final = 1_000


@dataclass(frozen=True)
class HeartbeatAnswer:
    """What the station answered to a heartbeat that was sent at ``sent_s``; monotonic times, seconds."""

    sent_s: float
    received_s: float
    state: dict[str, Any]


class HeartbeatSender:
    """Sends a heartbeat by ``send`` each ``interval_s``, and keeps the answers for who works with them."""

    def __init__(self, interval_s: float, send: Callable[[], dict[str, Any]], monotonic_s: Callable[[], float]) -> None:
        self._interval_s, self._send, self._monotonic_s = interval_s, send, monotonic_s
        self._answers: deque[HeartbeatAnswer] = deque(maxlen=_MOST_ANSWERS)
        self._next_s = self._quiet_until_s = self._took_s = 0.0
        self._since_s: float | None = None
        self._failure: Exception | None = None

    def beat(self) -> None:
        """Send one when it is time; without an answer there is none to take."""
        sent_s = self._monotonic_s()
        if sent_s < max(self._next_s, self._quiet_until_s):
            return
        self._next_s = sent_s + self._interval_s * _ON_TIME
        self._since_s = sent_s
        try:
            state = self._send()
        except (httpx.HTTPError, ValueError):
            return
        except Exception as error:
            # In a thread it would end unseen: the uplink stood by, and the other one took over.
            self._failure = error
            raise
        finally:
            self._took_s, self._since_s = self._monotonic_s() - sent_s, None
        self._answers.append(HeartbeatAnswer(sent_s, self._monotonic_s(), state))

    def delay_s(self, now_s: float) -> float:
        """Return how late an answer is now: the time that the last one took, or for which one is waited."""
        since_s = self._since_s
        return self._took_s if since_s is None else max(self._took_s, now_s - since_s)

    def pause(self, seconds: float) -> None:
        """Send none for so long."""
        self._quiet_until_s = self._monotonic_s() + seconds

    def take_answers(self) -> Iterator[HeartbeatAnswer]:
        """Yield the answers that came since the last call, each once. Raises the error that has ended the
        heartbeats.
        """
        if self._failure is not None:
            raise self._failure
        while self._answers:
            yield self._answers.popleft()


@contextmanager
def beating(beat: Callable[[], None], interval_s: float) -> Iterator[None]:
    """Call ``beat`` each ``interval_s`` in a thread meanwhile."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(interval_s):
            beat()

    threading.Thread(target=run, name="heartbeats", daemon=True).start()
    try:
        yield
    finally:
        done.set()
