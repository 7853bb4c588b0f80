"""Leases from a real etcd: one holder at a time, rising tokens, and a stopped holder whose commit is refused."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from sda_platform.ground.assets import shown_leases
from sda_platform.lake.errors import StaleToken, Unavailable
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.leases import EtcdLeases, Lease, LeaseLost, LeaseResource, LeaseTaken
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.models.lease_model import FencedStore
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.etcd_server import etcd_binary, etcd_server
from sda_platform_tests.support.running_platform import eventually

pytestmark = pytest.mark.skipif(
    etcd_binary() is None, reason="no etcd here: `make setup-test` installs it where it may"
)

ROUNDS = 3
# A holder in a process of its own: acquires, prints a line, waits for one, and plans a commit under its token.
HOLDER = """
import sys
from pathlib import Path
import sda_platform.definitions
from sda_platform.lake.errors import StaleToken
from sda_platform.orchestration.leases import EtcdLeases
from sda_platform_tests.models.lease_model import FencedStore
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.support.delta_tables import lake_at
leases = EtcdLeases([sys.argv[1]], "paused")
lease = leases.acquire("pass_schedule", 2)
lake = lake_at(Path(sys.argv[2]))
lake.fencing_token = lease.token
print("held", lease.token, flush=True)
sys.stdin.readline()
try:
    lake.plan(PASS_SCHEDULE)
    print("planned", flush=True)
except StaleToken as error:
    print("refused", error, flush=True)
"""


# A holder that planned a commit under its lease, waits for a line, and writes it then.
WRITER = """
import sys
from pathlib import Path
import sda_platform.definitions
from sda_platform.lake.commit import append
from sda_platform.orchestration.leases import LeaseLost, LeaseResource
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.support.delta_tables import lake_at, rows_of, with_delta_rs
lake = lake_at(Path(sys.argv[2]))
lake.engine = with_delta_rs
with LeaseResource(endpoints=[sys.argv[1]], holder="paused", ttl_s=2).guarded(lake, PASS_SCHEDULE.name):
    plan = lake.plan(PASS_SCHEDULE)
    print("planned", lake.fencing_token, flush=True)
    sys.stdin.readline()
    try:
        append(lake.log(PASS_SCHEDULE), plan, rows_of(PASS_SCHEDULE, []), is_stamped=True, engine=lake.engine)
        print("written", flush=True)
    except LeaseLost as error:
        print("lost", error, flush=True)
"""


@contextmanager
def guarded_when_free(leases: LeaseResource, lake: Lake) -> Iterator[None]:
    """As a run that is repeated while another holds the lease."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with leases.guarded(lake, PASS_SCHEDULE.name):
                yield
            return
        except LeaseTaken:
            assert time.monotonic() < deadline, "the lease of a stopped holder must expire"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with etcd_server(tmp_path_factory.mktemp("etcd")) as address:
        yield address


def test_one_holder_at_a_time_and_tokens_rise__ML1_ML3(etcd: str) -> None:
    one, other = EtcdLeases([etcd], "one"), EtcdLeases([etcd], "other")
    lease = one.acquire("merge", 30)
    with pytest.raises(LeaseTaken, match="held by one"):
        other.acquire("merge", 30)
    one.renew(lease)
    began_ns = time.time_ns()
    one.acquire("uplink/atlantic", 20)
    merge, uplink = other.held()
    assert (merge.name, merge.holder, merge.token, merge.ttl_s) == ("merge", "one", lease.token, 30)
    assert 25 <= merge.expires_in_s <= 30
    assert (uplink.name, uplink.holder) == ("uplink/atlantic", "one")
    assert uplink.since_ns is not None and 0 <= uplink.since_ns - began_ns < 10e9
    shown = shown_leases(LeaseResource(endpoints=[etcd]))["leases"].md_str
    assert "| uplink/atlantic | one |" in shown and "of 20 s |" in shown
    assert "no etcd endpoint answers" in shown_leases(LeaseResource(endpoints=["http://127.0.0.1:9"]))["leases"]
    assert shown_leases(LeaseResource()) == {}
    one.release(lease)
    assert other.acquire("merge", 30).token > lease.token
    with pytest.raises(LeaseLost):
        one.renew(lease)


