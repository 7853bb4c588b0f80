"""Space-Track's queries over this catalogue: which rows they choose, how these are written, and what is refused."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from sda_platform.clock import iso
from sda_platform.serving.query import MOST_PATTERNS, NUMBER, TEXT, WHOLE, QueryField, condition, parsed
from sda_platform.serving.requests import BadRequest
from sda_platform.serving.satellites import Satellites
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row
from sda_platform_tests.unit.serving.interleavings import NOW_NS, Answer, World, asked, world

FACTS = {
    1: {"object_type": "PAYLOAD", "owner": "US", "operational_status": "+", "launch_time_ns": NOW_NS - 9 * DAY_NS},
    2: {"object_type": "PAYLOAD", "owner": "PRC", "operational_status": "D", "decay_time_ns": NOW_NS - DAY_NS},
    3: {"object_type": "DEBRIS", "owner": "US", "rcs_m2": 0.05, "rcs_size": "SMALL", "operational_status": None},
    4: {
        "object_type": "PAYLOAD",
        "owner": "UK",
        "operational_status": "-",
        "predicted_decay_time_ns": NOW_NS + DAY_NS,
        "prediction_window_min": 120.0,
        "reentry_latitude_deg": -12.5,
    },
    90: {"object_name": "GONE 90", "object_type": "ROCKET BODY", "owner": "CIS", "decay_time_ns": 0},
}


PREDICTIONS: list[dict[str, Any]] = [
    {"norad_id": 4, "predicted_decay_time_ns": NOW_NS + 3 * DAY_NS, "prediction_window_min": 900.0,
     "received_time_ns": NOW_NS - 2 * DAY_NS},
    {"norad_id": 4, "predicted_decay_time_ns": NOW_NS + DAY_NS, "prediction_window_min": 120.0,
     "reentry_latitude_deg": -12.5, "received_time_ns": NOW_NS - DAY_NS},
    {"norad_id": 4, "predicted_decay_time_ns": NOW_NS, "received_time_ns": NOW_NS + DAY_NS},
]  # fmt: skip
"""Messages about one object; the last one has not been received yet."""


@pytest.fixture
def place() -> Iterator[World]:
    with world() as found:
        known = {number: {"norad_id": number, **each} for number, each in FACTS.items()}
        found.source.known = Satellites("1", known, predictions=PREDICTIONS)
        older = row(7, epoch_time_ns=EPOCH_NS - DAY_NS, record_number=3)
        found.source.commit(older, row(8, object_name="COSMOS 1/2 R/B"))
        found.live.refresh()
        yield found


def query(place: World, path: str) -> Answer:
    return asked(place.app, f"/basicspacedata/query/{quote(path)}")


def rows(place: World, path: str) -> list[dict[str, Any]]:
    answer = query(place, path)
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = json.loads(answer.body)
    return found


def ids(place: World, path: str) -> list[int]:
    return [int(each["NORAD_CAT_ID"]) for each in rows(place, path)]


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ("NORAD_CAT_ID/3", [3]),
        ("NORAD_CAT_ID/3,7,99", [3, 7]),
        ("NORAD_CAT_ID/2--4", [2, 3, 4]),
        ("NORAD_CAT_ID/>6", [7, 8]),
        ("NORAD_CAT_ID/<>1/NORAD_CAT_ID/<3", [2]),
        ("NORAD_CAT_ID/1--2,8", [1, 2, 8]),
        ("norad_cat_id/1.0", [1]),
        ("NORAD_CAT_ID/9223372036854775808,-1,1e999", []),
        ("OBJECT_NAME/object 3", [3]),
        ("OBJECT_NAME/^COSMOS", [8]),
        ("OBJECT_NAME/~~1~2", []),
        ("OBJECT_NAME/~~CT 5", [5]),
        ("OBJECT_TYPE/PAYLOAD", [1, 2, 4]),
        ("OBJECT_TYPE/ROCKET BODY", [8]),
        ("DECAY_DATE/null-val", [1, 3, 4, 5, 6, 7, 8]),
        ("DECAY_DATE/<>null-val", [2]),
        ("DECAY_DATE/now-1.5--now", [2]),
        ("LAUNCH_DATE/>now-10", [1]),
        ("RCS_SIZE/SMALL,null-val/COUNTRY_CODE/US", [1, 3]),
        ("EPOCH/>" + iso(EPOCH_NS + 3_500_000).replace("Z", ""), [4, 5, 6, 7, 8]),
        ("CREATION_DATE/>now-3", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("CREATION_DATE/>now", []),
        ("OBJECT_ID/1998-004A", [4]),
        ("NORAD_CAT_ID/1--5/orderby/NORAD_CAT_ID desc/limit/2", [5, 4]),
        ("orderby/OBJECT_TYPE asc,NORAD_CAT_ID desc/limit/3,1", [4, 2, 1]),
        ("favorites/active", [1, 5, 6, 7]),
        ("favorites/analyst/emptyresult/show", []),
    ],
)
def test_conditions_choose_rows_as_space_track_does__44(place: World, conditions: str, found: list[int]) -> None:
    assert ids(place, f"class/gp/{conditions}") == found


def test_the_order_of_the_parts_does_not_matter(place: World) -> None:
    assert ids(place, "limit/1/NORAD_CAT_ID/>2/class/gp/format/json") == [3]


def test_history_has_every_set_of_the_objects_that_are_named(place: World) -> None:
    epochs = [each["EPOCH"] for each in rows(place, "class/gp_history/NORAD_CAT_ID/7/orderby/EPOCH asc")]
    assert len(epochs) == 2
    assert epochs == sorted(epochs)
    bounded = rows(place, f"class/gp_history/NORAD_CAT_ID/7,8/EPOCH/<{iso(EPOCH_NS)}")
    assert [each["EPOCH"] for each in bounded] == epochs[:1]
    assert query(place, "class/gp_history/EPOCH/>now-7").status == 400


def test_history_has_the_sets_that_were_received_in_a_time__44(place: World) -> None:
    every = rows(place, "class/gp_history/CREATION_DATE/>now-3/orderby/NORAD_CAT_ID")
    assert [int(each["NORAD_CAT_ID"]) for each in every].count(7) == 2
    place.write("put")
    (new,) = rows(place, "class/gp_history/CREATION_DATE/>now-0.5")
    assert new["OBJECT_NAME"] == "OBJECT 1", "what waits is there as well"
    assert rows(place, "class/gp_history/CREATION_DATE/now-9--now-3") == []
    assert query(place, "class/gp_history/CREATION_DATE/<now").status == 400


def test_a_client_asks_for_what_a_later_file_has__44(place: World) -> None:
    newest = max(int(each["FILE"]) for each in rows(place, "class/gp"))
    assert rows(place, f"class/gp/FILE/>{newest}") == []
    place.write("commit")
    assert ids(place, f"class/gp/FILE/>{newest}") == [7]


def test_a_satellite_without_a_set_is_in_satcat_and_among_the_decays(place: World) -> None:
    (gone,) = rows(place, "class/satcat/NORAD_CAT_ID/90")
    assert (gone["SATNAME"], gone["DECAY"], gone["PERIOD"], gone["COUNTRY"]) == ("GONE 90", "1969-12-31", None, "CIS")
    (third,) = rows(place, "class/satcat/SATNAME/OBJECT 3")
    assert (third["RCSVALUE"], third["LAUNCH_YEAR"], third["LAUNCH_NUM"], third["LAUNCH_PIECE"]) == (
        "0.05", "1998", "3", "A",
    )  # fmt: skip
    first, tip = rows(place, "class/tip/predicates/NORAD_CAT_ID,DECAY_EPOCH,WINDOW,LAT,LON")
    assert [tip["NORAD_CAT_ID"], tip["WINDOW"], tip["LAT"], tip["LON"]] == ["4", "120.0", "-12.5", None]
    assert (first["WINDOW"], first["DECAY_EPOCH"] > tip["DECAY_EPOCH"]) == ("900.0", True)
    decays = rows(place, "class/decay/orderby/NORAD_CAT_ID/predicates/NORAD_CAT_ID,MSG_TYPE")
    assert [list(each.values()) for each in decays] == [
        ["2", "Historical"], ["4", "Prediction"], ["4", "Prediction"], ["90", "Historical"],
    ]  # fmt: skip
    past = asked(place.app, f"/basicspacedata/query/class/tip?as_of={iso(NOW_NS - 2 * DAY_NS)}")
    assert [each["WINDOW"] for each in json.loads(past.body)] == ["900.0"], "of the past are the messages of then"


def test_a_catalogue_of_satellites_changes_the_tag_of_answers(place: World) -> None:
    before = query(place, "class/satcat")
    place.source.known = Satellites("2", {90: {"norad_id": 90, "object_type": "DEBRIS"}})
    place.live.refresh()
    after = query(place, "class/satcat")
    assert before.headers["etag"] != after.headers["etag"]
    assert b"GONE 90" not in after.body


def test_alerts_are_the_public_conjunctions(place: World) -> None:
    alert = {"event_id": "e1", "norad_id_1": 7, "norad_id_2": 8, "risk": "red", "tca_time_ns": NOW_NS}
    place.source.approaches = [
        {**alert, "miss_distance_km": 0.25, "collision_probability": 1e-3, "as_of_ns": NOW_NS},
        {**alert, "event_id": "e2", "risk": "yellow", "miss_distance_km": 3.0, "collision_probability": None},
    ]
    (found,) = rows(place, "class/cdm_public/PC/>1e-4/SAT2_OBJECT_TYPE/ROCKET BODY")
    assert {"SAT1_OBJECT_TYPE", "SAT1_RCS", "SAT_1_EXCL_VOL", "SAT_2_EXCL_VOL"} <= set(found)
    assert (found["CDM_ID"], found["MIN_RNG"], found["EMERGENCY_REPORTABLE"], found["SAT_2_ID"]) == (
        "e1", "250.0", "Y", "8",
    )  # fmt: skip
    assert [each["CDM_ID"] for each in rows(place, "class/cdm_public/orderby/MIN_RNG desc/TCA/>now-30")] == ["e2", "e1"]


def test_a_spreadsheet_executes_no_name_and_reads_every_status(place: World) -> None:
    place.source.commit(row(8, object_name='=HYPERLINK("http://a")'))
    place.live.refresh()
    written = csv.DictReader(io.StringIO(query(place, "class/satcat/NORAD_CAT_ID/1,4,8/format/csv").body.decode()))
    found = {int(each["NORAD_CAT_ID"]): each for each in written}
    assert [found[number]["OPS_STATUS_CODE"] for number in (1, 4)] == ["+", "-"]
    assert found[8]["SATNAME"] == """'=HYPERLINK("http://a")"""


