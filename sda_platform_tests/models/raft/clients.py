"""Clients of the Raft model: they write, compare and set, read, try again, and keep the history of what they saw."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sda_platform_tests.models.linearizability import COMPARE_AND_SET, READ, WRITE, Operation
from sda_platform_tests.models.raft.log import RegisterRequest
from sda_platform_tests.models.raft.node import RaftNode

_KEYS: Final = ("a", "b")
_RETRY_AFTER: Final = 12
_GIVE_UP_AFTER: Final = 60
_CLIENTS: Final = 3


@dataclass
class Call:
    """One operation on its way; ``request`` None: a read."""

    client: int
    key: str
    kind: str
    value: object
    expected: object
    number: int
    started: int
    tried: int

    @property
    def request(self) -> RegisterRequest:
        """The change as the log has it."""
        return RegisterRequest(self.client, self.number, self.key, self.kind, self.value, self.expected)


class Clients:
    """Three clients, one call each at a time. A client that gives up is followed by one with another id."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self.answered, self.unknown = chance, 0, 0
        self._calls: dict[int, Call] = {}
        self._tokens: dict[int, Call] = {}
        self._active = list(range(_CLIENTS))
        self._issued = self._last_client = self._last_token = 0
        self._last_client = _CLIENTS - 1
        self._done: list[Operation] = []

    def act(self, nodes: Mapping[str, RaftNode], now: int, *, may_begin: bool) -> None:
        """Begin calls, try calls again, give up calls."""
        for place, client in enumerate(self._active):
            call = self._calls.get(client)
            if call is None:
                if may_begin and self._chance.random() < 0.15:
                    self._begin(client, nodes, now)
            elif now - call.started > _GIVE_UP_AFTER:
                self._give_up(call)
                self._last_client += 1
                self._active[place] = self._last_client
            elif now - call.tried > _RETRY_AFTER:
                self._try(call, nodes, now)

    def take_answers(self, node: RaftNode, now: int) -> None:
        """Take what a node answers; one answer in ten is lost, and one to a call that is over is ignored."""
        for token, answer in node.answers:
            call = self._tokens.pop(token)
            is_open = self._calls.get(call.client) is call
            if is_open and self._chance.random() > 0.1:
                del self._calls[call.client]
                self.answered += 1
                value = answer if call.kind == READ else call.value
                self._record(call, now, value, succeeded=bool(answer) if call.kind == COMPARE_AND_SET else True)
        node.answers.clear()

    def history(self) -> list[Operation]:
        """Every operation; those without an answer may have taken effect."""
        for call in list(self._calls.values()):
            self._give_up(call)
        return self._done

    def _begin(self, client: int, nodes: Mapping[str, RaftNode], now: int) -> None:
        self._issued += 1
        kind = self._chance.choice([READ, WRITE, COMPARE_AND_SET])
        expected = self._chance.randint(max(1, self._issued - 4), self._issued) if kind == COMPARE_AND_SET else None
        call = Call(client, self._chance.choice(_KEYS), kind, self._issued, expected, self._issued, now, now)
        self._calls[client] = call
        self._try(call, nodes, now)

    def _try(self, call: Call, nodes: Mapping[str, RaftNode], now: int) -> None:
        """Ask one of the nodes that hold themselves for the leader: it may be a former one."""
        call.tried = now
        leading = [node for node in nodes.values() if node.leading is not None]
        if not leading:
            return
        node = self._chance.choice(leading)
        self._last_token += 1
        self._tokens[self._last_token] = call
        if call.kind == READ:
            node.read(call.key, self._last_token, now)
        else:
            node.submit(call.request, self._last_token)

    def _give_up(self, call: Call) -> None:
        del self._calls[call.client]
        if call.kind != READ:
            self.unknown += 1
            self._record(call, None, call.value)

    def _record(self, call: Call, end: int | None, value: object, *, succeeded: bool = True) -> None:
        kind = call.kind
        assert kind in (READ, WRITE, COMPARE_AND_SET)
        self._done.append(Operation(call.key, kind, call.started, end, value, call.expected, succeeded))  # type: ignore[arg-type]
