"""Freshness: what is stale fails a check and rings; what has no data yet is not stale."""

from pathlib import Path

import dagster as dg
import pytest

from sda_platform.catalog.checks import CATALOGUE_IS_FRESH
from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.checks import MAX_SCREENING_AGE_S
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES, SCREENED_FROM
from sda_platform.observability.alert_inputs import stale_inputs
from sda_platform.orchestration.table_checks import DataFreshness, _fresh
from sda_platform.setting_sections import ScreeningSettings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import after

DAY_S = 86_400.0


def test_the_text_of_a_failing_check_is_the_finding_and_its_severity_an_error(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", now_ns=after(0))
    commit(lake, ELEMENT_SETS, [{"norad_id": 1, "received_time_ns": after(-10 * DAY_S)}])
    result = _fresh(lake, lake.log(ELEMENT_SETS), CATALOGUE_IS_FRESH)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert result.description == (
        "It is not so that element sets arrived recently: element_sets is complete up to 2024-10-22T00:00:00.000Z, "
        "which is 864,000 s ago; allowed are 259,200 s."
    )


def test_a_table_without_data_is_not_stale(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    result = _fresh(lake, lake.log(ELEMENT_SETS), CATALOGUE_IS_FRESH)
    assert (result.passed, result.description) == (True, "No data yet.")


def test_a_check_that_holds_says_what_holds(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", now_ns=after(0))
    commit(lake, ELEMENT_SETS, [{"norad_id": 1, "received_time_ns": after(0)}])
    rule = DataFreshness("it is so", 1.0, CATALOGUE_IS_FRESH.newest_ns)
    assert _fresh(lake, lake.log(ELEMENT_SETS), rule).description == "By the mission clock, it is so."


@pytest.mark.parametrize("stale", [(), ("sets",), ("screening",), ("sets", "screening")], ids=str)
def test_stale_inputs_are_never_a_green_page_of_alerts(tmp_path: Path, stale: tuple[str, ...]) -> None:
    lake = lake_at(tmp_path / "lake")
    now_ns = lake.clock.now_ns()
    days_ns = round(9 * DAY_S * 1e9)
    received_ns = now_ns - days_ns if "sets" in stale else now_ns
    screened_ns = now_ns - days_ns if "screening" in stale else now_ns
    commit(lake, ELEMENT_SETS, [{"norad_id": 1, "received_time_ns": received_ns}])
    commit(lake, CONJUNCTION_CANDIDATES, [], watermarks={SCREENED_FROM: screened_ns})
    assert len(stale_inputs(lake)) == len(stale)


def test_no_accepted_setting_lets_a_screening_become_stale_before_it_is_repeated() -> None:
    (most_h,) = (bound.le for bound in ScreeningSettings.model_fields["refresh_h"].metadata if hasattr(bound, "le"))
    assert most_h * 3600 < MAX_SCREENING_AGE_S
