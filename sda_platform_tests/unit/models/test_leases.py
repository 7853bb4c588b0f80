"""Leases and fencing in the model: a thousand schedules with pauses and cut networks, and a bug they must find."""

import pytest

from sda_platform_tests.models.lease_model import FencedStore, LeaseService, run

SEEDS = range(1000)


def test_in_a_thousand_schedules_no_stale_write_is_accepted__ML2_ML5() -> None:
    outcomes = [run(seed) for seed in SEEDS]
    assert [each.seed for each in outcomes if each.stale_writes or each.grants_while_held] == []
    assert sum(each.refused for each in outcomes) > 100, "the schedules must put stale holders to work"
    assert sum(each.accepted for each in outcomes) > 10_000
    assert sum(each.grants for each in outcomes) > 3_000


def test_a_store_that_ignores_tokens_is_found_out__ML7() -> None:
    assert sum(run(seed, checks_tokens=False).stale_writes > 0 for seed in range(100)) > 20


def test_a_service_that_grants_everybody_is_found_out__ML3(monkeypatch: pytest.MonkeyPatch) -> None:
    def grant(service: LeaseService, holder: str, now: int) -> int:
        service.holder, service.expires, service.token = holder, now + service.ttl, service.token + 1
        return service.token

    monkeypatch.setattr(LeaseService, "acquire", grant)
    assert all(run(seed).grants_while_held for seed in range(20))


def test_a_schedule_is_a_function_of_its_seed() -> None:
    assert run(7) == run(7) != run(8)


def test_tokens_rise_with_every_grant_and_a_lease_excludes_until_it_expires__ML1_ML3() -> None:
    service = LeaseService(ttl=10)
    first = service.acquire("a", 0)
    assert first == 1
    assert service.acquire("b", 9) is None
    assert service.acquire("b", 10) == 2
    assert not service.renew("a", first, 10)
    assert service.renew("b", 2, 19)
    assert not service.renew("b", 2, 29)


def test_the_store_refuses_a_token_below_the_highest__ML2() -> None:
    store = FencedStore()
    assert store.write(43, "b")
    assert not store.write(42, "a")
    assert store.write(43, "b")
    assert (store.stale_writes, store.refused) == (0, 1)


@pytest.mark.parametrize("holders", [1, 2, 5])
def test_any_number_of_holders_is_safe(holders: int) -> None:
    assert all(run(seed, holders=max(holders, 2)).stale_writes == 0 for seed in range(50))
