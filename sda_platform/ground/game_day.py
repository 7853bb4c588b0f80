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
from sda_platform.ground.rehearsal import DETECT_WITHIN_S, FAULTS, RECOVER_WITHIN_S, rehearse
from sda_platform.ground.tables import GAME_DAY_FEED, GAME_DAYS
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.materialization import in_ui
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG
from sda_platform.units import DAY_NS

KEY: Final = dg.AssetKey("game_day")
MOST_DAYS_WITHOUT: Final = 7
_FORMAT: Final = "game-days-jsonl"
_COLUMNS: Final = tuple(GameDay.__dataclass_fields__)


def fault_of(day_ns: int) -> str:
    """Return the fault whose turn it is on the day of ``day_ns`` (UTC)."""
    return FAULTS[day_ns // DAY_NS % len(FAULTS)]


def game_day_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset whose materialization rehearses the fault of the day."""

    @dg.asset(
        key=KEY,
        group_name="ground_segment",
        kinds={"python"},
        pool=Pool.MAINTENANCE,
        description="Starts a small real ground segment in a temporary directory, lets the fault of the night strike "
        "it, and measures the time to detect and to recover. Nothing in the home or at a station is touched.",
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


def rehearsed(fault: str) -> GameDay:
    """Rehearse ``fault`` in a temporary directory; where the segment does not work, the outcome says why."""
    with tempfile.TemporaryDirectory(prefix="sda-game-day-", ignore_cleanup_errors=True) as directory:
        try:
            return rehearse(fault, Path(directory))
        except (OSError, Unavailable) as error:
            now_ns = MissionClock().now_ns()
            return GameDay(fault, now_ns, None, None, DETECT_WITHIN_S, RECOVER_WITHIN_S, skipped=str(error)[:200])


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
        for done, bound in (("detected_after_s", "detect_within_s"), ("recovered_after_s", "recover_within_s")):
            if row[done] is None or row[done] > row[bound]:
                found.append(f"{fault}: not {done.partition('_')[0]} within {row[bound]:.0f} s")
    return found


def silence(rows: Sequence[Mapping[str, Any]], now_ns: int) -> list[str]:
    """State since when no fault was rehearsed; empty where nothing was ever to be, or one was in the last week."""
    done = [row["started_time_ns"] for row in rows if not row["skipped"]]
    if not rows or (done and now_ns - max(done) <= MOST_DAYS_WITHOUT * DAY_NS):
        return []
    if now_ns - rows[0]["started_time_ns"] <= MOST_DAYS_WITHOUT * DAY_NS:
        return []
    last = f"the last was {iso(max(done))}" if done else "none ever was"
    reason = f"; {rows[-1]['skipped']}" if rows[-1]["skipped"] else ""
    return [f"no fault was rehearsed for {MOST_DAYS_WITHOUT} days: {last}{reason}"]


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
    description=f"A fault was rehearsed in the last {MOST_DAYS_WITHOUT} days, where any was before.",
)
def faults_are_rehearsed(lake: LakeResource) -> dg.AssetCheckResult:
    """The time without a rehearsal; rehearsals are dated by wall time."""
    rows = outcomes(lake.open())
    return warning(silence(rows, MissionClock().now_ns()), {"rehearsals": len(rows)})


job = dg.define_asset_job(
    "rehearse_fault",
    selection=dg.AssetSelection.assets(KEY),
    tags={POOL_TAG: Pool.MAINTENANCE},
    executor_def=dg.in_process_executor,
    description="Rehearses a fault of the ground segment in a temporary directory.",
)
nightly = dg.ScheduleDefinition(
    name="nightly_game_day",
    job=job,
    cron_schedule="20 4 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Rehearses one fault a night, in turn; it takes less than a minute.",
)
