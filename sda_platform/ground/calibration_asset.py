"""The asset `detector_calibration`: how the detectors of all paths would have done on the recorded heartbeats."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import dagster as dg

from sda_platform.ground.calibration import (
    MOST_DETECTION_S,
    MOST_FALSE_A_DAY,
    MOST_STEADY_PHI,
    Calibration,
    calibrations,
)
from sda_platform.ground.heartbeats import HeartbeatRecord, recorded
from sda_platform.ground.links import heartbeat_events
from sda_platform.ground.tables import GROUND_EVENTS
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.jobs import upkeep_job
from sda_platform.orchestration.materialization import shown_table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.spark.pools import Pool
from sda_platform.units import SECOND_NS

KEY: Final = dg.AssetKey("detector_calibration")
SPAN_S: Final = 86_400.0
_RULES: Final[dict[str, tuple[str, Callable[[Calibration], str]]]] = {
    "false_declarations_are_rare": (
        f"On no path would late heartbeats be declared a failure more than {MOST_FALSE_A_DAY:g} time a day.",
        lambda each: f"{each.false_declarations:.1f} a day" if each.false_declarations > MOST_FALSE_A_DAY else "",
    ),
    "failures_are_found_in_time": (
        f"On every path a stop is declared within {MOST_DETECTION_S:.0f} s, in 99 % of the cases.",
        lambda each: f"{each.detection_s[1]:.1f} s" if each.detection_s[1] > MOST_DETECTION_S else "",
    ),
    "steady_heartbeats_raise_no_suspicion": (
        f"On every path phi stays below {MOST_STEADY_PHI:g} up to the 98th percentile of the heartbeats.",
        lambda each: f"phi {each.phi[1]:.1f}" if each.phi[1] >= MOST_STEADY_PHI else "",
    ),
}


@dg.asset(
    key=KEY,
    group_name="ground_segment",
    kinds={"python"},
    pool=Pool.MAINTENANCE,
    deps=[GROUND_EVENTS.name],
    check_specs=[dg.AssetCheckSpec(name, asset=KEY, description=text) for name, (text, _) in _RULES.items()],
    description="Of each path to a station: gaps between heartbeats, suspicion, false alarms and time to detection of "
    "the detector, and the threshold that the heartbeats of the last day advise.",
)
def detector_calibration(lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    """Play the recorded heartbeats of a day to the detectors."""
    yield calibration_of(lake.open())


def calibration_of(lake: Lake) -> dg.MaterializeResult[Any]:
    """Tabulate the calibration: a row for each path, most false declarations first, and the outcome of the rules."""
    found = sorted(calibrations(records(lake)), key=lambda each: -each.false_declarations)
    shown = {"paths": shown_table([each.shown() for each in found])}
    return dg.MaterializeResult(
        metadata={"recorded_paths": len(found), **(shown if found else {})},
        check_results=[_result(name, found) for name in _RULES],
    )


def records(lake: Lake) -> list[HeartbeatRecord]:
    """Return the heartbeats that were recorded in the last day."""
    since_ns = lake.clock.now_ns() - round(SPAN_S * SECOND_NS)
    return [recorded(event) for event in heartbeat_events(lake, since_ns)]


def _result(name: str, found: Iterable[Calibration]) -> dg.AssetCheckResult:
    """Return the outcome of a rule for the paths with enough heartbeats."""
    judged = [each for each in found if each.is_judged]
    wrong = [f"{each.name}: {problem}" for each in judged if (problem := _RULES[name][1](each))]
    return warning(wrong, {"judged_paths": len(judged)}, name=name)


job = upkeep_job(
    "calibrate_detectors",
    dg.AssetSelection.assets(detector_calibration),
    "Plays the recorded heartbeats of a day to the failure detectors.",
)
nightly = dg.ScheduleDefinition(
    name="nightly_detector_calibration",
    job=job,
    cron_schedule="50 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Calibrates the failure detectors from the heartbeats that uplinks recorded in the last day.",
)