def test_every_format_writes_the_same_objects(place: World) -> None:
    path = "class/gp/NORAD_CAT_ID/1,8/format"
    answers = {name: query(place, f"{path}/{name}").body.decode() for name in ("csv", "xml", "kvn", "tle", "3le")}
    written = list(csv.DictReader(io.StringIO(answers["csv"])))
    assert written == [{name: value or "" for name, value in each.items()} for each in rows(place, f"{path}/json")]
    assert [each["OBJECT_NAME"] for each in written] == ["OBJECT 1", "COSMOS 1/2 R/B"]
    lines = answers["3le"].splitlines()
    assert lines[::3] == ["0 OBJECT 1", "0 COSMOS 1/2 R/B"]
    assert [line for n, line in enumerate(lines) if n % 3] == answers["tle"].splitlines()
    assert [written[1][f"TLE_LINE{n}"] for n in range(3)] == lines[3:]
    assert answers["xml"].count("<NORAD_CAT_ID>") == answers["kvn"].count("NORAD_CAT_ID ") == 2
    assert b"<item><INTLDES>" in query(place, "class/satcat/format/xml").body
    chosen = rows(place, "class/gp/predicates/OBJECT_TYPE/distinct/true/orderby/OBJECT_TYPE")
    assert [each["OBJECT_TYPE"] for each in chosen] == ["DEBRIS", "PAYLOAD", "ROCKET BODY", "UNKNOWN"]
    document = json.loads(query(place, "class/gp/limit/1/metadata/true").body)
    assert len(document["data"]) == document["request_metadata"]["ReturnedRows"] == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("class/gp/NORAD_CAT_ID", "has no value"),
        ("class/boxscore", "give one class: gp, gp_history, satcat, decay, tip, cdm_public"),
        ("NORAD_CAT_ID/5", "give one class"),
        ("class/gp/COLOUR/red", "no field is named 'COLOUR'; the fields are CCSDS_OMM_VERS"),
        ("class/gp/NORAD_CAT_ID/five", "must be a number"),
        ("class/gp/NORAD_CAT_ID/" + "9" * 5000, "must be a number"),
        ("class/gp/EPOCH/yesterday", "must be a day, an instant, or like now-7"),
        ("class/gp/EPOCH/--", "must be a day"),
        ("class/gp/limit/many", "must be a number of rows"),
        ("class/gp/orderby/EPOCH sideways", "asc or desc"),
        ("class/gp/distinct/perhaps", "must be true or false"),
        ("class/gp/format/html", "must be one of json, csv, xml, tle, 3le, kvn"),
        ("class/satcat/format/tle", "must be one of json, csv, xml"),
        ("class/gp/favorites/mine", "the groups are: active"),
        ("class/satcat/favorites/active", "ask for class gp"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused_with_the_part(place: World, path: str, reason: str) -> None:
    answer = query(place, path)
    assert (answer.status, reason in json.loads(answer.body)["error"]) == (400, True), answer


@pytest.mark.parametrize("pattern", ["~~a{}", "^a{}", ">{}", "<>{}"])
def test_a_query_compares_each_object_with_a_few_patterns_only__S6(pattern: str) -> None:
    few, many = (",".join(pattern.format(n) for n in range(count)) for count in (MOST_PATTERNS, MOST_PATTERNS + 1))
    of = QueryField("SIZE", NUMBER if pattern[0] in "<>" else TEXT, lambda _: None)
    condition(of, few, 0)
    with pytest.raises(BadRequest, match="SIZE has more than 20 patterns and ranges"):
        condition(of, many, 0)
    assert condition(QueryField("N", WHOLE, lambda _: 1), ",".join(map(str, range(1000))), 0).values is not None


def test_a_query_compares_each_object_a_few_times_in_all__S6() -> None:
    name = QueryField("NAME", TEXT, lambda row: row)
    numbers, text = ",".join(map(str, range(5000))), "~~zq,^iss,null-val"
    mixed = condition(name, f"{numbers},{text}", 0)
    assert [mixed.is_met(value) for value in ("4999", "ISS (ZARYA)", None, "5000", "x")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert (mixed.comparisons, mixed.values) == (4, None)
    few = ["class", "gp", *["NAME", text] * 13]
    assert len(parsed(few, {"gp": [name]}, 0).conditions) == 13
    with pytest.raises(BadRequest, match="compares each row more than 40 times"):
        parsed([*few, "NAME", text], {"gp": [name]}, 0)


@pytest.mark.parametrize("part", ["orderby", "predicates"])
def test_a_field_is_sorted_by_and_written_once__S6(part: str) -> None:
    fields = {"gp": [QueryField(name, TEXT, str) for name in ("A", "B")]}
    parsed(["class", "gp", part, "A,B"], fields, 0)
    with pytest.raises(BadRequest, match=f"{part} names A twice"):
        parsed(["class", "gp", part, "A,B,a"], fields, 0)
