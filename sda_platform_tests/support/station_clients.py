"""Clients of the station state that read and write at random in the mode of each, and keep what they saw.

`HISTORY_S` is how long they go on when nothing is to be waited for.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import Final

from sda_platform.ground.read_routing import ReadMode, ReadSession
from sda_platform.ground.station_state import OutcomeUnknown, StationState
from sda_platform.lake.errors import Unavailable
from sda_platform_tests.models.read_promises import Call

BOUND_S: Final = 0.2
"""The bound of bounded reads in histories, so that a short lag is beyond it."""
_TIMEOUT_S = 0.3
_PACE_S = 0.004
_AT_CHOICE_S = 0.03
_MOST_LOOKS = 4
CLIENTS: Final[Mapping[str, ReadMode]] = {
    "c0": ReadMode.LEADER,
    "c1": ReadMode.LEADER,
    "c2": ReadMode.SESSION,
    "c3": ReadMode.SESSION,
    "c4": ReadMode.PREFIX,
    "c5": ReadMode.BOUNDED,
    "c6": ReadMode.ANY_FOLLOWER,
}
"""The role of each client and its mode; c0 to c2 also write."""


class History:
    """The calls of one history, and its keys: a register, and facts, each written once and in turn."""

    def __init__(self, seed: int) -> None:
        self.prefix, self.calls, self.done = f"{seed}/", list[Call](), Event()
        self._lock, self._facts = Lock(), list[str]()

    def record(self, call: Call) -> None:
        """Keep a call."""
        with self._lock:
            self.calls.append(call)

    def more(self, calls: int, most_s: float) -> None:
        """Wait for so many more answers, or so long."""
        with self._lock:
            wanted = len(self.calls) + calls
        end_s = time.monotonic() + most_s
        while time.monotonic() < end_s and len(self.calls) < wanted:
            time.sleep(0.01)

    def new_fact(self) -> str:
        """The key of the next fact."""
        with self._lock:
            self._facts.append(f"{self.prefix}f{len(self._facts)}")
            return self._facts[-1]

    def keys(self) -> list[str]:
        """Every key so far, the register first."""
        with self._lock:
            return [self.prefix + "register", *self._facts]


class StationClients:
    """The clients on servers that each reaches by addresses of its own; ``state_of`` makes what each calls."""

    def __init__(self, urls: Mapping[str, Sequence[str]], state_of: Callable[..., StationState] = StationState) -> None:
        self._urls, self._state_of = urls, state_of
        self._states = {name: self._opened(name, random.Random(0)) for name in urls}
        self._pool = ThreadPoolExecutor(len(urls))

    def during(self, seed: int, happens: Callable[[History], None]) -> list[Call]:
        """Let all act until ``happens`` has returned; what they saw."""
        history = History(seed)
        acting = [self._pool.submit(self._act, name, seed, history) for name in self._urls]
        try:
            happens(history)
        finally:
            history.done.set()
        for each in acting:
            each.result()
        return history.calls

    def final_reads(self, calls: Sequence[Call]) -> list[Call]:
        """What the leader has of every key, when all is whole again."""
        found = list[Call]()
        for key in sorted({each.key for each in calls}):
            found += _until_answered(lambda each=key: self._read_at_end(each))  # type: ignore[misc]
        return found

    def _read_at_end(self, key: str) -> list[Call]:
        start_s = time.monotonic()
        value, server = self._states["c0"].read(key, ReadMode.LEADER, ReadSession())
        return [Call("end", ReadMode.LEADER, "read", key, value, start_s, time.monotonic(), server)]

    def close(self) -> None:
        """Close all connections."""
        self._pool.shutdown()
        for state in self._states.values():
            state.close()

    def _opened(self, name: str, chance: random.Random) -> StationState:
        def pick(fit: Sequence[str]) -> str:
            if chance.random() < 0.3:  # the positions are known, and the answer is not: others act meanwhile
                time.sleep(chance.uniform(0.0, _AT_CHOICE_S))
            return chance.choice(fit)

        return self._state_of(self._urls[name], pick=pick, timeout_s=_TIMEOUT_S, most_lag_s=BOUND_S)

    def _act(self, name: str, seed: int, history: History) -> None:
        chance, session, count = random.Random(f"{seed} {name}"), ReadSession(), 0
        writes = {ReadMode.LEADER: 0.4, ReadMode.SESSION: 0.5}.get(CLIENTS[name], 0.0) if name != "c3" else 0.0
        while not history.done.wait(chance.uniform(0, _PACE_S)):
            if chance.random() < 0.02:  # another process of the same session: it has its token, and no more
                self._states[name].close()
                self._states[name] = self._opened(name, chance)
            count += 1
            register, *facts = history.keys()
            if chance.random() < writes:
                key = history.new_fact() if name == "c2" else register
                self._write(name, history, session, key, f"{history.prefix}{name}.{count}")
            elif CLIENTS[name] is ReadMode.LEADER:
                self._read(name, history, session, register)
            else:
                # What is being written, or anything, and again, as a display does.
                key = chance.choice([facts[-1] if facts else register, chance.choice([register, *facts])])
                for _ in range(chance.randint(1, _MOST_LOOKS)):
                    self._read(name, history, session, key)

    def _write(self, name: str, history: History, session: ReadSession, key: str, value: str) -> None:
        start_s, end_s = time.monotonic(), None
        try:
            with suppress(OutcomeUnknown):
                self._states[name].write(key, value, session)
                end_s = time.monotonic()
        except Unavailable:
            return  # nothing was sent
        history.record(Call(name, CLIENTS[name], "write", key, value, start_s, end_s))
        if end_s is None:
            history.done.wait(0.05)  # operations without an answer stay open for ever: few keep the judge quick

    def _read(self, name: str, history: History, session: ReadSession, key: str) -> None:
        start_s = time.monotonic()
        with suppress(Unavailable):
            value, server = self._states[name].read(key, CLIENTS[name], session)
            history.record(Call(name, CLIENTS[name], "read", key, value, start_s, time.monotonic(), server))


def _until_answered(ask: Callable[[], list[Call]]) -> list[Call]:
    """What ``ask`` answers: on a busy machine it may have to be repeated."""
    end_s = time.monotonic() + 30.0
    while True:
        try:
            return ask()
        except Unavailable:
            if time.monotonic() > end_s:
                raise
