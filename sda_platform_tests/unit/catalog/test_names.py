"""Names by edits: in the catalogue's rows, and in every answer, also of sets that wait and of the past."""

import pytest

from sda_platform.catalog.edit_decoding import facts_of
from sda_platform.catalog.edits import next_edit
from sda_platform.catalog.names import EditedNames
from sda_platform.catalog.tables import ORBITAL_CATALOG, SATELLITE_CATALOG
from sda_platform.formats.edits import NAME, Edit
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.segments import Sender
from sda_platform.recovery.review import review
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.catalogue_merging import HOUR_NS, Merging, histories
from sda_platform_tests.unit.serving.source import Seen

pytestmark = pytest.mark.usefixtures("engineless")


def test_an_edit_names_an_object_until_another_one_removes_the_name__44(merging: Merging) -> None:
    one, other = histories()[:2]
    number, published = one[0]["norad_id"], {row[0]["norad_id"]: row[0]["object_name"] for row in (one, other)}

    def names() -> dict[int, str]:
        return {row["norad_id"]: row["object_name"] for row in merging.catalogue()}

    merging.deliver([*one[:-1], *other])
    assert names() == published
    merging.deliver(edits=[merging.edit(number, NAME, "GRAVEYARD TUG")])
    assert names() == published | {number: "GRAVEYARD TUG"}
    merging.deliver([one[-1]])
    assert (names()[number], merging.in_force()[number][0]) == ("GRAVEYARD TUG", one[-1]["segment_sha256"])
    merging.deliver(edits=[merging.edit(number, NAME, "")])
    assert names() == published


def test_edits_that_contradict_each_other_name_nothing__44_CS8() -> None:
    def edit(origin: str, value: str, *known: Edit) -> Edit:
        return next_edit(
            known, norad_id=5, attribute=NAME, value=value, origin=origin, editor="me", edited_time_ns=0
        )  # fmt: skip

    north, south = edit("north", "A"), edit("south", "B")
    arrivals = [(10, north), (20, south), (30, edit("north", "C", north, south))]
    names = EditedNames(
        {**facts_of(each), "segment_sha256": "a", "record_number": time_ns, "received_time_ns": time_ns}
        for time_ns, each in reversed(arrivals)
    )
    assert [names.at(time_ns) for time_ns in (9, 10, 20, 29, 30, 99)] == [{}, {5: "A"}, {}, {}, {5: "C"}, {5: "C"}]


def test_answers_have_the_edited_name_also_of_what_waits_and_of_the_past__44(merging: Merging) -> None:
    rows, before_ns = histories()[0], merging.now_ns
    number, published = rows[0]["norad_id"], rows[0]["object_name"]
    merging.deliver(rows)
    merging.now_ns += HOUR_NS
    merging.deliver(edits=[merging.edit(number, NAME, "GRAVEYARD TUG")])
    lake = merging.open()
    for table in (SATELLITE_CATALOG, ORBITAL_CATALOG):
        review(lake, table)
    source = LakeSource(lake, str(merging.home / "landing"))
    live = LiveCatalogue(source, IndexStore(merging.home / "serving"), lambda: merging.now_ns)
    live.start()
    seen = Seen(live)
    assert [each.object_name for each in seen.found({"name": "tug"})] == ["GRAVEYARD TUG"]
    assert [*seen.found({"name": published})] == []
    with live.view() as view:
        names = [[each.object_name for each in view.past(time_ns).objects()] for time_ns in (before_ns, merging.now_ns)]
    assert names == [[published], ["GRAVEYARD TUG"]]
    puts = Puts(live, source.land)
    element = ElementSet(number, published, None, before_ns, 15.0, 0.001, 51.6, 1.0, 2.0, 3.0, 1e-4)
    puts.put([element], Sender("aurora", None, 0)).result(10)
    puts.close()
    found = live.get(number)
    assert found is not None
    assert (found.epoch_time_ns, found.object_name) == (before_ns, "GRAVEYARD TUG")
    assert {each.object_name for each in seen.history(number)} == {published}, "sets stay as they were published"
    live.close()
