"""Game days through Dagster: a rehearsal becomes a row of `game_days`, which its checks judge."""

from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.ground import game_day
from sda_platform.ground.failure_detection import PathClass
from sda_platform.ground.rehearsal import Measured, RehearsedFault
from sda_platform.ground.tables import GAME_DAYS
from sda_platform.ground.uplink_faults import LINK_CUT, UplinkFault
from sda_platform_tests.support.platform_run import Platform, checks, written

QUICK = PathClass("rehearsal", interval_s=0.1, fixed_timeout_s=1.0, acceptable_pause_s=0.5)
SURVIVED, REHEARSED = (f"game_days:faults_are_{what}" for what in ("survived", "rehearsed"))


@dataclass(frozen=True)
class Unrecovered:
    """A link is cut as ever, and no time is left to recover."""

    fault: UplinkFault

    name: str = LINK_CUT
    detect_within_s: float = 20.0
    recover_within_s: float = 30.0

    def rehearse(self, directory: Path) -> Measured:
        """What the real one measures without time to recover."""
        return replace(self.fault, recover_within_s=0.0).rehearse(directory)


def rehearse(platform: Platform, monkeypatch: pytest.MonkeyPatch, fault: RehearsedFault) -> dg.ExecuteInProcessResult:
    """The nightly job with this fault, and the pool's job; its result."""
    monkeypatch.setattr(game_day, "fault_of", lambda _: fault)
    night = platform.run(game_day.job.name)
    (made,) = night.asset_materializations_for_node(game_day.KEY.to_user_string())
    assert made.metadata["fault"].value == fault.name
    assert "data:image" in str(made.metadata["nights"].value)
    return platform.run("ground_segment")


def test_a_rehearsal_is_a_row_and_one_without_recovery_warns__GF26(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = UplinkFault(LINK_CUT, QUICK)
    outcome = rehearse(platform, monkeypatch, fault)
    assert written(outcome)[GAME_DAYS.name] == 1
    assert {name: checks(outcome)[name] for name in (SURVIVED, REHEARSED)} == {SURVIVED: True, REHEARSED: True}
    (row,) = platform.rows(GAME_DAYS).to_pylist()
    assert (row["fault"], row["skipped"] or "", row["error_kind"]) == (LINK_CUT, "", None)
    assert 0.3 < row["detected_after_s"] <= row["detect_within_s"] == fault.detect_within_s
    assert 0.3 < row["recovered_after_s"] <= row["recover_within_s"] == fault.recover_within_s

    outcome = rehearse(platform, monkeypatch, Unrecovered(fault))
    assert (checks(outcome)[SURVIVED], checks(outcome)[REHEARSED]) == (False, True)
    (result,) = (
        each for each in outcome.get_asset_check_evaluations() if each.check_name == SURVIVED.partition(":")[2]
    )
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert result.description == "link cut: not recovered within 30 s"
    rows = sorted(platform.rows(GAME_DAYS).to_pylist(), key=lambda row: row["started_time_ns"])
    assert [row["recovered_after_s"] is None for row in rows] == [False, True]
    assert rows[0] == row, "an outcome stays"
