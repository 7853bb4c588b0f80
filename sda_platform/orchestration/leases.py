"""Leases from etcd: one process at a time does what must be done once; its token fences the tables that it writes.

The JSON gateway of etcd 3.4 or newer is used. A lease is a key that only its holder could create, bound to an etcd
lease that expires. Its token is the key's creation revision, which rises with every grant. Time is monotonic, and
counts from before the request. Without ``SDA_ETCD`` the platform is one site: nothing is held and no token is written.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
from pydantic import Field

from sda_platform.clock import iso
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.fencing import while_held
from sda_platform.lake.lake import Lake
from sda_platform.replay.history import History

_TIMEOUT_S = 5.0
_PREFIX = "sda/leases/"


class LeaseTaken(Unavailable):
    """Another process holds the lease: it may be free later."""


class LeaseLost(Unavailable):
    """The lease expired before its holder was done: what it guards must stop."""


@dataclass
class Lease:
    """A lease that is held: until ``expires_s`` on the monotonic clock, unless it is renewed."""

    name: str
    token: int
    lease_id: str
    ttl_s: float
    expires_s: float


@dataclass(frozen=True)
class HeldLease:
    """A lease as etcd has it. ``since_ns`` is by the wall clock of its holder; None: it did not say."""

    name: str
    holder: str
    token: int
    since_ns: int | None
    expires_in_s: int
    ttl_s: int

    def shown(self) -> dict[str, Any]:
        """Describe the lease, for people."""
        since = "" if self.since_ns is None else iso(self.since_ns)
        facts = {"lease": self.name, "holder": self.holder, "token": self.token, "since": since}
        return {**facts, "expires": f"in {self.expires_in_s} of {self.ttl_s} s"}


class EtcdLeases:
    """Grants, renews and releases leases at the first of the ``endpoints`` (http://host:2379) that answers."""

    def __init__(
        self,
        endpoints: Sequence[str],
        holder: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._clients = [httpx.Client(base_url=each, timeout=timeout_s) for each in endpoints]
        self._holder, self._clock = holder, clock

    def acquire(self, name: str, ttl_s: int) -> Lease:
        """Return the lease ``name``. Raises LeaseTaken with its holder, Unavailable where no endpoint answers."""
        asked_s = self._clock()
        lease_id = self._ask("/v3/lease/grant", {"TTL": ttl_s, "ID": 0})["ID"]
        key = _encoded(f"{_PREFIX}{name}")
        is_free = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": 0}
        value = json.dumps({"holder": self._holder, "since_ns": time.time_ns()})
        put = {"request_put": {"key": key, "value": _encoded(value), "lease": lease_id}}
        get = {"request_range": {"key": key}}
        answer = self._ask("/v3/kv/txn", {"compare": [is_free], "success": [put], "failure": [get]})
        if not answer.get("succeeded"):
            self._ask("/v3/lease/revoke", {"ID": lease_id})
            held = answer["responses"][0]["response_range"]["kvs"][0]
            raise LeaseTaken(f"the lease {name} is held by {_holder(held['value'])[0]}")
        return Lease(name, int(answer["header"]["revision"]), lease_id, ttl_s, asked_s + ttl_s)

    def renew(self, lease: Lease) -> None:
        """Extend ``lease`` by its length. Raises LeaseLost once it has expired."""
        asked_s = self._clock()
        if asked_s >= lease.expires_s:
            raise LeaseLost(f"the lease {lease.name} (token {lease.token}) has expired")
        answer = self._ask("/v3/lease/keepalive", {"ID": lease.lease_id})
        if int(answer.get("result", {}).get("TTL", 0)) <= 0:
            lease.expires_s = asked_s
            raise LeaseLost(f"etcd has no lease {lease.name} any more (token {lease.token})")
        lease.expires_s = asked_s + lease.ttl_s

    def release(self, lease: Lease) -> None:
        """Give ``lease`` up; one that is gone already is none to give up."""
        try:
            self._ask("/v3/lease/revoke", {"ID": lease.lease_id})
        except Unavailable:
            return

    def held(self) -> list[HeldLease]:
        """Every lease that is held now, by name. Raises Unavailable."""
        # The end of the range is the least key after all keys that begin with the prefix.
        end = f"{_PREFIX[:-1]}{chr(ord(_PREFIX[-1]) + 1)}"
        found = self._ask("/v3/kv/range", {"key": _encoded(_PREFIX), "range_end": _encoded(end)}).get("kvs", [])
        return [self._held(each) for each in found]

    def _held(self, entry: Mapping[str, Any]) -> HeldLease:
        left = self._ask("/v3/lease/timetolive", {"ID": entry["lease"]})
        holder, since_ns = _holder(entry["value"])
        name = base64.b64decode(entry["key"]).decode().removeprefix(_PREFIX)
        seconds = max(int(left.get("TTL", 0)), 0), int(left.get("grantedTTL", 0))
        return HeldLease(name, holder, int(entry["create_revision"]), since_ns, *seconds)

    def is_held(self, lease: Lease) -> bool:
        """Return whether the holder may still act, by its own clock."""
        return self._clock() < lease.expires_s

    def require(self, lease: Lease) -> None:
        """Raise LeaseLost unless the holder may still act."""
        if not self.is_held(lease):
            raise LeaseLost(f"the lease {lease.name} (token {lease.token}) was lost before its holder was done")

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        failures = []
        for client in self._clients:
            try:
                response = client.post(path, json=body)
                response.raise_for_status()
                return dict(response.json())
            except (httpx.HTTPError, ValueError) as error:
                failures.append(f"{client.base_url}: {error}")
        raise Unavailable(f"no etcd endpoint answers: {'; '.join(failures)}")


class LeaseResource(dg.ConfigurableResource["LeaseResource"]):
    """Where leases come from; without endpoints nothing is held."""

    endpoints: list[str] = Field(default=[], description="Addresses of etcd, such as http://127.0.0.1:2379.")
    holder: str = Field(default="platform", description="Who holds a lease, for the message to others.")
    ttl_s: int = Field(default=30, ge=2, description="Length of a lease; it is renewed three times as often, seconds.")

    def held(self) -> list[HeldLease]:
        """Every lease that is held now; none without endpoints. Raises Unavailable."""
        return EtcdLeases(self.endpoints, self.holder).held() if self.endpoints else []

    @contextmanager
    def guarded(self, store: Lake, name: str) -> Iterator[Lake]:
        """Yield ``store`` under the site lease ``name``: commits carry its token, and it is released afterwards.

        Raises LeaseTaken where another process holds it. A holder that has lost its lease does not write any more: its
        write raises LeaseLost, and its next plan StaleToken, once another one has committed.
        """
        if not self.endpoints:
            yield store
            return
        leases = EtcdLeases(self.endpoints, self.holder)
        with holding(leases, name, self.ttl_s) as lease:
            store.fencing_token = lease.token
            store.engine = while_held(store.engine, partial(leases.require, lease))
            yield store


@contextmanager
def holding(leases: EtcdLeases, name: str, ttl_s: int) -> Iterator[Lease]:
    """Acquire the lease ``name``, renew it meanwhile, and release it afterwards, if it is still held.

    Raises LeaseTaken, Unavailable.
    """
    lease, done = leases.acquire(name, ttl_s), threading.Event()
    keeper = threading.Thread(target=_keep, args=(leases, lease, done), name=f"lease-{name}", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        done.set()
        keeper.join()
        if leases.is_held(lease):
            leases.release(lease)


def without_leases(_resources: Mapping[str, Any], _live: Lake, _old: History, _scratch: Path) -> Mapping[str, Any]:
    """Return the resource of a replay, which holds no lease: it must not keep the platform from its work."""
    return {"leases": LeaseResource()}


def _keep(leases: EtcdLeases, lease: Lease, done: threading.Event) -> None:
    """Renew until done; a lease that is lost stays lost."""
    while not done.wait(lease.ttl_s / 3):
        try:
            leases.renew(lease)
        except LeaseLost:
            return
        except Unavailable:
            continue


def _holder(value: str) -> tuple[str, int | None]:
    """Return who holds a lease and since when, by the value of its key: JSON, or the name alone."""
    text = base64.b64decode(value).decode()
    try:
        facts = json.loads(text)
        return str(facts["holder"]), int(facts["since_ns"])
    except (ValueError, KeyError, TypeError):
        return text, None


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
