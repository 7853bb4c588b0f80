"""Sites that share a lake: one works, the others stand by and take over."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from sda_platform.lake.errors import Unavailable
from sda_platform.orchestration.leases import Lease, LeaseLost, LeaseTaken
from sda_platform.runtime import running
from sda_platform.runtime.site_lease import TTL_S, SiteLease, site_lease
from sda_platform.runtime.supervisor import Admission
from sda_platform.settings import Settings

S3 = "s3://bucket/lake"


@dataclass
class Store:
    """What etcd would hold; the time is the test's. ``cut``: sites that reach it no more."""

    now_s: float = 0.0
    holder: str = ""
    until_s: float = -1.0
    tokens: int = 0
    cut: set[str] = field(default_factory=set)


@dataclass
class Site:
    """Leases as one site reaches them."""

    name: str
    store: Store

    def acquire(self, name: str, ttl_s: int) -> Lease:
        self._reach()
        if self.store.now_s < self.store.until_s:
            raise LeaseTaken(f"the lease {name} is held by {self.store.holder}")
        self.store.holder, self.store.tokens = self.name, self.store.tokens + 1
        lease = Lease(name, self.store.tokens, "id", ttl_s, self.store.now_s + ttl_s)
        self.store.until_s = lease.expires_s
        return lease

    def renew(self, lease: Lease) -> None:
        self._reach()
        if self.store.tokens != lease.token or not self.is_held(lease):
            raise LeaseLost("another site has it")
        lease.expires_s = self.store.until_s = self.store.now_s + lease.ttl_s

    def release(self, lease: Lease) -> None:
        if self.store.tokens == lease.token:
            self.store.until_s = -1.0

    def is_held(self, lease: Lease) -> bool:
        return self.store.now_s < lease.expires_s

    def _reach(self) -> None:
        if self.name in self.store.cut:
            raise Unavailable("no etcd endpoint answers")


def lease_of(site: str, store: Store) -> SiteLease:
    return SiteLease(Site(site, store), "platform")


def no_pause() -> None:
    raise AssertionError("the lease is free")


def test_a_standby_works_once_the_lease_of_a_lost_site_has_run_out() -> None:
    store, said = Store(), list[str]()
    lease_of("north", store).await_held(said.append, no_pause)

    def second_later() -> None:
        store.now_s += 1.0

    held = lease_of("south", store).await_held(said.append, second_later)
    assert (store.now_s, held.token) == (TTL_S, 2)
    assert said == ["standing by: the lease platform is held by north"], "each reason is said once"


def test_a_site_that_stops_gives_the_lake_to_the_next_at_once() -> None:
    store = Store()
    lease = lease_of("north", store)
    with lease.kept(lease.await_held(print, no_pause), lambda: None):
        pass
    assert lease_of("south", store).await_held(print, no_pause).token == 2


def test_a_site_that_is_cut_off_works_until_its_lease_runs_out_and_then_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sda_platform.runtime.site_lease._PAUSE_S", 0.001)
    store, lost = Store(), threading.Event()
    lease = lease_of("north", store)
    held = lease.await_held(print, no_pause)
    with lease.kept(held, lost.set):
        store.now_s = TTL_S - 1.0
        store.cut.add("north")
        assert not lost.wait(0.05)
        store.now_s = 2.0 * TTL_S
        assert lost.wait(10.0)
    assert lease_of("south", store).await_held(print, no_pause).token == 2


def test_the_lease_is_renewed_while_the_site_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sda_platform.runtime.site_lease._PAUSE_S", 0.001)
    store, lost = Store(), threading.Event()
    lease = lease_of("north", store)
    held = lease.await_held(print, no_pause)
    with lease.kept(held, lost.set):
        for _ in range(5):
            store.now_s += TTL_S / 2
            until = store.now_s + TTL_S
            for _ in range(10_000):
                if held.expires_s >= until or lost.wait(0.001):
                    break
        assert not lost.is_set()
    assert held.token == 1


def test_a_site_that_lost_the_lake_stands_by_and_works_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its platform is stopped at once, and started again when it has the lease; a signal ends both."""
    store, runs = Store(), list[bool]()
    monkeypatch.setattr("sda_platform.runtime.site_lease._PAUSE_S", 0.001)

    def run(_settings: Settings, _say: object, is_lost: threading.Event, admission: Admission) -> None:
        admission(no_pause)
        runs.append(True)
        if len(runs) == 1:
            store.tokens, store.now_s = 5, store.now_s + 2 * TTL_S
            assert is_lost.wait(10.0)

    monkeypatch.setattr(running, "_run", run)
    monkeypatch.setattr(running, "site_lease", lambda _settings: lease_of("north", store))
    running.run_platform(Settings(home=tmp_path), Console(quiet=True))
    assert (runs, store.tokens) == ([True, True], 6)


@pytest.mark.parametrize(
    ("lake", "etcd", "is_shared"),
    [("", ("http://e:2379",), False), (S3, (), False), (S3, ("http://e:2379",), True)],
)
def test_only_a_lake_that_other_sites_reach_has_a_lease(
    tmp_path: Path, lake: str, etcd: tuple[str, ...], is_shared: bool
) -> None:
    found = site_lease(Settings(home=tmp_path, lake=lake, etcd=etcd))
    assert (found is not None) == is_shared
    assert found is None or found.name == f"platform {S3}"
