"""The catalogue as it is served follows its versions, and shows what was acknowledged before they hold it."""

import random
import threading
from pathlib import Path
from typing import cast

import pytest

from sda_platform.orbits.element_order import rank
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.serving.errors import DamagedIndex, IndexMismatch
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.server import Follower
from sda_platform.serving.store import IndexStore
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row, table
from sda_platform_tests.unit.serving.source import MemorySource, Seen

NOW_NS = EPOCH_NS + 10 * DAY_NS
PUT = "aa" * 32


@pytest.fixture
def source() -> MemorySource:
    return MemorySource()


def served(source: MemorySource, root: Path) -> LiveCatalogue:
    live = LiveCatalogue(source, IndexStore(root), lambda: NOW_NS)
    live.start()
    return live


def waiting(*rows: dict[str, object]) -> dict[str, object]:
    return {PUT: table([{**each, "segment_sha256": PUT} for each in rows])}


def flip(file: Path, place: int) -> None:
    with file.open("r+b") as damaged:
        damaged.seek(place)
        found = damaged.read(1)[0]
        damaged.seek(place)
        damaged.write(bytes([found ^ 1]))


def test_a_later_version_is_taken_in_by_its_changes_only(source: MemorySource, tmp_path: Path) -> None:
    source.commit(row(1), row(2))
    live = served(source, tmp_path)
    first = Seen(live).identity
    assert not live.refresh()
    source.commit(row(2, epoch_time_ns=EPOCH_NS + DAY_NS, record_number=9), row(3))
    assert live.refresh()
    assert [each.norad_id for each in Seen(live).objects()] == [1, 2, 3]
    assert [each.record_number for each in Seen(live).history(2)] == [2, 9]
    assert source.reads == ["catalogue after 0", "catalogue after 1"]
    assert Seen(live).identity != first
    assert live.health()["is_behind"] is False
    live.close()


def test_a_restart_serves_the_same_index_and_reads_no_table(source: MemorySource, tmp_path: Path) -> None:
    source.commit(row(1))
    before = served(source, tmp_path)
    tag = Seen(before).identity
    before.close()
    again = served(source, tmp_path)
    assert (Seen(again).identity, source.reads) == (tag, ["catalogue after 0"])
    again.close()


def test_a_catalogue_that_was_replaced_is_loaded_anew(source: MemorySource, tmp_path: Path) -> None:
    source.commit(row(1))
    source.commit(row(2))
    served(source, tmp_path).close()
    other = MemorySource()
    other.commit(row(7))
    live = served(other, tmp_path)
    assert [each.norad_id for each in Seen(live).objects()] == [7]
    live.close()


def test_an_index_that_cannot_be_opened_is_loaded_anew__PM28(source: MemorySource, tmp_path: Path) -> None:
    source.commit(*(row(number) for number in range(1, 200)))
    served(source, tmp_path).close()
    (file,) = tmp_path.glob("rocksdb/*/MANIFEST-*")
    flip(file, 20)
    live = served(source, tmp_path)
    found = live.get(77)
    assert found is not None and found.object_name == "OBJECT 77"
    assert source.reads == ["catalogue after 0"] * 2
    live.close()


@pytest.mark.parametrize("is_met", [True, False])
def test_a_bit_flipped_while_it_serves_is_found_named_and_repaired__PM28(
    source: MemorySource, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_met: bool
) -> None:
    """By a read, or by the examination of what no answer has met."""
    source.commit(*(row(number) for number in range(1, 200)))
    live = served(source, tmp_path)
    files = sorted(tmp_path.glob("rocksdb/*/*.sst"))
    assert len(files) >= 6, "one of each space of keys"
    for file in files:
        flip(file, 40)
    if is_met:
        with pytest.raises(DamagedIndex, match="rebuild"):
            live.get(77)
    else:
        live.examine()
    assert live.refresh()
    assert any(str(file) in caplog.text for file in files)
    assert (len(Seen(live).objects()), live.health()["damage"]) == (199, None)
    assert source.reads == ["catalogue after 0"] * 2
    live.close()


