"""Ground commands through the real log, station and uplinks, stepped by hand: order, crash, failover, expiry."""

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import httpx
import pytest

from sda_platform.formats.ground_events import HEARTBEATS, LINK_EVENTS, GroundEvent, encode_ground_events
from sda_platform.formats.membership_events import LEFT
from sda_platform.formats.segments import describe_segment
from sda_platform.ground.assets import shown_links
from sda_platform.ground.checks import commands_are_executed_once
from sda_platform.ground.command_states import decode, unrepeated_losses
from sda_platform.ground.commands import BadDirection, Command
from sda_platform.ground.heartbeats import recorded
from sda_platform.ground.links import stale_executions, terms
from sda_platform.ground.log import UnknownKind
from sda_platform.ground.path_states import path_states
from sda_platform.ground.tables import GROUND_COMMANDS, GROUND_EVENTS
from sda_platform.ground.uplink import Uplink
from sda_platform.ground.uplink_lease import TTL_S, UplinkLease
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.orchestration.leases import Lease, LeaseTaken
from sda_platform_tests.models.lease_model import LeaseService
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at, next_window
from sda_platform_tests.support.ground_loop import Ground, ground_at
from sda_platform_tests.support.segments import START_NS

SECOND_NS = 10**9


@dataclass
class ModelledLeases:
    """`models.lease_model.LeaseService` as one holder sees it; real etcd is in `system/test_ground_segment.py`."""

    service: LeaseService
    holder: str
    ground: Ground
    is_cut: bool = False

    def acquire(self, name: str, ttl_s: int) -> Lease:
        token = None if self.is_cut else self.service.acquire(self.holder, self._now())
        if token is None:
            raise LeaseTaken(f"{name} is not to be had")
        return Lease(name, token, "", ttl_s, self._now() + ttl_s)

    def renew(self, lease: Lease) -> None:
        if self.is_cut or not self.service.renew(self.holder, lease.token, self._now()):
            raise Unavailable("no answer")
        lease.expires_s = self._now() + lease.ttl_s

    def release(self, lease: Lease) -> None:
        if not self.is_cut and self.service.token == lease.token:
            self.service.expires = self._now()

    def is_held(self, lease: Lease) -> bool:
        return self._now() < lease.expires_s

    def _now(self) -> int:
        return int(self.ground.now_s)


def leased(ground: Ground, service: LeaseService, name: str) -> tuple[Uplink, ModelledLeases]:
    """An uplink that acts under a lease."""
    leases = ModelledLeases(service, name, ground)
    lease = UplinkLease(leases, "atlantic", lambda: ground.now_s)
    return ground.uplink(name, lease=lease, failback_after_s=None), leases


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_at(tmp_path, monkeypatch) as made:
        yield made


def test_commands_are_sent_by_priority_and_each_step_is_durable__GC1_GC28(ground: Ground) -> None:
    log = ground.log()
    housekeeping = [log.issue("HOUSEKEEPING", expires_in_s=60, command_id=f"h{n}") for n in range(3)]
    safe = log.issue("SAFE_MODE", expires_in_s=60)
    again = log.issue("SAFE_MODE", expires_in_s=60, command_id=safe.command_id)
    assert again.command_id == safe.command_id
    with pytest.raises(UnknownKind, match="no kind of command"):
        log.issue("EXPLODE", expires_in_s=60)
    ground.uplink("primary")
    ground.run(2)
    assert ground.executed() == [safe.command_id, *(each.command_id for each in housekeeping)]
    rows = ground.rows()
    assert {(row["state"], row["executions"], row["detail"]) for row in rows.values()} == {
        ("acknowledged", 1, "executed")
    }
    done = rows[safe.command_id]
    times = [
        int(str(done[name]))
        for name in ("issued_time_ns", "accepted_time_ns", "dispatched_time_ns", "finished_time_ns")
    ]
    assert times == sorted(times)


