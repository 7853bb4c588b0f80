"""Replicated station state on three real Postgres servers: anomalies under lag, modes that have none, and promotion."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pg8000.native
import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform.ground import station_state
from sda_platform.ground.read_routing import ReadMode, ReadSession
from sda_platform.ground.replica_check import problems, read_problems
from sda_platform.ground.station_state import FormerLeader, OutcomeUnknown, StationState
from sda_platform.lake.errors import Unavailable
from sda_platform_tests.campaign.station_state import HEAVY, LIGHT, campaign_on, struck_replicas
from sda_platform_tests.support.planted_reads import PositionBeforeAnswer
from sda_platform_tests.support.postgres_replicas import PostgresReplicas, postgres_replicas
from sda_platform_tests.support.postgres_server import required_binaries
from sda_platform_tests.support.sampling import IS_SOAK, sampled
from sda_platform_tests.support.struck_replicas import StruckReplicas

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def replicas() -> Iterator[PostgresReplicas]:
    binaries = required_binaries()
    with (
        tempfile.TemporaryDirectory(prefix="sda-replicas-", ignore_cleanup_errors=True) as directory,
        postgres_replicas(binaries, Path(directory), 3) as running,
    ):
        yield running


def server(replicas: PostgresReplicas, number: int) -> pg8000.native.Connection:
    return pg8000.native.Connection("sda", host="127.0.0.1", port=replicas.ports[number], database="postgres")


@contextmanager
def lagging(replicas: PostgresReplicas, number: int) -> Iterator[None]:
    """The follower applies nothing meanwhile, whatever it receives."""
    with server(replicas, number) as follower:
        follower.run("SELECT pg_wal_replay_pause()")
        while follower.run("SELECT pg_get_wal_replay_pause_state()")[0][0] != "paused":
            time.sleep(0.01)
        try:
            yield
        finally:
            follower.run("SELECT pg_wal_replay_resume()")


def chosen(*names: str) -> Callable[[Sequence[str]], str]:
    """A choice of followers that takes these in turn, where they are fit."""
    left = list(names)

    def pick(fit: Sequence[str]) -> str:
        wanted = left.pop(0)
        return wanted if wanted in fit else fit[0]

    return pick


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_three_anomalies_are_there_under_any_follower_and_absent_in_a_session__RT7_RT8_RT10_RT13_RT20_RT21(
    replicas: PostgresReplicas,
) -> None:
    writer = StationState(replicas.urls)
    writer.create()
    for key in ("own", "time", "cause", "effect"):
        writer.write(key, "old")
    until(lambda: all(each.lag_bytes == 0 for each in writer.statuses()))
    any_follower, in_session, in_prefix = ReadMode.ANY_FOLLOWER, ReadMode.SESSION, ReadMode.PREFIX
    with lagging(replicas, 2):
        session = ReadSession()
        writer.write("own", "new", session)
        writer.write("time", "new", session)
        writer.write("cause", "new", session)
        writer.write("effect", "new", session)

        def read(mode: ReadMode, key: str, name: str, by: ReadSession) -> tuple[str | None, str]:
            writer._pick = chosen(name)
            return writer.read(key, mode, by)

        assert read(any_follower, "own", "r2", session) == ("old", "r2"), "the session's own write is missing"
        assert read(in_session, "own", "r2", session) == ("new", "r1")

        for mode, expected in ((any_follower, "old"), (in_session, "new"), (in_prefix, "new")):
            reader = ReadSession()
            assert read(mode, "time", "r1", reader) == ("new", "r1")
            assert read(mode, "time", "r2", reader)[0] == expected, f"{mode}: does time go back?"
            reader = ReadSession()
            assert read(mode, "effect", "r1", reader) == ("new", "r1")
            assert read(mode, "cause", "r2", reader)[0] == expected, f"{mode}: is there an effect without its cause?"

        assert read(in_prefix, "own", "r2", ReadSession()) == ("old", "r2"), "a prefix may be old"
        assert read(ReadMode.LEADER, "own", "r2", ReadSession()) == ("new", "r0")
        lag = next(each for each in writer.statuses() if each.name == "r2")
        assert lag.lag_bytes > 0
        until(lambda: len(problems(3, writer.statuses())) == 1)
        assert "r2 is" in problems(3, writer.statuses())[0]
        assert read_problems(replicas.urls, timeout_s=5.0, most_lag_s=1e6) == [], "the vital allows more than the check"
        assert read(any_follower, "own", "r2", ReadSession()) == ("old", "r2")
        assert read(ReadMode.BOUNDED, "own", "r2", ReadSession()) == ("new", "r1"), "a late follower is not in the pool"
    until(lambda: all(each.lag_bytes == 0 for each in writer.statuses()))
    assert read(in_session, "own", "r2", session) == ("new", "r2"), "a follower that caught up serves the session"
    assert read(ReadMode.BOUNDED, "own", "r2", ReadSession()) == ("new", "r2"), "and is in the pool again"
    with lagging(replicas, 2):
        # Of a thousand reads of a session none goes back, whichever follower is chosen.
        reader, seen = ReadSession(), list[int]()
        choices = StationState(replicas.urls)
        for number in range(20):
            writer.write("count", str(number))
            seen += [int(choices.read("count", in_session, reader)[0] or 0) for _ in range(50)]
        assert seen == sorted(seen)
        choices.close()
    writer.close()


@pytest.mark.parametrize("mode", [ReadMode.SESSION, ReadMode.PREFIX])
def test_a_write_between_the_choice_of_a_replica_and_its_answer_is_not_forgotten__RT10_RT20_RT21(
    replicas: PostgresReplicas, mode: ReadMode
) -> None:
    writer, reader, session = StationState(replicas.urls), StationState(replicas.urls), ReadSession()
    writer.create()
    writer.write("k", "old")
    until(lambda: all(each.lag_bytes == 0 for each in writer.statuses()))
    with lagging(replicas, 2):

        def written_meanwhile(fit: Sequence[str]) -> str:
            assert set(fit) == {"r1", "r2"}
            writer.write("k", "new")
            return "r1"

        reader._pick = written_meanwhile
        assert reader.read("k", mode, session) == ("new", "r1")
        reader._pick = chosen("r2")
        assert reader.read("k", mode, session) == ("new", "r1"), "r2 has not got what the session has seen"
    reader.close()
    writer.close()


@pytest.mark.parametrize("mode", [ReadMode.SESSION, ReadMode.PREFIX])
def test_what_a_follower_showed_before_it_was_acknowledged_is_not_missed_at_the_leader__RT10_RT20_RT21(
    replicas: PostgresReplicas, mode: ReadMode
) -> None:
    state, session = StationState(replicas.urls, timeout_s=1.0), ReadSession()
    state.create()
    with lagging(replicas, 1):
        with pytest.raises(OutcomeUnknown, match="no acknowledgement"):
            state.write("k", "unacknowledged")
        state._pick = chosen("r2")
        assert state.read("k", mode, session) == ("unacknowledged", "r2")
        # Without r2 only the leader is as far: its log has the write, and it does not show it yet.
        without = StationState(replicas.urls[:2], timeout_s=1.0)
        with pytest.raises(Unavailable, match="r0 did not answer the read of k: timed out"):
            without.read("k", mode, session)
        assert without.read("k", mode, ReadSession())[0] is None, "another session has not seen it"
    until(lambda: without.read("k", mode, session)[0] == "unacknowledged")
    for each in (state, without):
        each.close()


def test_what_only_a_former_leader_stored_is_shown_to_no_session__RT10_RT11_RT20(replicas: PostgresReplicas) -> None:
    state, session = StationState(replicas.urls, timeout_s=1.0), ReadSession()
    state.create()
    for follower in (1, 2):
        replicas.crash(follower)
    with pytest.raises(OutcomeUnknown, match="no acknowledgement"):
        state.write("k", "of the leader only")
    replicas.crash(0)
    replicas.start(0)
    # After its start it shows what it has stored, which no follower has.
    assert state.read("k", ReadMode.ANY_FOLLOWER, ReadSession()) == ("of the leader only", "r0")
    with pytest.raises(Unavailable, match="r0 did not answer the read of k"):
        state.read("k", ReadMode.SESSION, session)
    replicas.crash(0)
    for follower in (1, 2):
        replicas.start(follower)
    state.promote("r1", synchronous="r2")
    assert state.read("k", ReadMode.SESSION, session)[0] is None
    state.close()


def command(replicas: PostgresReplicas, *arguments: str) -> Result:
    """`sda ground state` with these arguments."""
    addresses = {"SDA_STATION_STATE": json.dumps(replicas.urls)}
    return CliRunner().invoke(main, ["ground", "state", *arguments], env=addresses)


def test_the_commands_store_and_read_in_a_session_and_name_what_is_wrong__RT8_RT20(replicas: PostgresReplicas) -> None:
    stored = command(replicas, "put", "antenna", "stowed")
    assert stored.exit_code == 0, stored.output
    position = stored.stdout.strip()
    for mode in ("leader", "session", "consistent_prefix"):
        found = command(replicas, "get", "antenna", "--mode", mode, "--after", position)
        assert (found.exit_code, found.stdout) == (0, "stowed\n"), found.output
        name, told = found.stderr.strip().split(", position ")
        assert name in ("r0", "r1", "r2") and int(told) >= int(position)
    with lagging(replicas, 1), lagging(replicas, 2):
        with server(replicas, 0) as leader:
            leader.run("SET synchronous_commit = local")
            leader.run("SELECT pg_logical_emit_message(true, 'more', '')")
            ahead = leader.run("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0]
        found = command(replicas, "get", "antenna", "--after", str(ahead))
        assert "r0 did not answer" in found.stderr, "no follower has what the session has seen, and none acknowledges"
    with lagging(replicas, 2):
        found = command(replicas, "get", "antenna", "--after", str(ahead))
        assert found.exit_code == 0, found.stderr
    unseen = command(replicas, "get", "antenna", "--after", str(int(position) + 10**12))
    assert unseen.exit_code == 1 and "the session has seen" in unseen.stderr
    absent = command(replicas, "get", "nothing")
    assert absent.exit_code == 1 and "has no value of nothing" in absent.stderr
    unknown = command(replicas, "promote", "r7", "--synchronous", "r1")
    assert unknown.exit_code == 1 and "Error: r7 is not promoted: it is no follower that answers" in unknown.stderr
    assert "Traceback" not in unknown.output
    assert command(replicas, "get", "antenna", "--mode", "eventual").exit_code == 2


def test_a_promotion_loses_no_acknowledged_write_and_fences_the_former_leader__RT6_RT11_RT22_RT23(
    replicas: PostgresReplicas,
) -> None:
    state = StationState(replicas.urls, timeout_s=3.0)
    state.create()
    with lagging(replicas, 1), pytest.raises(OutcomeUnknown, match="no acknowledgement"):
        state.write("unknown", "1")
    session = ReadSession()
    with lagging(replicas, 2):
        for number in range(100):
            state.write(f"k{number}", str(number), session)
        with pytest.raises(Unavailable, match="r2 is not promoted: r1 is ahead by"):
            state.promote("r2", synchronous="r1")
    until(lambda: all(each.lag_bytes == 0 for each in state.statuses()))
    with pytest.raises(Unavailable, match="r2 is not promoted: r0 leads, and waits for r1"):
        state.promote("r2", synchronous="r1")
    replicas.crash(0)
    assert command(replicas, "promote", "r1", "--synchronous", "r2").output == "r1 leads generation 2\n"
    until(lambda: {each.name: each.lag_bytes for each in state.statuses()} == {"r1": 0, "r2": 0})
    assert [state.read(f"k{number}", ReadMode.SESSION, session)[0] for number in range(100)] == [
        str(number) for number in range(100)
    ]
    state.write("after", "2")
    assert read_problems(replicas.urls, timeout_s=5.0, most_lag_s=1e6) == ["1 of 3 servers do not answer"]
    until(lambda: {each.generation for each in state.statuses()} == {2})

    replicas.start(0)
    former = StationState(replicas.urls[:1], timeout_s=3.0)
    with pytest.raises(OutcomeUnknown):
        former.write("after", "stale")
    for mode in (ReadMode.LEADER, ReadMode.SESSION, ReadMode.PREFIX, ReadMode.BOUNDED):
        with pytest.raises(Unavailable, match="r0 did not answer the read of k1"):
            former.read("k1", mode, ReadSession())
    assert former.read("k1", ReadMode.ANY_FOLLOWER, ReadSession()) == ("1", "r0"), "which may be old"
    assert state.read("after", ReadMode.LEADER, ReadSession()) == ("2", "r1"), "the newer generation leads"
    former._generation = 2
    with pytest.raises(FormerLeader, match="leads generation 1, but 2 was seen"):
        former.write("after", "stale")
    former.close()
    state.close()
    shown = command(replicas, "replicas", "--json")
    assert {each["name"]: (each["is_leader"], each["generation"]) for each in json.loads(shown.stdout)} == {
        "r0": (True, 1), "r1": (True, 2), "r2": (False, 2),
    }  # fmt: skip

    replicas.crash(1)
    with pytest.raises(FormerLeader, match="r0 leads generation 1, but 2 was seen"):
        StationState(replicas.urls, timeout_s=3.0).read("after", ReadMode.LEADER, ReadSession())
    for more in ((), ("--accept-loss",)):
        refused = command(replicas, "promote", "r0", "--synchronous", "r2", *more)
        assert refused.exit_code == 1 and "r0 is not promoted: it is no follower that answers" in refused.stderr


def test_a_role_without_rights_on_the_log_reads_and_writes(replicas: PostgresReplicas) -> None:
    owner = StationState(replicas.urls, timeout_s=3.0)
    owner.create()
    with server(replicas, 0) as leader:
        leader.run("CREATE ROLE plain LOGIN")
        leader.run("GRANT SELECT, INSERT, UPDATE ON station_state TO plain")
    owner.write("k", "1")
    plain = StationState([url.replace("//sda@", "//plain@") for url in replicas.urls], timeout_s=3.0)
    session = ReadSession()
    plain.write("k", "2", session)
    assert {each.name: each.is_leader for each in plain.statuses()} == {"r0": True, "r1": False, "r2": False}
    assert plain.read("k", ReadMode.SESSION, session)[0] == "2"
    for each in (owner, plain):
        each.close()


def test_a_promotion_that_may_lose_a_write_is_refused_or_accepted_by_name_and_never_leaves_two_leaders__RT11_RT23(
    replicas: PostgresReplicas,
) -> None:
    state = StationState(replicas.urls, timeout_s=3.0)
    state.create()
    until(lambda: all(each.lag_bytes == 0 for each in state.statuses()))
    replicas.crash(2)
    for number in range(5):
        state.write(f"k{number}", str(number))
    replicas.crash(1)
    replicas.crash(0)
    replicas.start(2)
    late = ("promote", "r2", "--synchronous", "r1")
    refused = command(replicas, *late)
    assert refused.exit_code == 1
    assert "r2 is not promoted: only 1 of 3 servers answer as followers" in refused.stderr
    assert [each.is_leader for each in state.statuses()] == [False]
    assert command(replicas, *late, "--accept-loss").output == "r2 leads generation 2\n"
    assert state.read("k0", ReadMode.ANY_FOLLOWER, ReadSession()) == (None, "r2"), "which was accepted"
    replicas.start(0)
    assert [(each.name, each.generation) for each in state.statuses() if each.is_leader] == [("r0", 1), ("r2", 2)]
    assert state.read("k0", ReadMode.ANY_FOLLOWER, ReadSession())[1] == "r2", "the newer generation leads"
    state.close()


_configure = StationState._configure


def configured_until_a_second_leads(state: StationState, name: str, setting: str, value: str) -> None:
    """What `StationState` does, until a promotion fences the former leader."""
    if (setting, value) == ("default_transaction_read_only", "on"):
        raise KeyboardInterrupt
    _configure(state, name, setting, value)


def test_a_promotion_goes_on_after_it_was_interrupted_and_ends_the_writes_of_a_leader_that_works__RT11_RT23(
    replicas: PostgresReplicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StationState(replicas.urls, timeout_s=3.0)
    state.create()
    state.write("k", "1")
    before = state.statuses()
    # A promotion whose process ends as soon as the new leader leads: the former one is not fenced yet.
    with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
        interrupted.setattr(StationState, "_configure", configured_until_a_second_leads)
        state.promote("r1", synchronous="r2")
    assert [each.is_leader for each in before] == [True, False, False]
    assert [(each.name, each.generation) for each in state.statuses() if each.is_leader] == [("r0", 1), ("r1", 2)]
    state.write("k", "2")
    former = StationState(replicas.urls[:1], timeout_s=3.0)
    with pytest.raises(OutcomeUnknown, match="timed out"):
        former.write("k", "no follower acknowledges it")
    assert command(replicas, "promote", "r1", "--synchronous", "r2").output == "r1 leads generation 2\n"
    state.write("k", "3")
    with pytest.raises(OutcomeUnknown, match="read-only transaction"):
        former.write("k", "4")
    assert state.read("k", ReadMode.LEADER, ReadSession()) == ("3", "r1")
    former.close()
    state.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[StruckReplicas]:
    with struck_replicas(required_binaries()) as running:
        yield running


def test_random_histories_on_real_servers_keep_the_promise_of_each_mode__RT6_RT8_RT10_RT11_RT20_RT21(
    cluster: StruckReplicas,
) -> None:
    faults = sampled((*LIGHT, *HEAVY), "replay flickers", "promotion, leader apart")
    with campaign_on(cluster) as campaign:
        for seed, fault in enumerate(faults):
            campaign.history(seed, fault)
    assert campaign.tally.failures == []
    assert campaign.tally.promotions["done"]


def test_a_session_that_advances_before_the_answer_is_found_by_random_histories__RT10_RT20(
    cluster: StruckReplicas,
) -> None:
    with campaign_on(cluster, PositionBeforeAnswer) as campaign:
        # One history in forty finds it, by when its threads run: with 60 of them one test in five failed.
        broken = campaign.tally.broken
        for seed in range(300):
            campaign.history(seed, "replay flickers")
            if broken[ReadMode.SESSION] or broken[ReadMode.PREFIX]:
                break
    assert broken[ReadMode.SESSION] or broken[ReadMode.PREFIX], campaign.tally.failures


@pytest.mark.skipif(not IS_SOAK, reason="half a minute; what must refuse it is tested above")
def test_a_promotion_that_misses_acknowledged_writes_is_found_by_a_history__RT11(
    cluster: StruckReplicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(station_state, "why_unsafe", lambda *_: "")
    monkeypatch.setattr(station_state, "_PROMOTION_S", 1.0)
    with campaign_on(cluster) as campaign:
        campaign.history(0, "promotion, late follower asked")
    assert campaign.tally.broken[ReadMode.LEADER]
