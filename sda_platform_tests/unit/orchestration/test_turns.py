"""Runs that write one table take turns: a loser works alone, and nobody waits for ever."""

import fcntl
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.lake.errors import CommitConflict
from sda_platform.orchestration.retries import with_retries
from sda_platform.orchestration.turns import turn


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "turns" / "table.lock"


def test_first_tries_run_together(place: Path) -> None:
    with turn(place, is_alone=False), turn(place, is_alone=False, pause=lambda _: pytest.fail("nobody waits")):
        pass


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False), (True, True)])
def test_who_works_alone_waits_for_others_and_others_wait_for_it(place: Path, first: bool, second: bool) -> None:
    others = ExitStack()
    others.enter_context(turn(place, is_alone=first))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            others.close()

    with turn(place, is_alone=second, pause=pause):
        assert len(pauses) == 3


def test_a_run_that_hangs_stops_others_for_a_bounded_time(place: Path) -> None:
    pauses: list[float] = []
    with turn(place, is_alone=True), turn(place, is_alone=False, longest_wait_s=2.0, pause=pauses.append):
        assert sum(pauses) == pytest.approx(2.0)


def test_without_a_place_for_the_lock_the_body_runs(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("a file where the directory should be")
    with turn(tmp_path / "turns" / "table.lock", is_alone=True):
        pass


def test_an_asset_that_lost_twice_is_alone_at_its_table_until_it_has_committed() -> None:
    is_free: list[bool] = []
    with dg.DagsterInstance.ephemeral() as instance:
        place = Path(instance.root_directory) / "turns" / "table.lock"

        def body() -> dg.MaterializeResult[Any]:
            is_free.append(_is_free_for_others(place))
            if len(is_free) <= 2:
                raise CommitConflict("another came first")
            return dg.MaterializeResult()

        table = dg.asset(name="table")(with_retries("table", body))
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        assert dg.materialize([table], instance=instance, run_config=quiet).success
        assert _is_free_for_others(place)
    assert is_free == [True, True, False]


def _is_free_for_others(place: Path) -> bool:
    with place.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
