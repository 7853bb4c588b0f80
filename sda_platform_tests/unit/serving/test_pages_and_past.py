"""Pages of one list are of one state, and `as_of` shows the catalogue as it was known at a time in the past."""

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sda_platform.clock import iso
from sda_platform.orbits.element_order import rank
from sda_platform.serving.kept_views import KEPT_S, LONGEST_S, MOST_VIEWS, KeptViews, NotKept
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.store import IndexStore
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row
from sda_platform_tests.unit.serving.interleavings import Answer, World, asked, world
from sda_platform_tests.unit.serving.source import MemorySource, Seen


@pytest.fixture
def place() -> Iterator[World]:
    with world() as found:
        yield found


def following(answer: Answer) -> str:
    """The address of the next page."""
    assert answer.status == 200, answer
    return answer.headers["link"].partition(">")[0].removeprefix("<")


@pytest.mark.parametrize(
    "path", ["/objects?limit=3", "/states?limit=3&at=2024-11-01T00:00:00Z", "/objects/7/history?limit=1"]
)
@pytest.mark.parametrize("write", ["put", "commit", "consume"])
def test_further_pages_are_of_the_state_of_the_first__44(place: World, path: str, write: str) -> None:
    for _ in range(3):
        place.write(write)
    whole = [asked(place.app, path)]
    while "link" in whole[-1].headers:
        whole.append(asked(place.app, following(whole[-1])))
    for _ in range(3):
        place.write(write)
    page = asked(place.app, following(whole[0]))
    for before in whole[1:]:
        assert page.body == before.body
        page = asked(place.app, following(page)) if "link" in page.headers else page
    assert len(whole) > 2
    assert asked(place.app, path).headers["etag"] != whole[0].headers["etag"]


def test_a_page_of_a_state_that_is_gone_is_refused(place: World) -> None:
    link = following(asked(place.app, "/objects?limit=3"))
    assert asked(place.app, link.replace("snapshot=", "snapshot=0")).status == 410
    place.live.kept.release(every=True)
    assert asked(place.app, link).status == 200, "what is still served need not be kept"
    place.live.kept.release(every=True)
    place.write("put")
    assert asked(place.app, link).status == 410


def test_kept_views_are_few_and_for_a_short_time(tmp_path: Path) -> None:
    now_s, source = [0.0], MemorySource()
    live = LiveCatalogue(source, IndexStore(tmp_path), lambda: EPOCH_NS)
    live.kept = kept = KeptViews(lambda: now_s[0])
    names = []
    for number in range(MOST_VIEWS + 2):
        source.commit(row(number + 1))
        live.refresh()
        with live.view() as view:
            view.has_more = True
            names.append(view.identity)
    assert [kept.has(name) for name in names] == [False, False, *[True] * MOST_VIEWS]
    while now_s[0] <= LONGEST_S:
        now_s[0] += KEPT_S - 1
        live.refresh()
        assert [kept.has(name) for name in names[-2:]] == [now_s[0] <= LONGEST_S] * 2
        for name in names[-2:]:
            with suppress(NotKept), kept.view(name):
                continue
    assert not any(map(kept.has, names)), "no use keeps a state for ever"
    live.close()


def test_the_past_is_what_had_been_received_and_was_in_force__44(tmp_path: Path) -> None:
    chance = random.Random(3)
    numbers = itertools.count(1)
    sets: list[dict[str, Any]] = [
        row(
            chance.randrange(1, 7),
            epoch_time_ns=EPOCH_NS + chance.randrange(8) * DAY_NS,
            received_time_ns=EPOCH_NS + chance.randrange(8) * DAY_NS,
            source_priority=chance.choice([10, 20]),
            object_name=chance.choice(["A", "B"]),
            record_number=next(numbers),
        )
        for _ in range(60)
    ]
    source = MemorySource()
    source.commit(*sets)
    live = LiveCatalogue(source, IndexStore(tmp_path), lambda: EPOCH_NS)
    live.start()
    for day in range(-1, 8):
        with live.view() as view:
            past = view.past(EPOCH_NS + day * DAY_NS)
            known = [each for each in sets if each["received_time_ns"] <= past.as_of_ns]
            best: dict[int, int] = {}
            for each in sorted(known, key=lambda each: rank(each, past.as_of_ns)):
                best[each["norad_id"]] = each["record_number"]
            assert {each.norad_id: each.record_number for each in past.objects()} == best
            assert [each.norad_id for each in past.objects()] == sorted(best)
            named = [number for number, record in sorted(best.items()) if sets[record - 1]["object_name"] == "A"]
            assert [each.norad_id for each in past.found({"name": "a"})] == named
            assert {each.record_number for each in past.history(3)} == {
                each["record_number"] for each in known if each["norad_id"] == 3
            }
            for number in range(1, 7):
                states = past.in_force_at(number, [past.as_of_ns])
                assert [each.record_number for each in states] == ([best[number]] if number in best else [])
    assert Seen(live).identity != past.identity
    live.close()


def test_every_read_takes_as_of(place: World) -> None:
    before = iso(EPOCH_NS)
    place.write("commit")
    for path in ("/objects", "/objects/7/history", "/NORAD/elements/gp.php?CATNR=7&FORMAT=json&AS_OF=" + before):
        answer = asked(place.app, path if "?" in path else f"{path}?as_of={before}")
        assert (answer.status, b"NORAD_CAT_ID" in answer.body) == (200, False), path
    assert asked(place.app, f"/objects/7?as_of={before}").status == 404
    assert asked(place.app, f"/objects/7?as_of={iso(EPOCH_NS + 3 * DAY_NS)}").status == 200
    for path in ("/alerts", "/schedule", "/states?id=7", "/objects/7/conjunctions"):
        assert asked(place.app, f"{path}{'&' if '?' in path else '?'}as_of=never").status == 400, path
