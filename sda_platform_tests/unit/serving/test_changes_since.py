"""`since`: what a client puts over what it has makes the whole list, whatever happened in between."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sda_platform.catalog.tables import HELD_ELEMENT_SETS, SATELLITE_CATALOG
from sda_platform.recovery.review import review
from sda_platform.serving.changes_since import CURSOR
from sda_platform.serving.satellites import Satellites
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.small_catalogue import SEGMENT, committed, sets_of
from sda_platform_tests.unit.serving.catalogues import EPOCH_NS, row, table
from sda_platform_tests.unit.serving.endpoint import TOKENS, clients_of, endpoint_over
from sda_platform_tests.unit.serving.interleavings import NOW_NS, World, asked, world

OBJECTS = 12
BULK = ("/objects?", "/NORAD/elements/gp.php?GROUP=all&FORMAT=json&", "/basicspacedata/query/class/gp/format/json?")
PARAMETER = dict(zip(BULK, ("since", "SINCE", "since"), strict=True))


@pytest.fixture
def place() -> Iterator[World]:
    with world() as found:
        found.source.commit(*(row(number) for number in range(1, OBJECTS + 1)))
        found.live.refresh()
        yield found


class Mirror:
    """A client that keeps each object as the last answer had it."""

    def __init__(self, place: World, path: str) -> None:
        self._place, self._path = place, path
        self.rows: dict[int, Any] = {}
        self._cursor = ""

    def answer(self, since: str = "") -> tuple[dict[int, Any], str]:
        query = f"{PARAMETER[self._path]}={since}" if since else ""
        found = asked(self._place.app, f"{self._path}{query}")
        assert found.status == 200, found
        rows = json.loads(found.body) if found.body[:1] == b"[" else []
        return {int(each["NORAD_CAT_ID"]): each for each in rows}, found.headers[CURSOR.lower()]

    def follow(self) -> int:
        """Take what has changed; how many rows came."""
        changed, self._cursor = self.answer(self._cursor)
        self.rows |= changed
        return len(changed)


class History:
    """Random writes: sets that are put, consumed, held after they were served, and released; facts that change."""

    def __init__(self, place: World, chance: random.Random) -> None:
        self._place, self._chance, self._number = place, chance, 0
        self._waiting: dict[str, dict[str, Any]] = {}
        self._held: list[dict[str, Any]] = []

    def step(self) -> str:
        kind = self._chance.choice(["put", "commit", "consume", "hold", "release", "facts", "nothing"])
        getattr(self, f"_{kind}")()
        self._place.live.refresh()
        return kind

    def _set(self) -> dict[str, Any]:
        self._number += 1
        newer = {"epoch_time_ns": EPOCH_NS + self._number * 10**9, "record_number": self._number}
        number = self._chance.randrange(1, OBJECTS + 1)
        sha256 = f"{self._number:064x}"
        return row(number, object_name=f"N {self._number}", segment_sha256=sha256, received_time_ns=NOW_NS, **newer)

    def _nothing(self) -> None:
        pass

    def _put(self) -> None:
        found = self._set()
        self._waiting[found["segment_sha256"]] = found
        self._place.live.take(found["segment_sha256"], table([found]))

    def _commit(self) -> None:
        self._place.source.commit(self._set())

    def _consume(self) -> None:
        if self._waiting:
            self._place.source.commit(self._waiting.pop(next(iter(self._waiting))))

    def _hold(self) -> None:
        """The gate holds what was put and served: the object has again the set that it had."""
        if self._waiting:
            found = self._waiting.pop(next(iter(self._waiting)))
            self._held.append(found)
            self._place.source.holds_of.append(found["norad_id"])
            self._place.source.commit()
            served = self._place.live._served
            self._place.live._served = served[0], type(served[1])()
            for each in self._waiting.values():
                self._place.live.take(each["segment_sha256"], table([each]))

    def _release(self) -> None:
        if self._held:
            found = self._held.pop()
            self._place.source.holds_of.append(found["norad_id"])
            self._place.source.commit(found)

    def _facts(self) -> None:
        source = self._place.source
        number, sequence = self._chance.randrange(1, OBJECTS + 1), source.known.sequence + 1
        facts = {"norad_id": number, "owner": f"OWNER {sequence}"}
        known, written = {**source.known.by_number, number: facts}, {**source.known.written, number: sequence}
        source.known = Satellites(f"version {sequence}", known, sequence, written)


@pytest.mark.parametrize("path", BULK)
@pytest.mark.parametrize("seed", range(4))
def test_what_changed_put_over_what_was_known_is_the_whole_list__44(place: World, path: str, seed: int) -> None:
    chance = random.Random(seed)
    mirror, history = Mirror(place, path), History(place, chance)
    assert mirror.follow() >= OBJECTS
    seen, sizes = set(), []
    for _ in range(40):
        seen |= {history.step() for _ in range(chance.randrange(1, 4))}
        sizes.append(mirror.follow())
        assert mirror.rows == mirror.answer()[0]
    assert seen == {"put", "commit", "consume", "hold", "release", "facts", "nothing"}
    assert max(sizes) < OBJECTS, "what has not changed does not come"


def test_a_cursor_that_cannot_be_continued_is_gone__44(place: World) -> None:
    _, cursor = Mirror(place, BULK[0]).answer()
    assert asked(place.app, f"/objects?since={cursor}").body.strip() == b"[]"
    assert asked(place.app, f"/objects?since=9{cursor}").status == 410
    assert asked(place.app, "/objects?since=yesterday").status == 400
    assert asked(place.app, f"/objects?since={cursor}&as_of=2024-11-01T00:00:00Z").status == 400
    assert asked(place.app, f"/basicspacedata/query/class/satcat?since={cursor}").status == 400
    assert CURSOR.lower() not in asked(place.app, "/objects?as_of=2024-11-01T00:00:00Z").headers
    assert asked(place.app, f"/objects?since={cursor}ab").status == 410, "sets are of other objects now"


def test_a_lake_says_what_was_held_and_which_facts_changed__44(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, lake):
        whole = client.get("/objects")
        cursor = whole.headers[CURSOR]
        assert [each["NORAD_CAT_ID"] for each in whole.json()] == [5, 11, 25544]
        assert client.get(f"/objects?since={cursor}").json() == []
        held = {"norad_id": 11, "epoch_time_ns": 0, "reason": "implausible orbit", "outcome": "held"}
        times = {"held_since_ns": 0, "changed_time_ns": 0}
        commit(lake, HELD_ELEMENT_SETS, [{**held, **times, "segment_sha256": SEGMENT, "record_number": 0}])
        commit(lake, SATELLITE_CATALOG, [{"norad_id": 5, "owner": "US", "decay_is_decided": False}])
        review(lake, SATELLITE_CATALOG)
        source = client.app.state.live.source
        assert list(source.held_between(0, 1)) == [11]
        known = source.satellites()
        assert (known.sequence, known.changed_since(0), known.changed_since(1)) == (1, [5], [])
        committed(lake, sets_of([900]))
        client.app.state.live.refresh()
        assert [each["NORAD_CAT_ID"] for each in client.get(f"/objects?since={cursor}").json()] == [5, 900]


def test_readers_of_some_sources_cannot_ask_for_changes__44(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P", TOKENS["AURORA_TOKEN"])
    text = '[clients.p]\ntoken_variable = "P"\nsources = ["celestrak"]\n[reading]\nneeds_login = true\n'
    with endpoint_over(tmp_path / "served", clients_of(tmp_path, text)) as (client, _):
        login = {"Authorization": f"Bearer {TOKENS['AURORA_TOKEN']}"}
        assert CURSOR not in client.get("/objects", headers=login).headers
        assert client.get("/objects?since=1.0.0.", headers=login).status_code == 403