def test_the_station_refuses_by_its_own_clock_what_has_expired(ground: Ground) -> None:
    """As a request that was an hour on its way, or whose sender was stopped after it had composed it."""
    ground.station_ahead_s = 3600.0
    ground.log().issue("SAFE_MODE", expires_in_s=60, command_id="late")
    ground.uplink("primary")
    ground.run(2)
    assert ground.executed() == []
    assert (ground.rows()["late"]["state"], ground.rows()["late"]["executions"]) == ("expired", 0)


def test_a_command_that_the_station_lost_in_a_crash_is_not_acknowledged(ground: Ground) -> None:
    ground.log().issue("SAFE_MODE", expires_in_s=60, command_id="half")
    ground.station._database.execute("INSERT INTO commands VALUES ('half', 0, 'primary')")
    ground.uplink("primary")
    ground.run(2)
    assert ground.executed() == []
    assert (ground.rows()["half"]["state"], ground.rows()["half"]["executions"]) == ("lost", 0)
    ground.uplink("backup")
    ground.run(2)
    assert ground.rows()["half"]["state"] == "lost", "a queue that is built anew does not send it again"


def test_a_lost_command_is_listed_until_it_is_issued_again_or_expired_a_day_ago() -> None:
    def row(name: str, station: str, state: str, issued_s: int, azimuth_deg: float | None = None) -> dict[str, object]:
        times = {"issued_time_ns": issued_s * SECOND_NS, "expires_time_ns": (issued_s + 600) * SECOND_NS}
        direction = {"azimuth_deg": azimuth_deg, "elevation_deg": azimuth_deg}
        return {"command_id": name, "station": station, "kind": "REPOINT", "state": state, **times, **direction}

    rows = [
        row("open", "atlantic", "lost", 0),
        row("repeated", "pacific", "lost", 0, 10.0), row("again", "pacific", "acknowledged", 60, 10.0),
        row("earlier", "arctic", "executed", 0), row("later", "arctic", "lost", 60),
        row("elsewhere", "pacific", "lost", 0, 20.0),
    ]  # fmt: skip
    assert unrepeated_losses(rows, 3600 * SECOND_NS) == ["elsewhere", "later", "open"]
    assert unrepeated_losses(rows, (86_400 + 630) * SECOND_NS) == ["later"]
    assert unrepeated_losses(rows, (86_400 + 700) * SECOND_NS) == []


def test_a_command_that_points_reaches_the_station_with_its_direction_and_is_refused_without__GC31(
    ground: Ground,
) -> None:
    log = ground.log()
    log.issue("REPOINT", expires_in_s=60, command_id="west", azimuth_deg=270.0, elevation_deg=12.5)
    for kind, azimuth_deg, elevation_deg in (
        ("REPOINT", None, None),
        ("REPOINT", 10.0, None),
        ("REPOINT", 360.5, 10.0),
        ("REPOINT", 10.0, -0.5),
        ("REPOINT", float("nan"), 10.0),
        ("SAFE_MODE", 10.0, 10.0),
    ):
        with pytest.raises(BadDirection):
            log.issue(kind, expires_in_s=60, azimuth_deg=azimuth_deg, elevation_deg=elevation_deg)
    # Another issuer may seal what this one refuses: then the uplink rejects it, and says why.
    nowhere = GroundEvent("atlantic", "issued", START_NS, command_id="nowhere", kind="REPOINT")
    log.append([replace(nowhere, issued_time_ns=START_NS, expires_time_ns=START_NS + 600 * SECOND_NS)])
    ground.uplink("primary")
    ground.run(2)
    assert ground.executed() == ["west"]
    assert list(ground.station._database.execute("SELECT * FROM pointings")) == [("west", 270.0, 12.5)]
    rows = ground.rows()
    assert (rows["west"]["azimuth_deg"], rows["west"]["elevation_deg"]) == (270.0, 12.5)
    assert (rows["nowhere"]["state"], "needs an azimuth" in str(rows["nowhere"]["detail"])) == ("rejected", True)


