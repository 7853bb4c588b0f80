"""What must hold at the end of a year: each function returns what does not, in words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, RECEIVED_CDMS
from sda_platform.delivery.subscriber import AlertEntry
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.history.expiry import awaiting
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import NEWEST_COMMITS, TableLog
from sda_platform.lake.retention import RETENTION
from sda_platform.observability.vitals.notices import NoticeState
from sda_platform_tests.campaign.simulated_partner import Delivery
from sda_platform_tests.campaign.year_engine import Snapshot
from sda_platform_tests.campaign.year_plan import (
    AT_FAULT,
    DAY_NS,
    FEEDS,
    HOUR_NS,
    KILLS_AT,
    LANDED,
    YearFindings,
    YearPlan,
)

_MS_PER_HOUR = 3_600_000
_RECORD, _ENTRY = ("segment_sha256", "record_number"), ("event_id", "sequence", "op")


def wrong_rows(lake: Lake, sealed: Sequence[Delivery], held: Sequence[AlertEntry]) -> Iterator[str]:
    """Of what was accepted, every record is stored, alerted, delivered and ``held`` by the subscriber exactly once."""
    expected = Counter({(d.known_as, n): 1 for d in sealed if d.feed in FEEDS for n in range(d.meta.records)})
    messages = Counter({(d.known_as, 0): 1 for d in sealed if d.feed not in FEEDS})
    journal = Counter({(f"{sha256[:12]}-{n}", 0, "insert"): 1 for sha256, n in expected})
    yield from _differences("record", expected, _keys(lake.log(LANDED), _RECORD))
    yield from _differences("message", messages, _keys(lake.log(RECEIVED_CDMS), _RECORD))
    yield from _differences("alert", journal, _keys(lake.log(CONJUNCTION_ALERTS), _ENTRY))
    yield from _differences("delivery", journal, _keys(lake.log(ALERT_DELIVERIES), ("alert_id", "sequence", "op")))
    yield from _differences("alert at the subscriber", journal, Counter(each.revision for each in held))


def wrong_events(plan: YearPlan, found: YearFindings, now_ns: int) -> Iterator[str]:
    """Each trouble is notified once with its side, and its end once, and nothing else is; no night is left out."""
    states = NoticeState.BEGUN.value, NoticeState.OVER.value
    once = [notice for notice in found.notices if notice.state in states and not notice.escalates]
    told = Counter((notice.vital, str(notice.state)) for notice in once)
    wanted = Counter({(vital, state): 1 for vital in AT_FAULT for state in states})
    for vital, state in (wanted - told) | (told - wanted):
        texts = [notice.text for notice in found.notices if (notice.vital, notice.state) == (vital, state)]
        yield f"vital {vital} {state}: {told[vital, state]} notices {texts[:3]}"
    sides = {each.vital: str(each.side) for each in found.notices if each.state == NoticeState.BEGUN}
    if sides != AT_FAULT:
        yield f"sides at fault: {sides}"
    yield from (f"no kill at {point}" for point in KILLS_AT if not found.kills[point])
    nights = (now_ns - parse_iso_ns(plan.start) - 3 * HOUR_NS) // DAY_NS + 1
    if found.nights != nights:
        yield f"{found.nights} nights, not {nights}"


def left_over(log: TableLog, stored: Snapshot, plan: YearPlan, now_ns: int) -> Iterator[str]:
    """Files beyond the retention: data are kept for 8 days and one in the journal; of logs, 100 commits too."""
    directory, daily, now_ms = Path(log.uri), plan.landings / plan.days, now_ns // 1_000_000
    oldest_ms = now_ms - (RETENTION.data_files_h + 24) * _MS_PER_HOUR
    journal = awaiting(log)
    for name in {path.name for path in directory.glob("*.parquet")} - set(stored.live):
        removed_ms = stored.removed.get(name, {}).get("deletionTimestamp", 0)
        if removed_ms < oldest_ms and journal.get(name, 0) < now_ms - 48 * _MS_PER_HOUR:
            yield f"{log.table.name}: {name} was kept beyond the retention"
    versions = sum(1 for _ in (directory / "_delta_log").glob("*.json"))
    most = (RETENTION.log_h / 24 + 2) * (daily + 1) + NEWEST_COMMITS + 2 * plan.checkpoint_every
    if versions > most:
        yield f"{log.table.name}: {versions} versions in its log, more than {most:,.0f}"
    if len(stored.live) > plan.policy.small_files + 2 + 2 * daily:
        yield f"{log.table.name}: {len(stored.live)} live files"


def _keys(log: TableLog, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    rows = log.rows(list(columns))
    return Counter(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))


def _differences(what: str, expected: Counter[Any], stored: Counter[Any]) -> Iterator[str]:
    missing, surplus = expected - stored, stored - expected
    if missing or surplus:
        yield f"{what}: {missing.total()} missing {[*missing][:2]}, {surplus.total()} too many {[*surplus][:2]}"
