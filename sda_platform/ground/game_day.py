"""Game days: every night one fault strikes a rehearsed ground segment, and the table `game_days` keeps the outcome."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import dagster as dg

from sda_platform.clock import MissionClock, iso
from sda_platform.formats.game_days import GameDay, encode_game_days
from sda_platform.formats.segments import Sender
from sda_platform.ground.etcd_fault import EtcdMinority
from sda_platform.ground.rehearsal import Measured, RehearsedFault
from sda_platform.ground.replica_fault import ReplicaLag
from sda_platform.ground.tables import GAME_DAY_FEED, GAME_DAYS
from sda_platform.ground.uplink_faults import LINK_CUT, LINK_SLOW, UPLINK_STOPPED, SlowStation, UplinkFault
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.jobs import upkeep_job
from sda_platform.orchestration.materialization import in_ui
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool
from sda_platform.units import DAY_NS

KEY: Final = dg.AssetKey("game_day")
FAULTS: Final[tuple[RehearsedFault, ...]] = (
    *(UplinkFault(name) for name in (LINK_CUT, LINK_SLOW, UPLINK_STOPPED)),
    SlowStation(),
    EtcdMinority(),
    ReplicaLag(),
)
"""In the order in which nights take them."""
MOST_DAYS_WITHOUT: Final = 2 * len(FAULTS)
_FORMAT: Final = "game-days-jsonl"
_COLUMNS: Final = tuple(GameDay.__dataclass_fields__)


def fault_of(day_ns: int) -> RehearsedFault:
    """Return the fault whose turn it is on the day of ``day_ns`` (UTC)."""
    return FAULTS[day_ns // DAY_NS % len(FAULTS)]


def game_day_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset whose materialization rehearses the fault of the day."""

    @dg.asset(
        key=KEY,
        group_name="ground_segment",
        kinds={"python"},
        pool=Pool.MAINTENANCE,
        description="Starts real parts of the ground segment in a temporary directory, lets the fault of the night "
        "strike them, and measures the time to detect and to recover. Nothing in the home or at a station is touched.",
    )
    def game_day(lake: LakeResource) -> dg.MaterializeResult[Any]:
        from sda_platform.ground.pictures import game_days_picture

        store = lake.open()
        outcome = rehearsed(fault_of(MissionClock().now_ns()))
        seal(outcome, LandingZone(settings.landing_uri, GAME_DAY_FEED), store.clock.now_ns())
        facts = {name: value for name, value in asdict(outcome).items() if value is not None}
        picture = game_days_picture([*outcomes(store), asdict(outcome)])
        return dg.MaterializeResult(
            metadata=facts | {"started_time_ns": iso(outcome.started_time_ns), "nights": in_ui(picture)}
        )

    return game_day


def rehearsed(fault: RehearsedFault) -> GameDay:
    """Rehearse ``fault`` in a temporary directory; where that is not possible, the outcome says why."""
    reason = ""
    with tempfile.TemporaryDirectory(prefix="sda-game-day-", ignore_cleanup_errors=True) as directory:
        try:
            found = fault.rehearse(Path(directory))
        except (OSError, Unavailable) as error:
            found, reason = Measured(MissionClock().now_ns(), None, None), str(error)[:200]
    return GameDay(
        fault.name, **asdict(found), detect_within_s=fault.detect_within_s, recover_within_s=fault.recover_within_s,
        skipped=reason,
    )  # fmt: skip


def seal(outcome: GameDay, zone: LandingZone, sealed_ns: int) -> None:
    """Hand the outcome to the landing zone of the table."""
    name = f"game-day-{outcome.started_time_ns}.gameday"
    zone.seal_at(sealed_ns, name, encode_game_days([outcome]), _FORMAT, sender=Sender("game day"))


def outcomes(store: Lake) -> list[dict[str, Any]]:
    """Return every usable row, oldest first."""
    rows = store.log(GAME_DAYS).rows([*_COLUMNS, "error_kind"]).to_pylist()
    return sorted((row for row in rows if row["error_kind"] is None), key=lambda row: row["started_time_ns"])


def problems(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """State which faults the last rehearsal of each did not detect, or not recover from, within its bound."""
    newest = {row["fault"]: row for row in rows if not row["skipped"]}
    found = []
    for fault, row in sorted(newest.items()):
        if row["detect_within_s"] == 0.0:
            found += [f"{fault}: taken for a failure"] if row["detected_after_s"] is not None else []
        elif _is_late(row["detected_after_s"], row["detect_within_s"]):
            found.append(f"{fault}: not detected within {row['detect_within_s']:.0f} s")
        if _is_late(row["recovered_after_s"], row["recover_within_s"]):
            found.append(f"{fault}: not recovered within {row['recover_within_s']:.0f} s")
    return found


def _is_late(after_s: float | None, within_s: float) -> bool:
    return after_s is None or after_s > within_s


def silence(rows: Sequence[Mapping[str, Any]], now_ns: int) -> list[str]:
    """State each fault that missed two turns, with why it was skipped; nothing where none was ever to be rehearsed."""
    if not rows:
        return []
    return [line for fault in FAULTS if (line := _silence_of(fault.name, rows, now_ns))]


def _silence_of(fault: str, rows: Sequence[Mapping[str, Any]], now_ns: int) -> str:
    own = [row for row in rows if row["fault"] == fault]
    done = [row["started_time_ns"] for row in own if not row["skipped"]]
    # A fault that is newer than the first rehearsal of any counts from its own first turn.
    since_ns = max(done) if done else own[0]["started_time_ns"] if own else rows[-1]["started_time_ns"]
    if now_ns - since_ns <= MOST_DAYS_WITHOUT * DAY_NS:
        return ""
    last = f"the last was {iso(max(done))}" if done else "it never was"
    reason = f"; {own[-1]['skipped']}" if own and own[-1]["skipped"] else ""
    return f"{fault} was not rehearsed for {MOST_DAYS_WITHOUT} days: {last}{reason}"


@dg.asset_check(
    asset=GAME_DAYS.name,
    description="The last rehearsal of each fault was detected and recovered from within its bounds.",
)
def faults_are_survived(lake: LakeResource) -> dg.AssetCheckResult:
    """The faults that were not."""
    rows = outcomes(lake.open())
    return warning(problems(rows), {"rehearsals": len(rows)})


@dg.asset_check(
    asset=GAME_DAYS.name,
    description=f"Each fault was rehearsed in the last {MOST_DAYS_WITHOUT} days, where any ever was.",
)
def faults_are_rehearsed(lake: LakeResource) -> dg.AssetCheckResult:
    """The faults that were not, or were skipped; rehearsals are dated by wall time."""
    rows = outcomes(lake.open())
    return warning(silence(rows, MissionClock().now_ns()), {"rehearsals": len(rows)})


job = upkeep_job(
    "rehearse_fault",
    dg.AssetSelection.assets(KEY),
    "Rehearses a fault of the ground segment in a temporary directory.",
)
nightly = dg.ScheduleDefinition(
    name="nightly_game_day",
    job=job,
    cron_schedule="20 4 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Rehearses one fault a night, in turn; it takes less than a minute.",
)
