"""Any interleaving of landing, planning, crashing, repeating and racing consumes each input exactly once.

The zones are real directories; intake, planning and settling are the platform's own, and so is the reading of the log.
Only the engine is a stand-in, which keeps Delta's rules for transaction ids (`campaign.simulated_delta`).
"""

import hashlib
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from sda_platform.clock import MissionClock
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.segments import SegmentMeta
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.commit import settle, stamped
from sda_platform.lake.errors import CommitConflict, SegmentConflict
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.planning import Plan, plan_segments
from sda_platform.lake.table import Table
from sda_platform.landing import intake
from sda_platform.landing.decoding import DecodedBatch, decode_batch, one_by_one
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.landing_table import land
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.campaign.scheduling import ConnectionLost
from sda_platform_tests.campaign.simulated_delta import SimulatedDelta
from sda_platform_tests.campaign.simulated_engine import ConcurrentTransaction, HeldTable
from sda_platform_tests.support.crashes import crash_at
from sda_platform_tests.support.delta_tables import in_columns
from sda_platform_tests.support.segments import described
from sda_platform_tests.support.segments import land as seal_into

CONTENTS = [pack_records([b"%d" % n] * (n % 3 + 1), [1] * (n % 3 + 1)) for n in range(6)]
NAMES = ["a", "b", "catalogue.csv"]
BOUNDS = {"max_segments": 2, "max_bytes": 10**6}

feeds = st.sampled_from(["radar", "isl"])
names = st.sampled_from(NAMES)
contents = st.sampled_from(CONTENTS)


def decode(data: bytes, meta: SegmentMeta) -> pa.Table:
    """Just enough of a decoder: one row per record."""
    count = meta.records
    texts = pa.nulls(count, pa.string())
    numbers = pa.array(range(count), pa.int64())
    return pa.table({"record_number": numbers, "error_kind": texts, "error": texts, "received_time_ns": numbers})


@dataclass(frozen=True)
class Work:
    """A plan in some process's hands, and the table as its engine saw it."""

    plan: Plan
    batch: DecodedBatch
    seen: SimulatedDelta


