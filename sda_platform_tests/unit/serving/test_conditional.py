"""Answers that caches may believe: tags, dates, preconditions, codings, and errors of one schema."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from sda_platform.clock import parse_iso_ns
from sda_platform.serving import keys
from sda_platform.serving.negotiation import MOST_RANGES, best
from sda_platform_tests.support.sampling import IS_SOAK, sampled
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row
from sda_platform_tests.unit.serving.interleavings import ALERTS, PATHS, World, asked, explored, world

PLACES = ["/objects/7", "/objects?name=object", "/objects/7/history", "/NORAD/elements/gp.php?NAME=object"]


@pytest.fixture
def place() -> Iterator[World]:
    with world() as found:
        yield found


def later(place: World) -> None:
    """Let more than a second pass since the last change."""
    for _ in range(8):
        asked(place.app, "/objects/7")


@pytest.mark.parametrize("path", sampled(PATHS, PATHS[0]))
def test_no_interleaving_shows_an_old_body_under_a_new_tag__44(path: str) -> None:
    """A sample, and in a soak all of them: more than 10,000, divided by what is read."""
    if IS_SOAK:
        assert explored(paths=[path]) >= 10_000 / len(PATHS)
    else:
        assert explored(61, 17, [path]) > 20


@pytest.mark.parametrize("path", PLACES)
def test_a_change_changes_tag_and_date_and_a_known_state_is_304(place: World, path: str) -> None:
    later(place)
    first = asked(place.app, path)
    assert first.headers["cache-control"] == "no-cache"
    tagged, dated = {"If-None-Match": first.headers["etag"]}, {"If-Modified-Since": first.headers["last-modified"]}
    for known in (tagged, dated, {"If-None-Match": "*"}, {"If-None-Match": f'"x", W/{first.headers["etag"]}'}):
        answer = asked(place.app, path, known)
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", first.headers["etag"]), known
    for other in ({"If-None-Match": '"x"', **dated}, {"If-Modified-Since": "yesterday"}):
        assert asked(place.app, path, other).status == 200, other
    place.write("put")
    later(place)
    for known in (tagged, dated):
        answer = asked(place.app, path, known)
        assert (answer.status, answer.headers["etag"] != first.headers["etag"]) == (200, True), known


def test_a_state_has_no_date_in_the_second_of_its_change(place: World) -> None:
    """Another change may follow within the second; a date that both have would hide the later."""
    later(place)
    place.write("put")
    assert "last-modified" not in asked(place.app, "/objects/7").headers


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/objects/99999", 404),
        ("/objects/abc", 400),
        ("/objects?limit=0", 400),
        ("/objects/7?format=docx", 406),
        ("/objects/7/states?at=9999-01-01T00:00:00Z", 400),
        ("/alerts?risk=orange", 400),
        ("/NORAD/elements/gp.php?GROUP=none", 400),
    ],
)
def test_no_precondition_hides_what_is_wrong_with_a_request__RFC9110_13_2_1(
    place: World, path: str, status: int
) -> None:
    tag = asked(place.app, "/objects/7").headers["etag"]
    for condition in ({"If-None-Match": tag}, {"If-None-Match": "*"}, {"If-Match": '"x"'}):
        answer = asked(place.app, path, condition)
        assert (answer.status, answer.headers["cache-control"]) == (status, "no-store"), condition


def test_if_match_and_if_unmodified_since_are_kept(place: World) -> None:
    later(place)
    first = asked(place.app, "/objects/7")
    dated = {"If-Unmodified-Since": first.headers["last-modified"]}
    assert asked(place.app, "/objects/7", {"If-Match": first.headers["etag"]}).status == 200
    assert asked(place.app, "/objects/7", {"If-Match": f"W/{first.headers['etag']}"}).status == 412, "strong only"
    assert asked(place.app, "/objects/7", dated).status == 200
    place.write("put")
    later(place)
    for known in ({"If-Match": first.headers["etag"]}, dated):
        assert asked(place.app, "/objects/7", known).status == 412, known


def test_each_representation_has_a_tag_of_its_own(place: World) -> None:
    requests = [("/objects/7", {"Accept": each}) for each in ("text/csv", "text/plain", "application/xml")]
    requests += [("/objects/7", {}), ("/objects/7", {"Accept-Encoding": "gzip"}), ("/objects/8", {})]
    tags = [asked(place.app, path, headers).headers["etag"] for path, headers in requests]
    assert len(set(tags)) == len(tags)


def test_large_answers_are_compressed_where_the_client_accepts_it(place: World) -> None:
    plain = asked(place.app, "/objects")
    packed = asked(place.app, "/objects", {"Accept-Encoding": "gzip, br"})
    assert (gzip.decompress(packed.body), packed.headers["content-encoding"]) == (plain.body, "gzip")
    assert packed.headers["vary"] == "Accept, Accept-Encoding"
    assert asked(place.app, "/objects", {"Accept-Encoding": "gzip;q=0, br"}).body == plain.body


@pytest.mark.parametrize("path", ["/alerts", "/objects/7/conjunctions"])
def test_an_alert_that_is_raised_changes_the_tag(place: World, path: str) -> None:
    before = asked(place.app, path).headers["etag"]
    place.source.approaches = ALERTS
    after = asked(place.app, path, {"If-None-Match": before})
    assert (after.status, after.headers["etag"] != before) == (200, True)
    assert asked(place.app, path, {"If-None-Match": after.headers["etag"]}).status == 304


@pytest.mark.parametrize("path", ["/health", "/objects/7/states", "/states"])
def test_what_is_of_this_moment_is_kept_by_no_cache(place: World, path: str) -> None:
    answer = asked(place.app, path)
    assert (answer.headers["cache-control"], "etag" in answer.headers) == ("no-store", False)


def test_a_number_that_is_none_is_null_and_the_other_rows_are_answered(place: World) -> None:
    bad: dict[str, Any] = {**ALERTS[0], "miss_distance_km": float("nan"), "list": [float("inf"), 1.0]}
    place.source.approaches = [bad, *ALERTS]
    answer = asked(place.app, "/alerts")
    assert answer.status == 200
    assert b'"miss_distance_km": null, "list": [null, 1.0]' in answer.body


def test_errors_of_routes_and_methods_have_the_schema_of_all_others(place: World) -> None:
    for path in ("/nothing", "/elements", "/objects/7?limit=1", "/objects?limit=1&limit=2", "/objects?id=7&name=x"):
        answer = asked(place.app, path)
        assert answer.headers["content-type"] == "application/json"
        assert answer.body.startswith(b'{"error": "'), path
    assert asked(place.app, "/elements").headers["allow"] == "POST"


def test_a_page_of_a_history_begins_after_a_set_and_not_at_a_count(place: World) -> None:
    """An older set that arrives between two pages does not move the second."""
    newer = [row(7, epoch_time_ns=EPOCH_NS + day * DAY_NS, record_number=day) for day in (1, 2)]
    place.source.commit(*newer)
    place.live.refresh()
    first = asked(place.app, "/objects/7/history?limit=1&format=csv")
    place.source.commit(row(7, epoch_time_ns=EPOCH_NS - DAY_NS, record_number=99))
    place.live.refresh()
    pages, link = [first.body], first.headers["link"]
    while link:
        answer = asked(place.app, link[1 : link.index(">")])
        pages.append(answer.body)
        link = answer.headers.get("link", "")
    epochs_ns = [parse_iso_ns(page.splitlines()[1].split(b",")[2].decode()) for page in pages]
    assert epochs_ns == [each["epoch_time_ns"] for each in (row(7), *newer)]


def test_pages_of_states_lead_to_the_next(place: World) -> None:
    found, link = [], "</states?limit=3&at=2024-11-01T00:00:00Z&at=2024-11-02T00:00:00Z>"
    while link:
        answer = asked(place.app, link[1 : link.index(">")])
        found += [int(each.split(b",")[0]) for each in answer.body.split(b'"norad_id": ')[1:]]
        link = answer.headers.get("link", "")
    assert found == [number for number in range(1, 9) for _ in range(2)]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/json"),
        ("application/json;q=0, */*", "text/csv"),
        ("*/*;q=0.1, text/csv", "text/csv"),
        ("text/csv;q=0.2, application/json;q=0.9", "application/json"),
        ("text/csv, application/json", "text/csv"),
        ("text/*, application/json;q=0.5", "text/csv"),
        ("image/png", None),
        ("text/csv;q=0", None),
        ("text/csv;q=7", None),
        (", ".join(["image/png"] * MOST_RANGES + ["text/csv"]), None),
    ],
)
def test_the_most_specific_range_decides_on_a_type__RFC9110_12_5_1(accept: str | None, chosen: str | None) -> None:
    assert best(accept, ("application/json", "text/csv")) == chosen


def flip_a_bit(place: World, norad_id: int) -> None:
    """Damage the stored set of an object: its number, which its key has as well."""
    index = place.live._served[0]
    assert index is not None
    value = bytearray(index.engine.get(keys.current(norad_id)) or b"")
    value[7] ^= 1
    index.engine.write([(keys.current(norad_id), bytes(value))])


def test_a_flipped_bit_is_refused_named_and_repaired_while_the_others_are_served__PM28(place: World) -> None:
    flip_a_bit(place, 7)
    refused = asked(place.app, "/objects/7")
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert b"the set in force of object 7 is not as it was written" in refused.body
    assert asked(place.app, "/objects/8").status == 200
    assert b"object 7" in asked(place.app, "/health").body
    assert place.live.refresh(), "no newer version is needed"
    assert asked(place.app, "/objects/7").status == 200
    assert place.live.health()["damage"] is None


def test_a_flipped_bit_does_not_stop_the_index_from_following__PM28(place: World) -> None:
    flip_a_bit(place, 7)
    newer = [row(number, epoch_time_ns=EPOCH_NS + DAY_NS, object_name="NEWER") for number in range(1, 9)]
    place.source.commit(*newer)
    assert place.live.refresh()
    assert asked(place.app, "/objects?name=newer&format=csv").body.count(b"NEWER") == 8