def test_events_that_an_error_kept_from_a_reader_come_with_its_next_look(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, reads = ground.log(), TableLog.head
    issued = ground.log().issue("HOUSEKEEPING", expires_in_s=60.0)

    def refused(_: TableLog) -> Head:
        raise OSError("input/output error")

    monkeypatch.setattr(TableLog, "head", refused)
    with pytest.raises(OSError, match="input/output"):
        reader.new_events()
    monkeypatch.setattr(TableLog, "head", reads)
    assert [event["command_id"] for event in reader.new_events()] == [issued.command_id]
    assert reader.new_events() == []


def test_what_a_full_queue_has_no_room_for_waits_and_an_emergency_does_not__GC28(ground: Ground) -> None:
    log = ground.log()
    for number in range(6):
        log.issue("HOUSEKEEPING", expires_in_s=60, command_id=f"h{number}")
    log.issue("HOUSEKEEPING", expires_in_s=0.01, command_id="short")
    log.issue("REPOINT", expires_in_s=60, command_id="later", azimuth_deg=1.0, elevation_deg=2.0)
    log.issue("SAFE_MODE", expires_in_s=60, command_id="safe")
    ground.uplink("primary", capacity=4, reserved=2)
    ground.run(2)
    assert ground.executed() == ["safe", "later", "h0", "h1", "h2", "h3", "h4", "h5"], "the most urgent first"
    states = {name: row["state"] for name, row in ground.rows().items()}
    assert states == dict.fromkeys(ground.executed(), "acknowledged") | {"short": "expired"}


def test_a_new_command_does_not_take_the_room_that_a_more_urgent_one_waits_for__46_3(ground: Ground) -> None:
    log = ground.log()
    for number in range(3):
        log.issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=f"t{number}")
    ground.uplink("primary", capacity=2, reserved=1)
    for number in range(8):
        log.issue("HOUSEKEEPING", expires_in_s=600, command_id=f"h{number}")
        ground.run(0.05, "primary")
    ground.run(2)
    assert ground.executed() == ["t0", "t1", "t2", *(f"h{number}" for number in range(8))]


def test_what_waits_for_room_is_taken_by_the_uplink_that_takes_over__46_3(ground: Ground) -> None:
    for number in range(8):
        ground.log().issue("HOUSEKEEPING", expires_in_s=600, command_id=f"h{number}")
    first = ground.uplink("primary", capacity=3, reserved=1)
    ground.run(0.2, "primary")
    assert first.is_active and 0 < len(ground.executed()) < 8
    ground.uplink("primary", capacity=3, reserved=1)
    ground.run(2)
    assert sorted(ground.executed()) == [f"h{number}" for number in range(8)], "each once"


def test_an_uplink_that_crashed_is_started_again_and_goes_on__GF24(ground: Ground) -> None:
    ground.log().issue("TELEMETRY_REQUEST", expires_in_s=60, command_id="a")
    ground.uplink("primary")
    ground.run(2)
    ground.log().issue("TELEMETRY_REQUEST", expires_in_s=60, command_id="b")
    ground.log().issue("TELEMETRY_REQUEST", expires_in_s=1, command_id="late")
    ground.now_s += 10
    second = ground.uplink("primary")
    ground.run(2)
    assert ground.executed() == ["a", "b"], "what is durable is executed, what was executed is not repeated"
    assert ground.rows()["late"]["state"] == "expired"
    assert second.token == 2


def test_a_paused_uplink_is_replaced_and_its_late_commands_are_refused__GF9_GF20_GF23(ground: Ground) -> None:
    primary = ground.uplink("primary")
    ground.uplink("backup")
    ground.run(4)
    assert (primary.is_active, primary.token, ground.uplinks["backup"].is_active) == (True, 1, False)
    for number in range(40):
        ground.log().issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=f"c{number:03d}")
    primary._take()
    ground.run(2.5, "backup")
    backup = ground.uplinks["backup"]
    assert (backup.is_active, backup.token) == (True, 2)
    assert len(ground.executed()) > 20
    primary._send()
    assert not primary.is_active, "it learns that it was replaced"
    ground.run(2)
    assert sorted(ground.executed()) == [f"c{number:03d}" for number in range(40)]
    events = ground.log().new_events()
    assert stale_executions(events, terms(events)) == []
    first, second = terms(events)
    assert (first.uplink, second.uplink, first.until_ns == second.from_ns) == ("primary", "backup", True)
    assert second.silence_s is not None and second.silence_s < 30
    shown = shown_links(events)
    assert "| atlantic | backup | 2 |" in shown["links"].value
    assert "data:image/png" in shown["failover_timeline"].value


