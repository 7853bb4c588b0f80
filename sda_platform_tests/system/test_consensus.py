"""The real etcd cluster under partitions, pauses and kills: what clients saw must be linearizable."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from sda_platform.ground.failure_detection import CROSS_REGION
from sda_platform.ground.heartbeat_sender import beating
from sda_platform.ground.log import CommandLog
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_server import serve
from sda_platform.ground.uplink import STEP_S, TIMEOUT_S, Uplink, UplinkSettings
from sda_platform.ground.uplink_lease import UplinkLease
from sda_platform.lake.errors import Unavailable
from sda_platform.orchestration.leases import EtcdLeases, LeaseTaken
from sda_platform_tests.models.linearizability import Operation, is_linearizable, unlinearizable_keys
from sda_platform_tests.support import stepped_clock
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.etcd_cluster import EtcdCluster, etcd_cluster
from sda_platform_tests.support.etcd_histories import Recorder, RegisterClient
from sda_platform_tests.support.etcd_server import etcd_binary
from sda_platform_tests.support.running_platform import eventually

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(etcd_binary() is None, reason="no etcd here: `make setup-test` installs it where it may"),
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="partitions read /proc"),
]
TTL_S = 4
AFTER_S = 2.0
"""How long clients go on after the cluster has a leader again."""
STEPPED_TTL_S = 6
HOUR_S = 3600.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 3) as running:
        yield running


def test_histories_under_partition_pause_and_kill_are_linearizable__OR30(cluster: EtcdCluster) -> None:
    recorder = Recorder(cluster.endpoints)
    time.sleep(AFTER_S)
    for fault in ("partition", "pause", "kill", "follower"):
        recorder.renew(fault)
        time.sleep(AFTER_S / 4)
        leader = cluster.leader()
        others = [name for name in cluster.names if name != leader]
        victim = others[0] if fault == "follower" else leader
        if fault in ("partition", "follower"):
            cluster.partition({victim})
        elif fault == "pause":
            cluster.pause(victim)
        else:
            cluster.kill(victim)
        cluster.leader([name for name in cluster.names if name != victim])
        time.sleep(AFTER_S)
        cluster.heal()
        if fault == "kill":
            cluster.start(victim)
        time.sleep(AFTER_S)
    history = recorder.finished()
    assert unlinearizable_keys(history) == []
    answered = Counter(each.key.rstrip("0123456789") for each in history if each.end is not None)
    assert min(answered[fault] for fault in ("partition", "pause", "kill", "follower")) > 50, answered
    assert any(each.end is None for each in history), "the faults must leave calls without an answer"


def test_an_isolated_leader_acknowledges_nothing_and_its_local_reads_are_found_out__OR6_OR7_OR28(
    cluster: EtcdCluster,
) -> None:
    old = cluster.leader()
    rest = [name for name in cluster.names if name != old]
    isolated = RegisterClient(cluster.endpoints[old])
    began = time.monotonic()
    isolated.write("seen", "before")
    written = time.monotonic()
    cluster.partition({old})
    try:
        new = cluster.leader(rest)
        with pytest.raises(httpx.HTTPError):
            isolated.write("lost", "never")
        with pytest.raises(httpx.HTTPError):
            isolated.read("seen")
        start = time.monotonic()
        RegisterClient(cluster.endpoints[new]).write("seen", "after")
        end = time.monotonic()
        stale = isolated.read("seen", is_local=True)
    finally:
        cluster.heal()
    history = [
        Operation("seen", "write", began, written, "before"),
        Operation("seen", "write", start, end, "after"),
        Operation("seen", "read", time.monotonic(), time.monotonic() + 1, stale),
    ]
    assert stale == "before"
    assert not is_linearizable(history), "the checker must find a stale read of a real cluster"


def test_a_member_whose_disk_is_full_ends_and_one_with_a_damaged_log_does_not_start__OR9_OR30(
    cluster: EtcdCluster,
) -> None:
    recorder = Recorder(cluster.endpoints)
    recorder.renew("full")
    time.sleep(AFTER_S / 4)
    victim = cluster.leader()
    cluster.fill_disk(victim)
    cluster.leader([name for name in cluster.names if name != victim])
    time.sleep(AFTER_S)
    recorder.renew("damaged")
    copy = cluster.damage_log(victim)
    assert cluster.refuses_to_start(victim)
    assert eventually(lambda: recorder.answered("damaged") > 20, 60.0)
    cluster.repair_log(victim, copy)
    cluster.start(victim)
    recorder.renew("repaired")
    cluster.leader()
    time.sleep(AFTER_S)
    history = recorder.finished()
    assert unlinearizable_keys(history) == []
    answered = Counter(each.key.rstrip("0123456789") for each in history if each.end is not None)
    assert min(answered[part] for part in ("full", "damaged", "repaired")) > 20, answered


CLOCKS = pytest.mark.skipif(not stepped_clock.is_possible(), reason="no program has a wall clock of its own here")


@CLOCKS
def test_a_stepped_program_sees_its_own_wall_clock_and_the_common_monotonic_one() -> None:
    code = "import time\nfor _ in range(3): input(); print(time.time(), time.monotonic(), flush=True)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process, clock = stepped_clock.started([sys.executable, "-c", code], **pipes)
    assert process.stdin and process.stdout
    for step_s, offset_s in ((0.0, 0.0), (HOUR_S, HOUR_S), (-3 * HOUR_S, -2 * HOUR_S)):
        clock.step(step_s)
        process.stdin.write(b"\n")
        process.stdin.flush()
        wall_s, monotonic_s = (float(each) for each in process.stdout.readline().split())
        assert wall_s - time.time() == pytest.approx(offset_s, abs=10.0)
        assert monotonic_s == pytest.approx(time.monotonic(), abs=10.0)
    assert process.wait() == 0


@CLOCKS
def test_steps_of_the_wall_clock_change_neither_histories_nor_the_length_of_a_lease__OR30_ML3(
    tmp_path: Path,
) -> None:
    with etcd_cluster(tmp_path, 3, own_clocks=True) as cluster:
        step_the_clocks(cluster)


def step_the_clocks(cluster: EtcdCluster) -> None:
    recorder, leader = Recorder(cluster.endpoints), cluster.leader()
    leases = {name: EtcdLeases(list(cluster.endpoints.values()), name) for name in ("mine", "other")}
    lease = leases["mine"].acquire("stepped", STEPPED_TTL_S)
    reads = {name: clock.reads for name, clock in cluster.clocks.items()}
    for epoch, seconds in (("forward", HOUR_S), ("back", -2 * HOUR_S)):
        recorder.renew(epoch)
        cluster.clocks[leader].step(seconds)
        time.sleep(AFTER_S / 2)
        leases["mine"].renew(lease)
        with pytest.raises(LeaseTaken):
            leases["other"].acquire("stepped", STEPPED_TTL_S)
        (held,) = (each for each in leases["other"].held() if each.name == "stepped")
        assert 0 < held.expires_in_s <= STEPPED_TTL_S, (
            f"after a step {epoch} the rest of a lease is no hour more or less"
        )
        for name in cluster.names:
            cluster.clocks[name].step(0 if name == leader else -seconds / 2)
        time.sleep(AFTER_S / 2)
    # Nobody renews it now: it ends when its time is over, although the leader's clock is an hour late.
    began_s = time.monotonic()

    def is_free() -> bool:
        with suppress(Unavailable):
            leases["other"].acquire("stepped", STEPPED_TTL_S)
            return True
        return False

    assert eventually(is_free, 10 * STEPPED_TTL_S, pause_s=0.2)
    assert time.monotonic() - began_s > STEPPED_TTL_S / 4, "it did not end at once"
    history = recorder.finished()
    for name, clock in cluster.clocks.items():
        assert clock.reads > reads[name], f"{name} has read its stepped clock"
    assert unlinearizable_keys(history) == []
    answered = Counter(each.key.rstrip("0123456789") for each in history if each.end is not None)
    assert min(answered["forward"], answered["back"]) > 20, answered


def test_an_uplink_whose_etcd_is_cut_off_stops_before_the_other_one_takes_its_lease__GF23_ML5(
    cluster: EtcdCluster, tmp_path: Path
) -> None:
    leader = cluster.leader()
    cut, *others = sorted(cluster.names, key=lambda name: name != leader)
    station = DurableStation(tmp_path / "station.sqlite", time.time_ns)
    server = serve(station, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    lake = lake_at(tmp_path / "lake", now_ns=time.time_ns())

    def uplink(name: str, members: Sequence[str]) -> Uplink:
        leases = EtcdLeases([cluster.endpoints[each] for each in members], name, timeout_s=1.0)
        log = CommandLog(lake, str(tmp_path / "landing"), "atlantic")
        client = httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", timeout=TIMEOUT_S)
        settings = UplinkSettings(name, CROSS_REGION, failback_after_s=None)
        return Uplink(settings, log, client, time.time_ns, lease=UplinkLease(leases, "atlantic", time.monotonic, TTL_S))

    uplinks = [uplink("primary", [cut]), uplink("backup", others)]
    seen, done = list[tuple[bool, ...]](), Event()

    def act(mine: Uplink) -> None:
        with beating(mine.beat, STEP_S):
            while not done.is_set():
                mine.step()
                time.sleep(STEP_S)

    threads = [Thread(target=act, args=(each,)) for each in uplinks]
    try:
        threads[0].start()
        assert eventually(lambda: uplinks[0].is_active, 30.0)
        threads[1].start()
        commands = CommandLog(lake, str(tmp_path / "landing"), "atlantic")
        for number in range(20):
            commands.issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=f"before-{number}")
        assert eventually(lambda: len(executions(station)) == 20, 60.0)
        cluster.partition({cut})
        cut_s = time.monotonic()

        def backup_commands() -> bool:
            leases = [each.lease for each in uplinks]
            seen.append(tuple(lease is not None and lease.is_held for lease in leases))
            return uplinks[1].is_active

        assert eventually(backup_commands, 60.0, pause_s=0.05)
        took_s = time.monotonic() - cut_s
        assert not uplinks[0].is_active
        for number in range(20):
            commands.issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=f"after-{number}")
        assert eventually(lambda: len(executions(station)) == 40, 60.0)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        cluster.heal()
        server.shutdown()
    assert (True, True) not in seen, "two leases of one station overlapped"
    assert sorted(executions(station)) == sorted(f"{when}-{n}" for when in ("before", "after") for n in range(20))
    assert took_s < 30.0
    assert {sender for command, sender in station_rows(station) if command.startswith("after")} == {"backup"}


def station_rows(station: DurableStation) -> list[tuple[str, str]]:
    """Id and sender of each execution."""
    return list(station._database.execute("SELECT command_id, sender FROM executions"))


def executions(station: DurableStation) -> list[str]:
    """Ids of the executed commands."""
    return [command for command, _ in station_rows(station)]
