"""Clients of an etcd cluster that record what they asked and saw, for the checker of linearizability."""

import base64
import random
import time
from collections.abc import Mapping
from threading import Event, Lock, Thread
from typing import Any, Literal

import httpx

from sda_platform_tests.models.linearizability import Operation

_TIMEOUT_S = 1.5


class RegisterClient:
    """One register of etcd through its JSON gateway: each call is an operation of the history."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT_S)

    def read(self, key: str, *, is_local: bool = False) -> object:
        """The value; ``is_local``: as the member has it, which etcd calls serializable."""
        found = self._ask("/v3/kv/range", {"key": _encoded(key), "serializable": is_local}).get("kvs", [])
        return base64.b64decode(found[0]["value"]).decode() if found else None

    def write(self, key: str, value: str) -> None:
        """Set the value."""
        self._ask("/v3/kv/put", {"key": _encoded(key), "value": _encoded(value)})

    def compare_and_set(self, key: str, expected: str | None, value: str) -> bool:
        """Set the value if it is ``expected``; whether it was."""
        name = _encoded(key)
        target = {"target": "VALUE", "value": _encoded(expected)} if expected else {"target": "CREATE"}
        compare = {"key": name, "result": "EQUAL", **target}
        put = {"request_put": {"key": name, "value": _encoded(value)}}
        return bool(self._ask("/v3/kv/txn", {"compare": [compare], "success": [put]}).get("succeeded", False))

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._client.post(path, json=body)
        answer.raise_for_status()
        return dict(answer.json())


class Recorder:
    """Clients that call at random, each through any member, until `finished`; they keep the history."""

    def __init__(self, endpoints: Mapping[str, str], *, clients: int = 4, keys: int = 6, seed: int = 0) -> None:
        self.history: list[Operation] = []
        self.keys = [f"k{number}" for number in range(keys)]
        self._endpoints, self._seed, self._lock, self._done = dict(endpoints), seed, Lock(), Event()
        self._recent: dict[str, str | None] = {}
        self._threads = [Thread(target=self._call, args=(number,), daemon=True) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def renew(self, epoch: str) -> None:
        """Use other keys from now on, so that each history is short."""
        self.keys = [f"{epoch}{number}" for number in range(len(self.keys))]

    def answered(self, epoch: str) -> int:
        """How many calls with the keys of ``epoch`` were answered so far."""
        with self._lock:
            return sum(each.end is not None and each.key.rstrip("0123456789") == epoch for each in self.history)

    def finished(self) -> list[Operation]:
        """End the clients; every operation."""
        self._done.set()
        for thread in self._threads:
            thread.join()
        return self.history

    def _call(self, number: int) -> None:
        chance = random.Random(self._seed * 1000 + number)
        members = {name: RegisterClient(url) for name, url in self._endpoints.items()}
        count = 0
        while not self._done.wait(chance.uniform(0.01, 0.05)):
            count += 1
            member, key = members[chance.choice(sorted(members))], chance.choice(self.keys)
            if not self._operate(member, key, f"{number}-{count}", chance):
                # Operations without an answer stay open for ever: few of them keep the search short.
                self._done.wait(0.5)

    def _operate(self, member: RegisterClient, key: str, value: str, chance: random.Random) -> bool:
        kind: Literal["read", "write", "compare_and_set"] = chance.choice(["read", "write", "compare_and_set"])
        expected = self._recent.get(key)
        seen: object = value
        succeeded, start = True, time.monotonic()
        try:
            if kind == "read":
                seen = member.read(key)
            elif kind == "write":
                member.write(key, value)
            else:
                succeeded = member.compare_and_set(key, expected, value)
        except httpx.ConnectError:
            return True  # it was never sent
        except (httpx.HTTPError, ValueError):
            if kind != "read":
                self._record(Operation(key, kind, start, None, value, expected))
            return False
        if kind == "write" or (kind == "compare_and_set" and succeeded):
            self._recent[key] = value
        self._record(Operation(key, kind, start, time.monotonic(), seen, expected, succeeded))
        return True

    def _record(self, operation: Operation) -> None:
        with self._lock:
            self.history.append(operation)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
