"""What to do when a call or a task fails: retries with pauses, a circuit breaker, budgets, quotas; time is passed in.

Shared by everything that tries again: runs, deliveries, collectors.
"""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import IntEnum
from pathlib import Path
from random import Random
from threading import Lock
from time import monotonic
from typing import Final, TypeVar

_Answer = TypeVar("_Answer")


class Transient(Exception):
    """A failure that passes by itself. ``retry_after_s``: the pause that the other side requested, seconds."""

    retry_after_s = 0.0


def pause_s(attempt: int, *, base_s: float, cap_s: float, seed: str) -> float:
    """Return seconds to wait after failed ``attempt`` (from 1): each drawn between ``base_s`` and thrice the one
    before.

    Decorrelated jitter, so that clients that failed together do not return together (AWS architecture blog,
    "Exponential Backoff And Jitter", 2015). A pure function of its arguments: who remembers only how often it tried
    continues the sequence of ``seed``.
    """
    random, pause = Random(seed), base_s
    for _ in range(attempt):
        pause = min(cap_s, random.uniform(base_s, 3 * pause))
    return pause


def doubling_s(attempt: int, *, base_s: float, cap_s: float) -> float:
    """Return seconds to wait before ``attempt`` (from 1): ``base_s``, twice that, and so on up to ``cap_s``."""
    return min(cap_s, base_s * 2.0 ** min(attempt - 1, 32))


def retry_after_s(header: str | None, *, now: datetime, cap_s: float) -> float:
    """Return seconds in a Retry-After header, given as seconds or as a date, at most ``cap_s``; 0 for any other text.

    RFC 9110, section 10.2.3.
    """
    if not header:
        return 0.0
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), cap_s)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # each is raised for some texts
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), cap_s)


@dataclass(frozen=True)
class RetryPolicy:
    """How often one call is tried, and the bounds of the pauses between, seconds; only `Transient` errors are retried.

    A pause is drawn with decorrelated jitter (`pause_s`), and is at least what the other side requested.
    """

    attempts: int = 3
    first_pause_s: float = 1.0
    longest_pause_s: float = 30.0

    def pause_after(self, attempt: int, error: Transient, seed: str) -> float:
        """Return seconds to wait after ``attempt`` (from 1) failed with ``error``. Raises ``error`` after the
        last one.
        """
        if attempt >= self.attempts:
            raise error
        drawn_s = pause_s(attempt, base_s=self.first_pause_s, cap_s=self.longest_pause_s, seed=seed)
        return min(max(drawn_s, error.retry_after_s), self.longest_pause_s)

    def call(self, attempt: Callable[[], _Answer], *, seed: str, sleep: Callable[[float], object]) -> _Answer:
        """Return the answer of ``attempt``, which is called until it answers. Raises its last error."""
        made = 0
        while True:
            made += 1
            try:
                return attempt()
            except Transient as error:
                wait_s = self.pause_after(made, error, seed)
            sleep(wait_s)

    async def call_async(
        self, attempt: Callable[[], Awaitable[_Answer]], *, seed: str, sleep: Callable[[float], Awaitable[object]]
    ) -> _Answer:
        """Call a coroutine function as `call` does."""
        made = 0
        while True:
            made += 1
            try:
                return await attempt()
            except Transient as error:
                wait_s = self.pause_after(made, error, seed)
            await sleep(wait_s)


@dataclass
class RestartBudget:
    """At most ``restarts`` within ``window_s``; the next one is refused."""

    restarts: int = 5
    window_s: float = 60.0
    _spent_s: deque[float] = field(default_factory=deque)  # at most `restarts` long

    def spend(self, now_s: float) -> bool:
        """Return whether one more restart is allowed at ``now_s``; counts it if so."""
        while self._spent_s and now_s - self._spent_s[0] >= self.window_s:
            self._spent_s.popleft()
        if len(self._spent_s) >= self.restarts:
            return False
        self._spent_s.append(now_s)
        return True


@dataclass
class RetryBudget:
    """Retries are at most ``share`` of the first attempts of the last ``window_s``, and one where there were few.

    So a dependency that fails gets at most a tenth more calls.
    """

    share: float = 0.1
    window_s: float = 10.0
    _calls_s: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))
    _retries_s: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))

    def called(self, now_s: float) -> None:
        """Count a first attempt."""
        self._calls_s.append(now_s)

    def allows_retry(self, now_s: float) -> bool:
        """Return whether one more retry is within the budget at ``now_s``; counts it if so."""
        for times in (self._calls_s, self._retries_s):
            while times and now_s - times[0] >= self.window_s:
                times.popleft()
        if len(self._retries_s) >= max(self.share * len(self._calls_s), 1.0):
            return False
        self._retries_s.append(now_s)
        return True


class OverQuota(Exception):
    """A sender has used more than it may for now; ``wait_s``: seconds until it may send again."""

    def __init__(self, text: str, wait_s: float) -> None:
        super().__init__(text)
        self.wait_s = wait_s


MOST_ACCOUNTS: Final = 10_000
"""Bound of the accounts in memory: senders may be any."""


