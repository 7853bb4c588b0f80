"""The lookup endpoint: what it answers, in which format, and what it refuses."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sda_platform.clock import iso
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.segments import Origin
from sda_platform.serving.groups import GroupsError, load_groups
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.routes import ROUTES
from sda_platform.serving.satellites import Satellites
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.served_sets import BIG, GEO, ISS, NOW_NS, nothing_submitted
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.source import MemorySource


@dataclass
class Served:
    """An endpoint, its source, and the segments that were made durable."""

    client: Client
    source: MemorySource
    live: LiveCatalogue
    segments: dict[str, bytes]

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=headers)

    def ids(self, path: str) -> list[int]:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return [each["NORAD_CAT_ID"] for each in answer.json()]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    source = MemorySource()
    older = {**ISS, "epoch_time_ns": EPOCH_NS - DAY_NS, "record_number": 1}
    source.commit(older, ISS, GEO, BIG, *(row(number) for number in range(1, 51)))
    live = LiveCatalogue(source, IndexStore(tmp_path), lambda: NOW_NS)
    live.start()
    segments: dict[str, bytes] = {}

    def land(name: str, data: bytes, origins: Sequence[Origin]) -> int:
        assert origins
        segments[name] = data
        return NOW_NS

    puts = Puts(live, land)
    (tmp_path / "groups.toml").write_text("[groups.mine]\nnorad_ids = [6, 5]\n")
    groups = load_groups(tmp_path / "groups.toml")
    with Client(application(live, puts, nothing_submitted(tmp_path), groups=groups)) as client:
        yield Served(client, source, live, segments)
    puts.close()
    live.close()


def test_an_object_is_answered_in_every_format(served: Served) -> None:
    (found,) = served.get("/objects/25544").json()
    assert (found["NORAD_CAT_ID"], found["OBJECT_NAME"], found["MEAN_MOTION"]) == (25544, "ISS (ZARYA)", 15.5)
    for media_type, segment_format in (
        ("text/csv", "omm-csv"),
        ("text/plain", "tle"),
        ("application/json", "omm-json"),
    ):
        answer = served.get("/objects/25544", accept=media_type)
        assert answer.headers["content-type"].startswith(media_type)
        decoded = decode_element_sets(answer.content, segment_format=segment_format)
        assert decoded.column("error").to_pylist() == [None]
        assert decoded.column("norad_id").to_pylist() == [25544]
        assert decoded.column("inclination_deg")[0].as_py() == pytest.approx(ISS["inclination_deg"], abs=1e-4)
    assert b"<NORAD_CAT_ID>25544</NORAD_CAT_ID>" in served.get("/objects/25544?format=xml").content
    assert len(served.get("/objects/25544?format=2le").text.splitlines()) == 2


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/csv;q=0.5, application/xml", "application/xml"),
        ("text/html, */*;q=0.1", "application/json"),
        ("text/csv, application/json;q=0.9", "text/csv"),
        ("", "application/json"),
    ],
)
def test_the_best_accepted_format_is_chosen(served: Served, accept: str, media_type: str) -> None:
    assert served.get("/objects/5", accept=accept).headers["content-type"].startswith(media_type)


def test_a_number_above_alpha_5_does_not_fit_into_lines(served: Served) -> None:
    answer = served.get("/objects/799500001?format=tle")
    assert (answer.status_code, "above 339999" in answer.json()["error"]) == (406, True)
    many = served.get("/objects?id=5,799500001&format=tle")
    assert (many.status_code, many.headers["x-left-out"]) == (200, "1")


@pytest.mark.parametrize(
    "facts", [{"international_designator": "2024-001ABCDE"}, {"mean_motion_dot_rev_per_day2": 1.5}]
)
def test_a_set_that_lines_cannot_hold_is_left_out_and_does_not_fail_the_others(
    served: Served, facts: dict[str, object]
) -> None:
    served.source.commit(row(77, **facts))
    served.live.refresh()
    for path in ("/objects?id=5,77&format=tle", "/NORAD/elements/gp.php?CATNR=5,77&FORMAT=2le"):
        answer = served.get(path)
        assert (answer.status_code, answer.headers["x-left-out"]) == (200, "1"), path
    assert served.get("/objects/77?format=3le").status_code == 406
    times = {"start_time_ns": NOW_NS, "end_time_ns": NOW_NS + 120 * 10**9}
    request = {"request_id": "r", "source_id": "optical-1", "norad_id": 77, "priority_class": 0}
    served.source.scheduled = [{**request, **times}]
    (task,) = served.get("/schedule?format=sensorkit").json()
    lines = task["submission"]["task"]["target"]["tle"]
    decoded = decode_element_sets(f"{lines['line1']}\n{lines['line2']}\n".encode(), segment_format="tle")
    assert decoded.column("norad_id").to_pylist() == [77]


def test_pages_cover_everything_once(served: Served) -> None:
    found, path = [], "/objects?limit=20"
    while path:
        answer = served.get(path)
        found += [each["NORAD_CAT_ID"] for each in answer.json()]
        path = answer.headers.get("link", "").partition(">")[0].removeprefix("<")
    assert found == [*range(1, 51), 25544, 41866, 799_500_001]


def test_objects_are_searched_by_number_name_launch_and_epoch(served: Served) -> None:
    assert served.ids("/objects?id=5,25544,77777") == [5, 25544]
    assert served.ids("/objects?id_min=49&id_max=30000") == [49, 50, 25544]
    assert served.ids("/objects?name=zarya") == [25544]
    assert served.ids("/objects?designator=1998-067") == [25544]
    since, until = iso(EPOCH_NS + 5_000_000), iso(EPOCH_NS + 7_000_000)
    assert served.ids(f"/objects?epoch_min={since}&epoch_max={until}") == [5, 6, 7]


def test_the_history_of_an_object_has_all_its_sets(served: Served) -> None:
    epochs = [each["EPOCH"] for each in served.get("/objects/25544/history").json()]
    assert epochs == sorted(epochs)
    assert len(epochs) == 2
    assert len(served.get(f"/objects/25544/history?since={iso(EPOCH_NS)}").json()) == 1
    first = served.get("/objects/25544/history?limit=1")
    assert "after=1" in first.headers["link"]


def test_states_come_from_the_set_in_force_at_each_time(served: Served) -> None:
    times = [EPOCH_NS - 3600 * 10**9, EPOCH_NS + DAY_NS]
    query = "&".join(f"at={iso(time)}" for time in times)
    early, late = served.get(f"/objects/25544/states?{query}").json()
    assert early["elements_epoch_ns"] == EPOCH_NS - DAY_NS
    assert late["elements_epoch_ns"] == ISS["epoch_time_ns"]
    assert (late["time_ns"], late["frame"]) == (times[1], "TEME")
    radius_km = sum(x * x for x in late["r_teme_km"]) ** 0.5
    assert 6600 < radius_km < 6900
    assert len(served.get(f"/states?id=5,6,7&{query}").json()) == 6
    assert served.get(f"/states?limit=3&{query}").json()[0]["norad_id"] == 1


def test_conjunctions_and_alerts_are_rows_of_their_tables(served: Served) -> None:
    known = {"norad_id_1": 25544, "norad_id_2": 5, "miss_distance_km": 0.5, "risk": "red", "tca_time_ns": NOW_NS}
    served.source.approaches = [{"event_id": "e", **known}]
    assert served.get("/objects/5/conjunctions").json() == served.source.approaches
    assert served.get("/objects/6/conjunctions").json() == []
    assert served.get("/alerts").json() == served.source.approaches


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "abc"), ("risk=red", "ac"), ("risk=yellow", "b"), ("norad_id=5", "ab"), ("norad_id=5&risk=red", "a"),
        (f"until={iso(NOW_NS + 1)}", "a"), ("until=9999-01-01", "abc"), ("until=1600-01-01T00:00:00Z", ""),
    ],
)  # fmt: skip
def test_alerts_are_selected_by_level_object_and_time(served: Served, query: str, found: str) -> None:
    served.source.approaches = [
        {"event_id": name, "norad_id_1": 1, "norad_id_2": other, "risk": risk, "tca_time_ns": NOW_NS + after_s * 10**9}
        for name, other, risk, after_s in (("a", 5, "red", -1), ("b", 5, "yellow", 60), ("c", 6, "red", 120))
    ]
    assert "".join(row["event_id"] for row in served.get(f"/alerts?{query}").json()) == found


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.method == "GET"])
def test_a_parameter_that_a_route_does_not_have_is_refused(served: Served, path: str) -> None:
    whole = path.replace("{norad_id}", "25544").replace("{submission_id}", "0" * 64)
    answer = served.get(f"{whole}?nonsense=1")
    assert (answer.status_code, "no parameter is named 'nonsense'" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize("moment", ["9999-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "0001-01-01", "2262-06-01"])
def test_any_date_is_answered_or_refused(served: Served, moment: str) -> None:
    """A bound beyond 64 bits ended in an internal error."""
    for query in ("epoch_min", "epoch_max"):
        assert served.get(f"/objects?{query}={moment}").status_code == 200
    for query in ("since", "until"):
        assert served.get(f"/objects/25544/history?{query}={moment}").status_code == 200
        assert served.get(f"/schedule?{query}={moment}").status_code == 200
    for path in ("/objects/25544/states", "/states"):
        answer = served.get(f"{path}?at={moment}")
        assert (answer.status_code, "between the years 1823 and 2116" in answer.json()["error"]) == (400, True)


def test_the_schedule_is_offered_as_rows_and_as_tasks_of_sensorkit(served: Served) -> None:
    def scheduled(source_id: str, norad_id: int, start_s: int) -> dict[str, Any]:
        start_ns = NOW_NS + start_s * 10**9
        times = {"start_time_ns": start_ns, "end_time_ns": start_ns + 120 * 10**9}
        return {
            "request_id": f"r{norad_id}",
            "source_id": source_id,
            "norad_id": norad_id,
            "priority_class": 0,
            **times,
        }

    served.source.scheduled = [
        scheduled("optical-1", 25544, 0), scheduled("radar-1", 5, 60), scheduled("optical-1", 799_500_001, 600),
        scheduled("optical-1", 4242, 900),
    ]  # fmt: skip
    assert served.get("/schedule").json() == served.source.scheduled
    later = served.get(f"/schedule?since={iso(NOW_NS + 300 * 10**9)}&source_id=optical-1").json()
    assert [each["norad_id"] for each in later] == [799_500_001, 4242]
    answer = served.get("/schedule?source_id=optical-1&format=sensorkit&interval_s=20")
    assert answer.headers["x-left-out"] == "1", "no element set of object 4242"
    first, second = answer.json()
    task = first["submission"]["task"]
    assert (task["task_type"], task["target_id"], task["target"]["target_type"]) == ("standard_collect", "25544", "tle")
    assert task["camera_params"] == {"integration_time_seconds": 2.0, "frame_count": 6}
    assert first["offer"] == {"begin": iso(NOW_NS), "end": iso(NOW_NS + 120 * 10**9)}
    lines = task["target"]["tle"]
    decoded = decode_element_sets(f"{lines['line1']}\n{lines['line2']}\n".encode(), segment_format="tle")
    assert decoded.column("inclination_deg")[0].as_py() == pytest.approx(ISS["inclination_deg"], abs=1e-4)
    new = second["submission"]["task"]
    assert (new["target_id"], new["target"]["tle"]["line1"][:8]) == ("799500001", "1 00000U"), "too long for two lines"
    for wrong in ("format=csv", "format=sensorkit&exposure_s=-1", "since=noon"):
        assert served.get(f"/schedule?{wrong}").status_code == 400, wrong


def test_an_answer_carries_the_version_and_is_not_sent_twice(served: Served) -> None:
    etag = served.get("/objects/25544").headers["etag"]
    unchanged = served.client.get("/objects/25544", headers={"If-None-Match": etag})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    served.source.commit(row(25544, epoch_time_ns=EPOCH_NS + DAY_NS, record_number=3))
    served.live.refresh()
    changed = served.client.get("/objects/25544", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


def put(served: Served, **facts: Any) -> Any:
    omm = {
        "NORAD_CAT_ID": 25544, "OBJECT_NAME": "ISS", "EPOCH": "2024-10-28T00:00:00", "MEAN_MOTION": 15.5,
        "ECCENTRICITY": 0.001, "INCLINATION": 51.6, "RA_OF_ASC_NODE": 1.0, "ARG_OF_PERICENTER": 2.0,
        "MEAN_ANOMALY": 3.0, "BSTAR": 0.0001, "ORIGINATOR": "OWNER/OPERATOR", **facts,
    }  # fmt: skip
    return served.client.post("/elements", json=[omm, {**omm, "ECCENTRICITY": 1.5}])


def test_a_put_is_durable_and_served_when_it_is_acknowledged__WL8(served: Served) -> None:
    before = served.get("/objects/25544").headers["etag"]
    answer = put(served)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1)
    ((name, data),) = served.segments.items()
    assert name.startswith("put-")
    assert decode_element_sets(data, segment_format="omm-csv").column("norad_id").to_pylist() == [25544]
    (found,) = served.get("/objects/25544").json()
    assert (found["OBJECT_NAME"], found["ORIGINATOR"]) == ("ISS", "OWNER/OPERATOR")
    assert served.get("/objects/25544").headers["etag"] != before
    assert served.get("/health").json()["pending_sets"] == 1


def test_a_bad_record_is_refused_with_its_reason_and_its_neighbours_are_taken(served: Served) -> None:
    (refused,) = put(served).json()["refused"]
    assert (refused["record"], refused["kind"]) == (1, "out_of_range")
    assert "eccentricity" in refused["reason"].lower()
    answer = put(served, MEAN_MOTION=16.9, ECCENTRICITY=0.2)
    assert answer.status_code == 422
    assert answer.json()["refused"][0]["kind"] == "propagation_refused"


@pytest.mark.parametrize(
    ("answered", "media_type"),
    [
        ("tle", "text/plain"),
        ("csv", "text/csv"),
        ("json", "application/json"),
        ("xml", "application/xml"),
        ("xml", "text/xml; charset=utf-8"),
        ("kvn", "application/x-ccsds-kvn"),
    ],
)
def test_a_put_is_taken_in_every_format_that_is_answered(served: Served, answered: str, media_type: str) -> None:
    sets = served.get(f"/objects?id=5,6&format={answered}").content
    answer = served.client.post("/elements", content=sets, headers={"Content-Type": media_type})
    assert answer.json() == {"accepted": 2, "refused": []}
    (data,) = served.segments.values()
    assert decode_element_sets(data, segment_format="omm-csv").column("norad_id").to_pylist() == [5, 6]


def test_a_broken_message_among_sound_ones_is_refused_alone(served: Served) -> None:
    first, second = (served.get(f"/objects/{number}?format=kvn").content for number in (5, 6))
    lines = re.sub(rb"(ECCENTRICITY *= *)", rb"\1x", first) + second
    answer = served.client.post("/elements", content=lines, headers={"Content-Type": "application/x-ccsds-kvn"})
    assert answer.json()["accepted"] == 1
    (refused,) = answer.json()["refused"]
    assert (refused["record"], "ECCENTRICITY" in refused["reason"]) == (0, True)


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/objects/x", 400, "norad_id is 'x'"),
        ("/objects/0", 400, "from 1 to"),
        ("/objects/424242", 404, "no object 424242"),
        ("/objects?limit=0", 400, "limit is '0'"),
        ("/objects?limit=20000", 400, "limit"),
        ("/objects?epoch_min=yesterday", 400, "epoch_min is 'yesterday'"),
        ("/objects?LIMIT=5", 400, "no parameter is named 'LIMIT'"),
        ("/alerts?risk=orange", 400, "must be one of yellow, red"),
        ("/alerts?norad_id=ISS", 400, "norad_id is 'ISS'"),
        ("/objects/5?format=docx", 406, "format 'docx'"),
        ("/objects/5/states?at=2024-13-01T00:00:00Z", 400, "at is"),
        ("/objects/424242/states", 404, "no object 424242"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(served: Served, path: str, status: int, reason: str) -> None:
    answer = served.get(path)
    assert (answer.status_code, reason in answer.json()["error"]) == (status, True), answer.text


def test_a_put_that_cannot_be_read_is_refused(served: Served) -> None:
    post = served.client.post
    assert post("/elements", content=b"", headers={"Content-Type": "text/csv"}).json()["error"] == "the body is empty"
    assert "Content-Type" in post("/elements", content=b"x", headers={"Content-Type": "image/png"}).json()["error"]
    strange = {"Content-Type": "text/plain", "Origin": "https://elsewhere.example"}
    assert "another origin" in post("/elements", content=b"x", headers=strange).json()["error"]
    assert not served.segments


def test_states_beyond_the_bound_of_an_answer_are_refused(served: Served) -> None:
    times = "&".join(f"at=2024-11-01T00:{m:02d}:{s:02d}Z" for m in range(40) for s in range(60))
    assert "one answer holds" in served.get(f"/states?limit=50&{times}").json()["error"]


def gp(served: Served, query: str) -> str:
    answer = served.get(f"/NORAD/elements/gp.php?{query}")
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def test_celestraks_queries_are_answered(served: Served) -> None:
    name, first, second = gp(served, "CATNR=25544").splitlines()
    assert (name.strip(), first[:8], second[:8]) == ("ISS (ZARYA)", "1 25544U", "2 25544 ")
    assert len(gp(served, "CATNR=25544&FORMAT=2LE").splitlines()) == 2
    assert [each["NORAD_CAT_ID"] for each in json.loads(gp(served, "GROUP=geo&FORMAT=json"))] == [41866]
    assert json.loads(gp(served, "GROUP=starlink&FORMAT=JSON-PRETTY"))[0]["NORAD_CAT_ID"] == 799_500_001
    assert gp(served, "INTDES=1998-067&FORMAT=csv").splitlines()[1].startswith("ISS (ZARYA),1998-067A")
    assert "<NORAD_CAT_ID>41866<" in gp(served, "NAME=goes&FORMAT=XML")
    assert "NORAD_CAT_ID" in gp(served, "catnr=5&format=kvn")
    assert len(json.loads(gp(served, "GROUP=active&FORMAT=JSON"))) == 53
    assert [each["NORAD_CAT_ID"] for each in json.loads(gp(served, "SPECIAL=GPZ&FORMAT=json"))] == [41866]
    assert 41866 in [each["NORAD_CAT_ID"] for each in json.loads(gp(served, "special=gpz-plus&format=json"))]
    assert "ISS (ZARYA)" in gp(served, "GROUP=Stations")
    assert gp(served, "GROUP=analyst") == "No GP data found"
    assert gp(served, "CATNR=77777") == "No GP data found"
    assert gp(served, "NAME=NOTHING%20LIKE%20IT&FORMAT=JSON") == "No GP data found"


def test_groups_hold_satellites_of_their_generation_and_debris_in_its_own_groups(served: Served) -> None:
    names = {
        "IRIDIUM 12": "1997-030B", "IRIDIUM 180": "2018-061A", "IRIDIUM 33 DEB": "1997-051P", "NOAA 7 DEB": "1981-059X",
        "NOAA 19": "2009-005A", "GLOBALSTAR R/B": "1998-008E", "GPS BIIR-2  (PRN 13)": "1997-035A",
    }  # fmt: skip
    places = enumerate(names.items(), 100)
    decayed = row(107, object_name="NOAA 20", decay_time_ns=EPOCH_NS)
    sets = [row(n, object_name=name, international_designator=launched) for n, (name, launched) in places]
    served.source.commit(*sets, {**sets.pop(), "mean_motion_rev_per_day": 2.0}, decayed)
    served.live.refresh()
    for group, found in (
        ("iridium-next", [101]),
        ("iridium", [100]),
        ("iridium-33-debris", [102]),
        ("noaa", [104]),
        ("globalstar", []),
        ("gps-ops", [106]),
        ("gnss", [106]),
        ("weather", [104, 41866]),
        ("mine", [5, 6]),
    ):
        answer = gp(served, f"GROUP={group}&FORMAT=json")
        assert [each["NORAD_CAT_ID"] for each in json.loads(answer)] == found if found else "No GP" in answer, group
    numbers = {group: gp(served, f"GROUP={group}&FORMAT=csv").count("NOAA 20") for group in ("active", "all")}
    assert numbers == {"active": 0, "all": 1}, "what has decayed is not active"


def test_facts_of_the_satellite_catalogue_decide_on_groups_and_special_sets(served: Served) -> None:
    day = {"launch_time_ns": NOW_NS - DAY_NS, "predicted_decay_time_ns": NOW_NS + DAY_NS}
    kinds: dict[int, dict[str, Any]] = {
        1: {"object_type": "DEBRIS"},
        2: {"object_type": "PAYLOAD", "operational_status": "-"},
        3: day,
    }
    served.source.known = Satellites("1", {**kinds, 4: {"decay_time_ns": NOW_NS - DAY_NS}})
    served.live.refresh()
    active = {each["NORAD_CAT_ID"] for each in json.loads(gp(served, "GROUP=active&FORMAT=json"))}
    assert active & {1, 2, 3, 4, 5} == {3, 5}
    for query in ("GROUP=last-30-days", "SPECIAL=DECAYING"):
        assert [each["NORAD_CAT_ID"] for each in json.loads(gp(served, f"{query}&FORMAT=json"))] == [3], query


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[groups.a]\n", "give norad_ids or query"),
        ("[groups.a]\nquery = 'COLOUR/red'", "no field is named 'COLOUR'"),
        ("[groups.A]\nnorad_ids = [5]", "groups.A"),
        ("[groups.a]\nnorad_ids = [0]", "greater than 0"),
    ],
)
def test_a_file_of_groups_that_cannot_be_used_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "groups.toml").write_text(text)
    with pytest.raises(GroupsError, match=r"groups\.toml") as refused:
        load_groups(tmp_path / "groups.toml")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "query", ["", "CATNR=abc", "GROUP=nonsense", "SPECIAL=x", "CATNR=5&FORMAT=doc", "CATNR=5&NAME=ISS"]
)
def test_a_query_that_celestrak_refuses_is_refused(served: Served, query: str) -> None:
    answer = served.get(f"/NORAD/elements/gp.php?{query}")
    assert (answer.status_code, answer.json()["error"].startswith("Invalid query")) == (400, True)


def test_the_openapi_document_describes_every_route(served: Served) -> None:
    document = served.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {(path, method.upper()) for path, each in document["paths"].items() for method in each} == {
        (route.path, route.method) for route in ROUTES
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["summary"].endswith(".")
            declared = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert declared == re.findall(r"{(\w+)}", path)
            assert len({p["name"] for p in operation["parameters"]}) == len(operation["parameters"])


def test_every_answer_in_json_fits_its_schema_which_names_all_that_it_has(served: Served) -> None:
    document = served.get("/openapi.json").json()
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
        schema["additionalProperties"] = "properties" not in schema
    served.source.commit(row(60, decay_time_ns=NOW_NS, bstar_per_earth_radius=None))
    served.live.refresh()
    served.source.commits["tracks"] = [[{"norad_id": 60}]]
    asked = {
        "/health": "", "/objects": "", "/objects/{norad_id}": "", "/objects/{norad_id}/history": "",
        "/objects/{norad_id}/states": "", "/states": "?at=1990-01-01T00:00:00Z&at=2024-11-01T00:00:00Z",
        "/NORAD/elements/gp.php": "?CATNR=60&FORMAT=json", "/events": "?since=first",
        "/objects/{norad_id}/ephemeris": "?from=2024-10-28T00:00:00Z&step=3600",
    }  # fmt: skip
    answers = {path: served.get(path.replace("{norad_id}", "60") + query) for path, query in asked.items()}
    for path, answer in [*answers.items(), ("/elements", put(served))]:
        (operation,) = document["paths"][path].values()
        described = operation["responses"][str(answer.status_code)]["content"]["application/json"]["schema"]
        assert answer.json(), path
        Draft202012Validator({**described, "components": document["components"]}).validate(answer.json())


def test_without_a_catalogue_the_endpoint_says_so(tmp_path: Path) -> None:
    live = LiveCatalogue(MemorySource(), IndexStore(tmp_path), lambda: NOW_NS)
    live.start()
    puts = Puts(live, lambda name, data, origins: NOW_NS)
    with Client(application(live, puts, nothing_submitted(tmp_path))) as client:
        assert client.get("/objects/5").status_code == 503
        assert "no version yet" in client.get("/objects/5").json()["error"]
        health = client.get("/health")
        assert (health.status_code, health.json()["catalogue"]) == (200, None)
    puts.close()
    live.close()
