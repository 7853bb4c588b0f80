"""The growth of dead letters: red at ten times the usual rate for five minutes, with kind and source (DP5-O3, O5)."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.clock import MissionClock
from sda_platform.dead_letters.growth import GrowthResource, growing, no_growth, recent_letters
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import START_NS, after

NOW_S = 7200.0
HOUR = range(5, 65)
LAST_MINUTES = range(5)


def letters(per_min: int, minutes: Sequence[int], **values: Any) -> list[dict[str, Any]]:
    """So many letters in each of the minutes, which count backwards from now."""
    kept = {"feed": "radar", "source_id": "radar-7", "error_kind": "bad_length", "schema_version": 2, "retry_count": 0}
    return [
        {**kept, "received_time_ns": after(NOW_S - 60 * minute - 30), "record_number": 1000 * minute + n, **values}
        for minute in minutes
        for n in range(per_min)
    ]


def checked(
    root: Path, rows: Sequence[Mapping[str, Any]], rule: GrowthResource | None = None, known_min: int = 64
) -> dg.AssetCheckResult:
    """The check of ``rows``, on a platform that has recorded dead letters for ``known_min`` minutes."""
    rows = [*rows, *letters(1, [known_min], error_kind="missing_field")]
    lake = lake_at(root / "lake", now_ns=after(NOW_S))
    lake.clock.save(root)
    commit(lake, DEAD_LETTERS, rows)
    resource = LakeResource(uri=lake.uri, home=str(root), spark=SparkResource(remote="local"))
    result = no_growth(lake=resource, growth=rule or GrowthResource())
    assert isinstance(result, dg.AssetCheckResult)
    return result


def test_ten_times_the_usual_rate_for_five_minutes_is_red_and_named(tmp_path: Path) -> None:
    found = checked(tmp_path, [*letters(2, HOUR), *letters(20, LAST_MINUTES), *letters(1, HOUR, error_kind="bad_json")])
    assert found.passed is False
    assert found.description is not None
    assert found.description.startswith(
        "bad_length mostly from radar-7: 20 dead letters a minute against 2 as usual. The source changed its layout"
    )
    assert (found.metadata["kind"].value, found.metadata["source"].value) == ("bad_length", "radar-7")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        letters(2, HOUR) + letters(19, LAST_MINUTES),
        letters(2, HOUR) + letters(500, range(4)),
        letters(9, LAST_MINUTES),
        letters(20, HOUR) + letters(20, LAST_MINUTES),
        letters(100, LAST_MINUTES, retry_count=1),
    ],
    ids=["none", "less than ten times", "four minutes", "a handful from nothing", "as usual", "refused again"],
)
def test_anything_less_is_green(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    assert checked(tmp_path, rows).passed is True


def test_the_dominant_kind_and_source_come_first(tmp_path: Path) -> None:
    few = letters(12, LAST_MINUTES, error_kind="bad_json", feed="optical", source_id=None)
    many = letters(30, LAST_MINUTES) + letters(3, LAST_MINUTES, source_id="radar-1")
    found = checked(tmp_path, few + many)
    told = (found.description or "").split("; ")
    assert [text.split(":")[0] for text in told] == ["bad_length mostly from radar-7", "bad_json mostly from optical"]


def test_the_factor_can_be_set_by_kind(tmp_path: Path) -> None:
    rows = letters(12, LAST_MINUTES)
    assert checked(tmp_path / "a", rows, GrowthResource(factor_by_kind={"bad_length": 40.0})).passed is True
    assert checked(tmp_path / "b", rows, GrowthResource(factor_by_kind={"bad_json": 40.0})).passed is False


def test_letters_that_only_a_newer_platform_can_read_are_reported(tmp_path: Path) -> None:
    found = checked(tmp_path, letters(1, [0], schema_version=3))
    assert (found.passed, found.metadata["letters_of_unknown_version"].value) == (False, 1)


@pytest.mark.parametrize("known_min", sampled(range(5, 65), 5, 6, 7, 9, 12, 20, 35, 59, 60, 61, 64))
def test_a_steady_rate_is_usual_from_the_first_minute_on(tmp_path: Path, known_min: int) -> None:
    assert checked(tmp_path, letters(20, range(known_min)), known_min=known_min).passed is True


def test_a_young_platform_compares_with_what_it_has_seen(tmp_path: Path) -> None:
    found = checked(tmp_path, letters(3, range(5, 15)) + letters(31, LAST_MINUTES), known_min=14)
    assert (found.description or "").split(". ")[0].endswith("31 dead letters a minute against 3 as usual")


def test_a_table_that_was_made_long_ago_knows_what_is_usual_without_letters(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", now_ns=after(NOW_S))
    commit(lake, DEAD_LETTERS, letters(20, LAST_MINUTES))
    recent = recent_letters(lake, after(NOW_S))
    assert growing(lake, recent, after(NOW_S), GrowthResource()) == []
    lake.clock = MissionClock(after(NOW_S - 3600.0), time.time_ns())
    assert [each.kind for each in growing(lake, recent, after(NOW_S), GrowthResource())] == ["bad_length"]


def test_old_letters_are_not_reviewed(tmp_path: Path) -> None:
    found = checked(tmp_path, [{"received_time_ns": START_NS}], known_min=0)
    assert found.metadata["letters_reviewed"].value == 1
