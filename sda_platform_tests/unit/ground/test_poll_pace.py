"""An idle uplink asks an object store seldom, and a busy one at once."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sda_platform.ground.poll_pace import PollPace
from sda_platform.lake.log import TableLog
from sda_platform.landing import pending
from sda_platform.landing.listing import list_directory
from sda_platform_tests.support.ground_loop import Ground, ground_at

IDLE_S = 20.0


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_at(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the zone was listed, and the newest commit of a table looked up."""
    counts: Counter[str] = Counter()
    of_zone, of_table = list_directory, TableLog.head

    def listed(*args: Any) -> Any:
        counts["listings"] += 1
        return of_zone(*args)

    def head(*args: Any) -> Any:
        counts["heads"] += 1
        return of_table(*args)

    monkeypatch.setattr(pending, "list_directory", listed)
    monkeypatch.setattr(TableLog, "head", head)
    return counts


def test_an_idle_uplink_lists_an_object_store_once_a_second__46_3(ground: Ground, looks: Counter[str]) -> None:
    ground.landing = f"memory://{ground.landing.name}-{id(ground)}"  # type: ignore[union-attr]
    ground.uplink("primary")
    ground.run(5)
    looks.clear()
    ground.run(IDLE_S)
    assert looks["listings"] <= IDLE_S + 1
    assert looks["heads"] <= IDLE_S + 1
    # A command is taken within a second, and what follows it without a pause.
    for name in ("first", "second"):
        ground.log().issue("SAFE_MODE", expires_in_s=60, command_id=name)
    ground.run(1.1)
    assert sorted(ground.executed()) == ["first", "second"]
    ground.log().issue("SAFE_MODE", expires_in_s=60, command_id="third")
    ground.run(0.15)
    assert ground.executed()[2:] == ["third"]


def test_on_a_local_disk_each_step_looks(ground: Ground, looks: Counter[str]) -> None:
    ground.uplink("primary")
    ground.run(1)
    looks.clear()
    ground.run(1)
    assert looks["listings"] >= 20


def test_pauses_double_up_to_the_longest_and_end_with_a_find() -> None:
    pace, looked_s, now_s = PollPace(0.05, 1.0), [], 0.0
    while now_s < 5.0:
        if pace.is_due(now_s):
            looked_s.append(now_s)
            pace.looked(now_s, has_found=False)
        now_s += 0.01
    pauses = [round(after - before, 2) for before, after in pairwise(looked_s)]
    assert pauses[:5] == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8], abs=0.011)
    assert all(each == pytest.approx(1.0, abs=0.011) for each in pauses[5:])
    pace.looked(now_s, has_found=True)
    assert pace.is_due(now_s)