@pytest.mark.parametrize(("fails", "looks"), [(False, 19), (True, 1)])
def test_what_follows_the_catalogue_examines_its_index_in_between__PM28(fails: bool, looks: int) -> None:
    """A look that fails does not end it, and is not tried again before the next refresh: that would fill the log."""
    calls: list[str] = []
    is_done = threading.Event()

    class Counted:
        def examine(self) -> None:
            calls.append("examine")
            if fails:
                raise RuntimeError("this does not end it")

        def refresh(self) -> None:
            calls.append("refresh")
            if calls.count("refresh") == 2:
                is_done.set()

    follower = Follower(cast("LiveCatalogue", Counted()), interval_s=0.02)
    assert is_done.wait(30)
    follower.close()
    first, second = [place for place, call in enumerate(calls) if call == "refresh"][:2]
    assert (first, second - first - 1) == (looks, looks)


def test_what_is_too_much_for_one_step_is_loaded_anew__44(source: MemorySource, tmp_path: Path) -> None:
    source.commit(row(1))
    live = served(source, tmp_path)
    source.commit(*(row(number, epoch_time_ns=number) for number in range(2, 9)))
    source.most = 5
    assert live.refresh()
    assert source.reads == ["catalogue after 0"] * 2
    assert [each.epoch_time_ns for number in range(2, 9) for each in Seen(live).history(number)] == list(range(2, 9))
    live.close()


def test_an_acknowledged_set_is_served_until_the_index_holds_it(source: MemorySource, tmp_path: Path) -> None:
    source.commit(row(1), row(2))
    live = served(source, tmp_path)
    newer = row(2, epoch_time_ns=EPOCH_NS + DAY_NS, record_number=0, segment_sha256=PUT)
    source.waiting = waiting(newer, row(5, record_number=1))
    before = Seen(live).identity
    live.refresh()
    assert Seen(live).identity != before
    assert [(each.norad_id, each.record_number) for each in Seen(live).objects()] == [(1, 1), (2, 0), (5, 1)]
    assert len(Seen(live).history(2)) == 2
    assert [each.norad_id for each in Seen(live).found({"name": "OBJECT 5"})] == [5]
    source.waiting = {}
    source.commit(newer, row(5, record_number=1, segment_sha256=PUT))
    live.refresh()
    assert len(live.pending) == 0
    assert [(each.norad_id, each.record_number) for each in Seen(live).objects()] == [(1, 1), (2, 0), (5, 1)]
    assert len(Seen(live).history(2)) == 2, "nothing is shown twice"
    live.close()


def test_an_acknowledged_set_that_is_older_or_ahead_is_history_only(source: MemorySource, tmp_path: Path) -> None:
    source.commit(row(1, epoch_time_ns=EPOCH_NS))
    live = served(source, tmp_path)
    source.waiting = waiting(
        row(1, epoch_time_ns=EPOCH_NS - DAY_NS, record_number=7),
        row(1, epoch_time_ns=NOW_NS + DAY_NS, record_number=8),
    )
    live.refresh()
    found = live.get(1)
    assert found is not None and found.record_number == 1
    assert [each.record_number for each in Seen(live).history(1)] == [7, 1, 8]
    assert [each.record_number for each in Seen(live).in_force_at(1, [NOW_NS + DAY_NS])] == [8]
    live.close()


def test_the_set_in_force_at_each_time_follows_the_order_of_the_catalogue(source: MemorySource, tmp_path: Path) -> None:
    chance = random.Random(1)
    source.commit(
        *(
            row(
                1,
                epoch_time_ns=EPOCH_NS + chance.randrange(6) * EPOCH_TOLERANCE_NS,
                source_priority=chance.choice([10, 20]),
                element_set_number=chance.choice([None, 7, 8]),
                record_number=number,
            )
            for number in range(40)
        )
    )
    live = served(source, tmp_path)
    times_ns = [EPOCH_NS + step * EPOCH_TOLERANCE_NS // 2 for step in range(-4, 16)]
    expected = [max(Seen(live).history(1), key=lambda each: rank(each._asdict(), time_ns)) for time_ns in times_ns]
    assert Seen(live).in_force_at(1, times_ns) == expected
    assert Seen(live).in_force_at(2, times_ns) == []
    live.close()


def test_before_the_first_version_there_is_no_answer(source: MemorySource, tmp_path: Path) -> None:
    live = served(source, tmp_path)
    with pytest.raises(IndexMismatch, match="no version yet"):
        live.get(1)
    source.commit(row(1))
    live.refresh()
    assert live.get(1) is not None
    live.close()
