"""Asset checks, generated for every table: `exactly_once`, `contract`, `log_is_sound`, `data_is_fresh`.

The first two block: what fails them does not flow on in the run. The other two follow the alerts. All read the log and
the stored columns through delta-rs, so they cost milliseconds and start no session. They can be run from the UI at any
time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import dagster as dg

from sda_platform.clock import iso
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.lake.verdicts import TableVerdict
from sda_platform.orchestration.backlog import backlog_check
from sda_platform.orchestration.freshness import never_stale
from sda_platform.orchestration.landing_balance import landing_balance_check, miscounted_segments
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.recovery import repair_record
from sda_platform.recovery.examination import Depth, examine
from sda_platform.recovery.review import REVIEWED, Balance, review
from sda_platform.recovery.verification import broken_chain, duplicate_keys, unbalanced_segments
from sda_platform.units import SECOND_NS

# What every table with landing zones promises.
_OF_ZONES: tuple[Balance, ...] = (unbalanced_segments, miscounted_segments)
_BALANCES: dict[str, tuple[Balance, ...]] = {}


@dataclass(frozen=True)
class DataFreshness:
    """How old the newest data may be. ``newest_ns`` returns the instant up to which the table is complete, or None."""

    meaning: str
    max_lag_s: float
    newest_ns: Callable[[Lake, TableLog], int | None]

    @classmethod
    def unscheduled(cls, reason: str) -> Self:
        """Return the rule of a table whose data no schedule demands, for this ``reason``."""
        return cls(reason, 0.0, never_stale)

    @property
    def rule(self) -> str:
        """What the check verifies, as a sentence."""
        if self.newest_ns is never_stale:
            return f"Always passes: {self.meaning}."
        return f"By the mission clock, {self.meaning}."

    def problem(self, store: Lake, log: TableLog) -> str | None:
        """Return what is not so, and by how much; None while it holds, and as long as there are no data."""
        newest_ns = self.newest_ns(store, log)
        age_s = self.age_s(newest_ns, store.clock.now_ns())
        if newest_ns is None or age_s <= self.max_lag_s:
            return None
        return (
            f"It is not so that {self.meaning}: {log.table.name} is complete up to {iso(newest_ns)}, which is "
            f"{age_s:,.0f} s ago; allowed are {self.max_lag_s:,.0f} s."
        )

    @staticmethod
    def age_s(newest_ns: int | None, now_ns: int) -> float:
        """Mission seconds since ``newest_ns``; 0 without data."""
        return 0.0 if newest_ns is None else (now_ns - newest_ns) / SECOND_NS


def table_checks(
    table: Table, *, balance: Sequence[Balance] = (), freshness: DataFreshness
) -> list[dg.AssetChecksDefinition]:
    """Return the checks of one table: a step of those that block, and others, which come after the alerts.

    ``balance``: what the table promises beyond chain, keys and contract, and beyond the balance of its landing zones.
    """
    _BALANCES[table.name] = (*(_OF_ZONES if table.zones else ()), *balance)
    of_zones = [backlog_check(table), landing_balance_check(table)] if table.zones else []
    return [_blocking_checks(table), _health_checks(table, freshness), *of_zones]


def _blocking_checks(table: Table) -> dg.AssetChecksDefinition:
    specs = [
        dg.AssetCheckSpec(
            "exactly_once",
            asset=table.name,
            blocking=True,
            description="No key twice, no commit missing, every upstream commit consumed once, counts balance. "
            f"{REVIEWED}.",
        ),
        dg.AssetCheckSpec(
            "contract",
            asset=table.name,
            blocking=True,
            description=f"Columns, nulls and ranges are those of the table's pandera model. {REVIEWED}.",
        ),
    ]

    @dg.multi_asset_check(name=f"{table.name}_checks", specs=specs)
    def checks(lake: LakeResource) -> Any:
        verdict = review_declared(lake.open(), table)
        yield promise_result(table, "exactly_once", verdict, ("chain", "keys", "balance"))
        yield promise_result(table, "contract", verdict, ("contract",))

    return checks


def _health_checks(table: Table, freshness: DataFreshness) -> dg.AssetChecksDefinition:
    specs = [
        dg.AssetCheckSpec(
            "log_is_sound",
            asset=table.name,
            description="Every commit since Delta's checkpoint can be read; every live data file exists and opens.",
        ),
        dg.AssetCheckSpec("data_is_fresh", asset=table.name, description=freshness.rule),
    ]

    @dg.multi_asset_check(name=f"{table.name}_health", specs=specs, op_tags=AFTER_ALERTS)
    def health(lake: LakeResource) -> Any:
        store = lake.open()
        log = store.log(table)
        yield log_is_sound(log, Path(lake.home))
        yield _fresh(store, log, freshness)

    return health


def review_declared(store: Lake, table: Table) -> TableVerdict:
    """`review` of ``table`` with the balance that its checks declare. Raises KeyError where they are not loaded."""
    return review(store, table, _BALANCES[table.name])


def unbalanced_commits(store: Lake, table: Table, commits: Sequence[Commit]) -> list[str]:
    """Return what is wrong with these consecutive ``commits``, newest first: chain, keys, and the declared balance."""
    log = store.log(table)
    found = [*broken_chain(commits), *duplicate_keys(log, commits)]
    for balance in _BALANCES[table.name]:
        found += balance(store, log, commits)
    return [f"{table.name}: {problem}" for problem in found]


def promise_result(table: Table, check: str, verdict: TableVerdict, promises: Sequence[str]) -> dg.AssetCheckResult:
    """Return the outcome of ``check``, which holds these ``promises``: red until every finding is repaired or
    acknowledged.

    A finding that a person acknowledged is a warning, and does not block; it stays until it is repaired.
    """
    found = [each for each in verdict.findings if any(promise in each.problems for promise in promises)]
    red = [each for each in found if each in verdict.red]
    shown = [
        f"sequence {each.sequence}: {promise}: {problem}"
        for each in (red or found)
        for promise in promises
        for problem in each.problems.get(promise, ())
    ]
    accepted = [str(verdict.acknowledged[each.fingerprint]) for each in found if each not in red]
    broken = [promise for promise in promises if any(promise in each.problems for each in (red or found))]
    facts: dict[str, Any] = {"verified_upto_sequence": verdict.verified.sequence, "reviewed": REVIEWED}
    if found:
        first = (red or found)[0]
        facts |= {"broken_promises": broken, "first_bad_sequence": first.sequence, "since": first.since_utc}
    if accepted:
        facts["acknowledged"] = accepted[:20]
    severity = dg.AssetCheckSeverity.ERROR if red else dg.AssetCheckSeverity.WARN
    return _result(table, check, shown, facts, severity)


def log_is_sound(log: TableLog, home: Path) -> dg.AssetCheckResult:
    """Return the newest commits and their files as they are now, and the findings and repairs of the last start."""
    found = examine(log, Depth.NEWEST)
    facts = {"commits_read": found.commits_read, "files_seen": found.files_seen, "seconds": round(found.seconds, 3)}
    return _result(log.table, "log_is_sound", found.problems, {**facts, **repair_record.facts(home, log.table.name)})


def _fresh(store: Lake, log: TableLog, freshness: DataFreshness) -> dg.AssetCheckResult:
    newest, now, problem = freshness.newest_ns(store, log), store.clock.now_ns(), freshness.problem(store, log)
    return dg.AssetCheckResult(
        asset_key=log.table.name,
        check_name="data_is_fresh",
        passed=problem is None,
        severity=dg.AssetCheckSeverity.ERROR,
        description=outcome_text(problem or ("No data yet." if newest is None else freshness.rule)),
        metadata={
            "mission_time": iso(now),
            "newest": "no data yet" if newest is None else iso(newest),
            "max_lag_s": freshness.max_lag_s,
            **({} if newest is None else {"lag_s": freshness.age_s(newest, now)}),
        },
    )


def _result(
    table: Table,
    name: str,
    problems: list[str],
    facts: dict[str, Any],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=table.name,
        check_name=name,
        passed=not problems,
        severity=severity if problems else dg.AssetCheckSeverity.ERROR,
        description=outcome_text("; ".join(problems)),
        metadata={**facts, **({"problems": problems[:20]} if problems else {})},
    )