class Landing(RuleBasedStateMachine):
    """Two feeds, one table, any number of processes that come and go."""

    work = Bundle("work")

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.zones = {feed: LandingZone(str(self.root), feed) for feed in ("radar", "isl")}
        self.log = HeldTable(RAW_RECORDS)
        self.at_work: list[Callable[[], None]] = []
        self.accepted: set[str] = set()

    @rule(feed=feeds, name=names, data=contents)
    def a_segment_lands(self, feed: str, name: str, data: bytes) -> None:
        with suppress(SegmentConflict):
            seal_into(self.zones[feed], name, data)
            self.accepted.add(hashlib.sha256(data).hexdigest())

    @rule(feed=feeds, name=names, data=contents)
    def a_lander_dies_before_the_metadata(self, feed: str, name: str, data: bytes) -> None:
        with suppress(SegmentConflict), crash_at("landing.data_written"):
            seal_into(self.zones[feed], name, data)

    @rule(feed=feeds, name=names, data=contents)
    def a_torn_segment_lands(self, feed: str, name: str, data: bytes) -> None:
        with suppress(SegmentConflict):
            self.zones[feed].seal(name, data[:-1], described(data, feed))

    @rule(target=work, grace_is_over=st.booleans())
    def a_process_plans(self, grace_is_over: bool) -> Work:
        return self._planned(math.inf if grace_is_over else 0.0)

    @rule(work=consumes(work))
    def it_dies_before_the_commit(self, work: Work) -> None:
        pass

    @rule(
        work=consumes(work),
        cleans_up=st.booleans(),
        fails=st.sampled_from(["no", "before", "after", "at work"]),
        sees_all=st.booleans(),
    )
    def it_commits(self, work: Work, cleans_up: bool, fails: str, sees_all: bool) -> None:
        """``fails``: the engine is lost before or after the rows landed, or is still at work when its client gives up;
        ``sees_all``: it noticed a rival's commit."""
        self._commit(work, cleans_up, fails, None if sees_all else work.seen)

    @rule()
    def the_engine_finishes_what_its_client_gave_up(self) -> None:
        while self.at_work:
            with suppress(ConcurrentTransaction):
                self.at_work.pop()()

    @rule(work=work, sees_all=st.booleans())
    def it_commits_and_another_process_repeats_it(self, work: Work, sees_all: bool) -> None:
        self._commit(work, False, "no", None if sees_all else work.seen)

    @rule(point=st.sampled_from(["landing.metadata_moved", "landing.data_moved"]), nth=st.integers(1, 2))
    def a_clean_up_dies_half_way(self, point: str, nth: int) -> None:
        with crash_at(point, nth):
            intake.finish_last_commit(list(self.zones.values()), self.log.head())

    @invariant()
    def nothing_is_consumed_twice(self) -> None:
        rows = self.log.rows(["segment_sha256", "record_number"]).to_pylist()
        twice = [row for row, count in Counter(tuple(row.values()) for row in rows).items() if count > 1]
        assert not twice

    @invariant()
    def the_chain_of_checkpoints_is_whole(self) -> None:
        assert broken_chain(self.log.commits()) == []

    def teardown(self) -> None:
        if not hasattr(self, "root"):
            return
        for _ in range(50):
            work = self._planned(math.inf)
            if work.plan.is_empty:
                break
            self._commit(work, True, "no", None)
        sound = {s.sha256 for c in self.log.commits() for s in c.manifest.segments if s.defect is None}
        assert sound == self.accepted, "every accepted segment was consumed"
        consumed = [segment for commit in self.log.commits() for segment in commit.manifest.segments]
        assert all(self.zones[s.zone].load_consumed(s).ref(s.records) == s for s in consumed), "and can be read again"
        assert all(zone.pending_files() == [] for zone in self.zones.values()), "and every orphan told or removed"
        self.nothing_is_consumed_twice()
        self.the_chain_of_checkpoints_is_whole()
        shutil.rmtree(self.root)

    def _planned(self, orphaned_before_s: float) -> Work:
        head, zones = self.log.head(), list(self.zones.values())
        taken = intake.take(
            zones,
            head,
            max_segments=BOUNDS["max_segments"],
            max_bytes=BOUNDS["max_bytes"],
            orphaned_before_s=orphaned_before_s,
        )
        batch = decode_batch(RAW_RECORDS, taken, one_by_one(decode))
        plan = plan_segments(RAW_RECORDS, head, batch.segments, now_ns=0, run_id="run")
        return Work(plan, batch, self.log.state())

    def _commit(self, work: Work, cleans_up: bool, fails: str, began: SimulatedDelta | None) -> None:
        if work.plan.is_empty:
            return
        manifest = work.plan.manifest(f"nonce-{self.log.version()}-{id(work)}")
        rows = stamped(work.plan, work.batch.rows)

        def write() -> None:
            if fails == "before":
                raise ConnectionLost
            if fails == "at work":
                self.at_work.append(lambda: self.log.write(manifest, rows, began=began))
                raise ConnectionLost
            self.log.write(manifest, rows, began=began)
            if fails == "after":
                raise ConnectionLost

        try:
            settle(self.log, work.plan, manifest, write)
        except (CommitConflict, ConnectionLost, ConcurrentTransaction):
            return
        if cleans_up:
            intake.finish_last_commit(list(self.zones.values()), self.log.head())


TestLanding = Landing.TestCase
TestLanding.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=30, suppress_health_check=list(HealthCheck)
)


class _Store(Lake):
    """A lake over the stand-in log, as far as `bronze.land` uses one."""

    requires_lineage = False

    def __init__(self, log: HeldTable) -> None:
        super().__init__("", MissionClock(0, 0, 0.0), without_session)
        self._log = log
        self.engine = lambda _log, plan, rows, _mode, _where=None: partial(log.write, rows=in_columns(plan, rows))

    def open(self) -> "_Store":
        return self

    def log(self, table: object) -> HeldTable:
        return self._log

    def frame(self, table: Table, rows: Any, *, stamped: bool = False) -> Any:
        return rows


class _Zones:
    def __init__(self, root: Path) -> None:
        self._root = root

    def zones_of(self, table: Table) -> TableZones:
        return TableZones(
            [LandingZone(str(self._root), feed) for feed in table.zones], BOUNDS["max_segments"], BOUNDS["max_bytes"]
        )


def test_a_run_that_overtakes_another_between_its_reading_and_its_planning_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sda_platform.orchestration.landing_table.materialized", lambda *args, **facts: None)
    told: list[dg.AssetMaterialization] = []
    log, zones = HeldTable(RAW_RECORDS), _Zones(tmp_path)
    seal_into(LandingZone(str(tmp_path), "radar"), "a", CONTENTS[0])

    def overtaken(data: bytes, meta: SegmentMeta) -> pa.Table:
        land(_Store(log), zones, replace(RAW_RECORDS, zones=("radar",)), one_by_one(decode), report=told.append)  # type: ignore[arg-type]
        return decode(data, meta)

    with pytest.raises(CommitConflict, match="plan again"):
        land(_Store(log), zones, replace(RAW_RECORDS, zones=("radar",)), one_by_one(overtaken), report=told.append)  # type: ignore[arg-type]
    assert log.rows().num_rows == 1
    assert [event.asset_key.path for event in told] == [["landing", "radar"]]