def test_a_dead_endpoint_is_passed_over_and_none_is_an_error(etcd: str) -> None:
    assert EtcdLeases(["http://127.0.0.1:9", etcd], "one").acquire("elsewhere", 30).token > 0
    with pytest.raises(Unavailable, match="no etcd endpoint answers"):
        EtcdLeases(["http://127.0.0.1:9"], "one").acquire("elsewhere", 30)


def test_a_holder_that_was_stopped_beyond_its_lease_is_refused_at_the_table__ML2_ML5_PW31(
    etcd: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", HOLDER, etcd, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    paused = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    assert paused.stdout and paused.stdin
    try:
        held, token = paused.stdout.readline().split()
        assert held == "held"
        paused.send_signal(signal.SIGSTOP)
        lake = lake_at(tmp_path)
        with guarded_when_free(LeaseResource(endpoints=[etcd], holder="successor", ttl_s=30), lake):
            assert lake.fencing_token is not None and lake.fencing_token > int(token)
            commit(lake, PASS_SCHEDULE, [], fencing_token=lake.fencing_token)
        paused.send_signal(signal.SIGCONT)
        paused.stdin.write("go\n")
        paused.stdin.flush()
        told = paused.stdout.readline()
        assert told.startswith("refused") and f"token {token}" in told and "another holder has taken over" in told
    finally:
        paused.send_signal(signal.SIGCONT)
        paused.kill()
        paused.wait()
    lake.fencing_token = None
    with pytest.raises(StaleToken, match="no lease"):
        lake.plan(PASS_SCHEDULE)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_holder_that_was_stopped_between_plan_and_write_does_not_write__46_5(
    etcd: str, tmp_path: Path, is_stopped: bool
) -> None:
    command = [sys.executable, "-c", WRITER, etcd, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as paused:
        assert paused.stdout and paused.stdin
        planned, token = paused.stdout.readline().split()
        assert planned == "planned"
        if is_stopped:
            paused.send_signal(signal.SIGSTOP)
            # The successor holds the lease, but has not committed: no token in the table refuses the first one.
            with guarded_when_free(LeaseResource(endpoints=[etcd], holder="successor", ttl_s=30), lake_at(tmp_path)):
                paused.send_signal(signal.SIGCONT)
                answer, _ = paused.communicate("go\n", 60)
        else:
            answer, _ = paused.communicate("go\n", 60)
    head = lake_at(tmp_path).head(PASS_SCHEDULE)
    if is_stopped:
        assert answer.startswith(f"lost the lease pass_schedule (token {token}) was lost before its holder was done")
        assert head.commit is None
    else:
        assert (answer, head.sequence) == ("written\n", 1)


def test_holders_that_pause_beyond_their_leases_never_write_stale__ML2_ML5_ML7(etcd: str) -> None:
    stores = {checks: FencedStore(checks) for checks in (True, False)}

    def write(token: int, holder: str) -> None:
        for store in stores.values():
            store.write(token, holder)

    for number in range(ROUNDS):
        slow, quick = EtcdLeases([etcd], f"slow-{number}"), EtcdLeases([etcd], f"quick-{number}")
        stale = slow.acquire("sampled", 2)
        assert slow.is_held(stale), "it looks at its clock, and then pauses until another one holds the lease"
        found: list[Lease] = []
        assert eventually(partial(_acquires, quick, found), 30)
        (lease,) = found
        write(lease.token, "quick")
        write(stale.token, "slow")
        write(lease.token, "quick")
        quick.release(lease)
    fenced, trusting = stores[True], stores[False]
    assert fenced.stale_writes == 0
    assert len(fenced.accepted) == 2 * ROUNDS
    assert fenced.refused == trusting.stale_writes == ROUNDS


def _acquires(leases: EtcdLeases, found: list[Lease]) -> bool:
    """Whether the lease was free; it is in ``found`` then."""
    try:
        found.append(leases.acquire("sampled", 30))
    except LeaseTaken:
        return False
    return True
