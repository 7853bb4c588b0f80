"""What a year of operation brings and when, and what is found in it."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, RECEIVED_CDMS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.history.lifecycle import POLICY, LifecyclePolicy
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.observability.vitals.notices import Notice
from sda_platform.units import SECOND_NS

FEEDS = ("radar", "optical")
LANDED = replace(RAW_RECORDS, zones=FEEDS)
FUSED = replace(FUSED_TRACKS, consumes=(LANDED,), reads=(), feedback=tuple)
TABLES = (LANDED, CONJUNCTION_ALERTS, FUSED, ALERT_DELIVERIES, RECEIVED_CDMS)
IN_EACH_RUN = 4
"""A run commits to each of the tables but the last, which gets a message a day."""
AT_FAULT = {"sources_report": "sources", "disk_has_space": "machine", "subscriber_is_level": "subscriber"}
"""The vitals that the year turns red, and the side that each names."""
LEAP_NS = parse_iso_ns("2017-01-01T00:00:00Z")
HOUR_NS = 3600 * SECOND_NS
DAY_NS = 24 * HOUR_NS
ADDED_COLUMNS = frozenset({"clock_age_s", "maximum_probability", "velocity_sigma_m_s"})
"""What only the upgraded platform writes; earlier rows of theirs read as null."""
KILLS_AT = (
    "landing.data_written", "bronze.taken:raw_records", "commit.sent:raw_records", "lake.committed:conjunction_alerts",
    "commit.landed:fused_tracks", "delivery.answered", "lake.committed:alert_deliveries",
    "bronze.acknowledged:raw_records",
)  # fmt: skip


@dataclass(frozen=True)
class YearPlan:
    """How long the year is, from when, and how many commits the four tables make; spans are shares of it."""

    days: int = 365
    commits: int = 500_000
    start: str = "2016-06-01T00:00:00Z"
    seed: int = 1
    telescope_away: tuple[float, float] = (0.15, 0.20)
    no_cdm: tuple[float, float] = (0.30, 0.39)
    password_changes: float = 0.45
    disk_low: float = 0.55
    upgrade: float = 0.62
    version_held: tuple[float, float] = (0.68, 0.78)
    checkpoint_every: int = 100
    policy: LifecyclePolicy = POLICY

    @property
    def landings(self) -> int:
        """Each is a run."""
        return max(self.commits // IN_EACH_RUN, self.days)

    def begin_ns(self, share: float) -> int:
        """The midnight at this share of the year."""
        return parse_iso_ns(self.start) + int(share * self.days) * DAY_NS


@dataclass
class YearFindings:
    """What went wrong, what was notified, and the processor seconds that it cost."""

    problems: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    run_seconds: list[float] = field(default_factory=list)
    start_seconds: list[float] = field(default_factory=list)
    slowest_start_s: float = 0.0
    plan_seconds: list[float] = field(default_factory=list)
    check_seconds: list[float] = field(default_factory=list)
    maintenance_seconds: list[float] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    nights: int = 0
    maintenance: Counter[str] = field(default_factory=Counter)
    figures: dict[str, int] = field(default_factory=dict)


def planned_kills(plan: YearPlan) -> dict[int, str]:
    """By run, the failpoint at which it ends: each point twice, and one run in a hundred."""
    count = max(2 * len(KILLS_AT), plan.landings // 100)
    runs = random.Random(plan.seed).sample(range(2, plan.landings), count)
    return {run: KILLS_AT[number % len(KILLS_AT)] for number, run in enumerate(runs)}