class Quotas:
    """What each sender may use of each resource in a minute. It pays afterwards.

    A sender within its quota is served, whatever the request turns out to cost: nothing that was begun is refused. Then
    it waits until no more than a minute's use is unpaid. What is unpaid falls by the quota each minute. ``now_s`` is
    monotonic. ``most``: of so many accounts the one that was used longest ago is forgotten.
    """

    def __init__(
        self, per_minute: Mapping[str, float], now_s: Callable[[], float] = monotonic, most: int = MOST_ACCOUNTS
    ) -> None:
        self._per_minute, self._now_s, self._most = per_minute, now_s, most
        self._unpaid: dict[tuple[str, str], tuple[float, float]] = {}
        self._lock = Lock()

    def require(self, sender: str) -> None:
        """Raise OverQuota where ``sender`` must wait."""
        with self._lock:
            waits_s = {name: self._wait_s(sender, name) for name in self._per_minute}
        longest = max(waits_s, key=waits_s.__getitem__)
        if waits_s[longest] > 0:
            more = f"{sender} uses more than {self._per_minute[longest]:,.0f} {longest} a minute"
            raise OverQuota(f"{more}; send again when Retry-After has passed", waits_s[longest])

    def left(self, sender: str, name: str) -> float:
        """Return how much of a resource ``sender`` may use now."""
        with self._lock:
            return max(self._per_minute[name] - self._unpaid_of(sender, name), 0.0)

    def spend(self, sender: str, **used: float) -> None:
        """Account for what ``sender`` has used, by resource."""
        with self._lock:
            for name, amount in used.items():
                unpaid = self._unpaid_of(sender, name) + amount
                self._unpaid.pop((sender, name), None)
                self._unpaid[sender, name] = unpaid, self._now_s()
                if len(self._unpaid) > self._most:
                    del self._unpaid[next(iter(self._unpaid))]

    def _wait_s(self, sender: str, name: str) -> float:
        excess = self._unpaid_of(sender, name) - self._per_minute[name]
        return 60.0 * excess / self._per_minute[name] if excess > 0 else 0.0

    def _unpaid_of(self, sender: str, name: str) -> float:
        unpaid, at_s = self._unpaid.get((sender, name), (0.0, 0.0))
        return max(unpaid - (self._now_s() - at_s) * self._per_minute[name] / 60.0, 0.0)


class BreakerState(IntEnum):
    """As the gauge shows it."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


@dataclass(frozen=True)
class BreakerRecord:
    """A breaker that several processes share, as a small file: one that cannot be read or written opens nothing.

    ``failures``: calls in a row that failed, the last for ``reason``; none is made before wall time ``until_s``.
    """

    failures: int = 0
    until_s: float = 0.0
    reason: str = ""

    def failed(
        self, reason: str, now_s: float, *, opens_after: int, pause_s: float, longest_s: float
    ) -> "BreakerRecord":
        """After one more failure at ``now_s``; from ``opens_after`` on, pauses double from ``pause_s``."""
        beyond = self.failures + 1 - opens_after + 1
        wait_s = doubling_s(beyond, base_s=pause_s, cap_s=longest_s) if beyond > 0 else 0.0
        return BreakerRecord(self.failures + 1, now_s + wait_s, reason)

    @classmethod
    def load(cls, place: Path) -> "BreakerRecord":
        """Return the record in the file at ``place``."""
        try:
            return cls(**json.loads(place.read_text()))
        except (OSError, TypeError, ValueError):
            return cls()

    def save(self, place: Path) -> None:
        """Write it; without failures there is no file."""
        with suppress(OSError):
            if self.failures:
                place.write_text(json.dumps(asdict(self)))
            else:
                place.unlink(missing_ok=True)


@dataclass
class Breaker:
    """Stops calls to a service that mostly fails: opens at half of at least 5 calls in 30 s; probes after 30 s.

    It also opens when the last 5 calls failed, however long they took: few calls do not hide a failure.
    The probe is a lease: one whose outcome is never recorded expires after ``cooldown_s``. Outcomes of calls from
    before the breaker opened change nothing.
    """

    threshold: float = 0.5
    window_s: float = 30.0
    cooldown_s: float = 30.0
    least_calls: int = 5
    _outcomes: deque[tuple[float, bool]] = field(default_factory=lambda: deque(maxlen=1024))
    _opened_s: float | None = None
    _probe_s: float | None = None

    def state(self, now_s: float) -> BreakerState:
        """Return the state of the breaker at ``now_s``."""
        if self._opened_s is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now_s - self._opened_s < self.cooldown_s else BreakerState.HALF_OPEN

    def allows(self, now_s: float) -> bool:
        """Return whether a call may be made at ``now_s``; in the half-open state only one, the probe."""
        state = self.state(now_s)
        if state is not BreakerState.HALF_OPEN:
            return state is BreakerState.CLOSED
        if self._probe_s is not None and now_s - self._probe_s < self.cooldown_s:
            return False
        self._probe_s = now_s
        return True

    def record(self, is_failure: bool, *, began_s: float, now_s: float) -> None:
        """The outcome of a call that began at ``began_s``."""
        if self._opened_s is not None:
            if self._probe_s is None or began_s != self._probe_s:
                return
            self._probe_s, self._opened_s = None, now_s if is_failure else None
            self._outcomes.clear()
            return
        self._outcomes.append((now_s, is_failure))
        recent = [failed for time_s, failed in self._outcomes if now_s - time_s <= self.window_s]
        last = list(self._outcomes)[-self.least_calls :]
        has_streak = len(last) == self.least_calls and all(failed for _, failed in last)
        if has_streak or (len(recent) >= self.least_calls and sum(recent) >= self.threshold * len(recent)):
            self._opened_s = now_s