def test_uplinks_record_each_others_heartbeats_and_the_state_of_each_path_is_shown__GF17_GF19(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sda_platform.ground.heartbeats.MOST_GAPS", 100)
    ground.uplink("primary")
    ground.uplink("backup")
    ground.run(8)
    recorded_ = [each for each in ground.log().new_events() if each["event"] == HEARTBEATS]
    assert {each["uplink"] for each in recorded_} == {"primary", "backup"}
    (record,) = (recorded(each) for each in recorded_ if each["uplink"] == "backup")
    assert (record.heard, record.path, set(record.gaps_s)) == ("primary", "intra-region", {0.05})
    ground.run(3, "backup")
    events = ground.log().new_events()
    before, after = path_states(events)
    assert (before.uplink, before.path_class, before.state) == ("backup", "intra-region", "in service")
    assert (after.uplink, after.path_class, after.state) == ("primary", "intra-region", "failed")
    shown = after.shown()
    assert (shown["suspicion"], shown["declaration"]) == ("suspected", "declared")
    assert shown["suspicion since"] <= shown["declaration since"] and float(shown["declaration phi"]) >= 8.0
    assert shown["declaration seen by"] == "backup"
    links = [each for each in events if each["event"] in LINK_EVENTS]
    assert "| atlantic | primary | intra-region | failed |" in shown_links(links, recorded_)["paths"].md_str
    assert ground.rows() == {}, "a record of heartbeats is no command"


def test_without_a_promotion_there_is_no_term__GF20() -> None:
    assert terms([]) == []
    assert shown_links([]) == {}


def test_a_heartbeat_counts_once_however_often_its_time_is_repeated__GF13(ground: Ground) -> None:
    primary, backup = ground.uplink("primary"), ground.uplink("backup")
    chance = random.Random(1)
    # The answer takes a little while, so the same heartbeat seems to be of another time whenever it is read.
    backup.monotonic_s = lambda: ground.now_s + chance.uniform(0.0, 0.004)
    for number in range(200):
        ground.now_s += 0.05
        if number % 2:
            primary.beat()
        backup.beat()
        backup.step()
    mean_s, sigma_s = backup.failover.paths["primary"].detector.gap_s
    assert mean_s == pytest.approx(0.1, abs=0.002), "the primary beats each 0.1 s, the backup reads each 0.05 s"
    assert sigma_s < 0.005


def test_a_lost_answer_costs_a_repetition_and_no_second_execution__GF24(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    uplink, lost = ground.uplink("primary"), list[object]()
    send = uplink._link.send

    def loses_the_first_answer(command: Command, token: int) -> dict[str, object]:
        answer = send(command, token)
        if not lost:
            lost.append(command)
            raise httpx.ReadTimeout("the answer was lost")
        return answer

    monkeypatch.setattr(uplink._link, "send", loses_the_first_answer)
    ground.log().issue("EMERGENCY_ABORT", expires_in_s=60, command_id="once")
    ground.run(3)
    assert ground.executed() == ["once"]
    assert (ground.rows()["once"]["state"], ground.rows()["once"]["detail"]) == ("acknowledged", "repeated")


def test_a_station_that_takes_long_for_each_command_is_slow_and_no_failure(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that takes 1.5 s on a path whose failures are declared after a fraction of that."""
    primary, backup = ground.uplink("primary"), ground.uplink("backup")
    ground.run(4)
    receive = ground.station.receive

    def slowly(command: dict[str, object]) -> dict[str, object]:
        for _ in range(10):
            ground.now_s += 0.15
            primary.beat()  # in its thread, while the command is on its way
            backup.beat()
            backup.step()
        return receive(command)

    monkeypatch.setattr(ground.station, "receive", slowly)
    names = [f"c{number}" for number in range(3)]
    for name in names:
        ground.log().issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=name)
    ground.run(0.5)
    assert sorted(ground.executed()) == names
    assert [(term.uplink, term.token) for term in terms(ground.log().new_events())] == [("primary", 1)]


def test_an_uplink_that_hangs_sends_no_heartbeat(ground: Ground) -> None:
    primary = ground.uplink("primary")
    ground.run(1)
    counts = []
    for pause_s in (9.9, 0.2):
        ground.now_s += pause_s
        primary.beat()
        counts.append(ground.station.state()["beats"]["primary"])
    ground.run(0.05)
    primary.beat()
    counts.append(ground.station.state()["beats"]["primary"])
    assert counts == [counts[0], counts[0], counts[0] + 1]


def test_an_answer_from_before_a_promotion_does_not_undo_it(ground: Ground) -> None:
    ground.uplink("primary")
    backup = ground.uplink("backup")
    ground.run(4)
    ground.now_s += 0.05
    backup.beat()  # answered while the primary was active
    (late,) = backup._heartbeats.take_answers()
    ground.run(2.5, "backup")
    assert (backup.is_active, backup.token) == (True, 2)
    backup._heartbeats._answers.append(late)
    ground.run(0.05, "backup")
    assert (backup.is_active, backup.failover.active, backup._highest) == (True, "backup", 2)


def its_commands_fail(uplink: Uplink, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_command: Command, _token: int) -> dict[str, object]:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(uplink._link, "send", fails)


def test_an_uplink_whose_heartbeats_arrive_but_whose_calls_fail_is_replaced__GF27(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary = ground.uplink("primary")
    ground.uplink("backup")
    ground.run(4)
    its_commands_fail(primary, monkeypatch)
    names = [f"c{number}" for number in range(8)]
    for name in names:
        ground.log().issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=name)
    ground.run(5)
    assert ground.uplinks["backup"].token == 2
    assert sorted(ground.executed()) == names
    ground.run(30)
    assert (primary.is_active, ground.uplinks["backup"].is_active) == (False, True), "it sends heartbeats again"


def test_an_execution_for_a_former_uplink_is_found_after_its_promotion_was_reviewed__GF23(tmp_path: Path) -> None:
    lake, first = lake_at(tmp_path), genesis_window(GROUND_EVENTS)
    promotions = [
        GroundEvent("atlantic", "promoted", START_NS + token * 60 * SECOND_NS, name, token, 1)
        for token, name in ((1, "primary"), (2, "backup"))
    ]
    executed = GroundEvent(
        "atlantic", "acknowledged", START_NS + 180 * SECOND_NS, "primary", 1, 2, "late", "REPOINT", detail="executed"
    )
    commit(lake, GROUND_EVENTS, [asdict(each) for each in promotions])
    commit(lake, GROUND_COMMANDS, windows=[first])
    commit(lake, GROUND_EVENTS, [asdict(executed)])
    state = {"command_id": "late", "state": "acknowledged", "kind": "REPOINT", "executions": 1}
    commit(lake, GROUND_COMMANDS, [state], windows=[next_window(first)])
    log = lake.log(GROUND_COMMANDS)
    newest = log.commits(1)
    assert commands_are_executed_once(lake, log, newest) == ["1 commands executed for a former uplink, such as late"]


def test_two_uplinks_that_ask_at_once_do_not_both_become_active(ground: Ground) -> None:
    assert [ground.station.promote(name, 0) for name in ("primary", "backup")] == [1, 0]


def test_events_that_cannot_be_used_become_dead_letters() -> None:
    good = GroundEvent("atlantic", "issued", 1, command_id="a", kind="REPOINT")
    lines = [
        encode_ground_events([good]), b'{"station": "a", "event": "lost", "event_time_ns": 1}\n', b"{\n",
        encode_ground_events([GroundEvent("atlantic", "issued", 1, command_id="a", kind="EXPLODE")]),
        encode_ground_events([GroundEvent("atlantic", "issued", 1, kind="REPOINT")]),
    ]  # fmt: skip
    data = b"".join(lines)
    meta = describe_segment(
        data, feed="ground", segment_format="ground-events-jsonl", sealed_time_ns=1, sealed_wall_time_ns=1
    )
    rows = decode(data, meta)
    assert rows["error_kind"].to_pylist() == [None, "bad_field", "bad_json", "bad_field", "bad_field"]
    assert asdict(good).items() <= rows.to_pylist()[0].items()


def test_the_lease_of_the_active_uplink_excludes_the_other_and_fences_the_station__ML2_ML5_PW31(
    ground: Ground,
) -> None:
    service = LeaseService(ttl=TTL_S, token=40)
    primary, _ = leased(ground, service, "primary")
    backup, _ = leased(ground, service, "backup")
    ground.run(4)
    assert (primary.is_active, primary.token, backup.is_active) == (True, 41, False), "the token is that of the lease"
    for number in range(20):
        ground.log().issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=f"c{number:02d}")
    primary._take()
    # The primary is stopped beyond its lease; the backup waits for the end of the lease, and for no longer.
    ground.run(TTL_S / 2, "backup")
    assert not backup.is_active
    ground.run(TTL_S, "backup")
    assert (backup.is_active, backup.token) == (True, 42)
    primary._send()
    assert "stale_sender" not in str(ground.rows()), "by its own clock it holds no lease, so it sends nothing"
    assert ground.station.promote("primary", 42, 41) == 0, "the station takes no older token"
    ground.run(3)
    assert not primary.is_active
    assert sorted(ground.executed()) == [f"c{number:02d}" for number in range(20)]


def test_an_uplink_that_is_cut_off_from_the_leases_stops_and_lets_the_other_one_take_over__ML5_GF25(
    ground: Ground,
) -> None:
    service = LeaseService(ttl=TTL_S)
    primary, leases = leased(ground, service, "primary")
    backup, others = leased(ground, service, "backup")
    ground.run(4)
    leases.is_cut = True
    ground.run(TTL_S / 2)
    assert primary.is_active, "until then it may act"
    ground.run(TTL_S)
    assert (primary.is_active, backup.is_active, backup.token) == (False, True, 2)
    leases.is_cut, others.is_cut = False, True
    ground.run(40)
    assert (primary.is_active, backup.is_active, primary.token) == (True, False, 3), "and the same back"
    leases.is_cut = True
    ground.run(60)
    assert (primary.is_active, backup.is_active) == (False, False)
    leases.is_cut = others.is_cut = False
    ground.run(40)
    assert primary.is_active != backup.is_active, "one of them commands again"


def test_an_uplink_whose_calls_fail_gives_its_lease_up_at_once__GF26(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = LeaseService(ttl=1000)
    primary, _ = leased(ground, service, "primary")
    backup, _ = leased(ground, service, "backup")
    ground.run(4)
    its_commands_fail(primary, monkeypatch)
    for number in range(8):
        ground.log().issue("TELEMETRY_REQUEST", expires_in_s=600, command_id=f"c{number}")
    ground.run(8)
    assert (primary.is_active, backup.is_active, backup.token) == (False, True, 2)
    assert len(ground.executed()) == 8


def test_the_backup_takes_over_at_once_from_an_uplink_whose_agent_left__GF23_GF26(ground: Ground) -> None:
    primary, backup = ground.uplink("primary"), ground.uplink("backup")
    ground.run(20)
    assert (primary.is_active, backup.is_active) == (True, False)
    backup.reported = lambda name: LEFT
    ground.run(0.2)
    assert (primary.is_active, backup.is_active) == (False, True)
    ground.log().issue("TELEMETRY_REQUEST", expires_in_s=60, command_id="a")
    ground.run(1)
    assert (ground.executed(), ground.rows()["a"]["uplink"]) == (["a"], "backup")
