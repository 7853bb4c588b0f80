"""Markings stay with an element set: from landing into the catalogue, and to every answer and file.

Classification, data mode, owner and source: what arrived as C leaves as C, and what a format cannot state is left out.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.decoding import decode
from sda_platform.catalog.tables import ELEMENT_SETS, ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.catalog.transforms import improvements
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.markings import DATA_MODES
from sda_platform.formats.omm import encode_omm, encode_omm_csv, encode_omm_json
from sda_platform.formats.segments import Origin, describe_segment
from sda_platform.formats.tle_writing import encode_tles
from sda_platform.landing.decoding import decode_batch, one_by_one
from sda_platform.landing.segments import LoadedSegment
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.record import COLUMNS
from sda_platform.serving.rendering import LEFT_OUT, RENDERINGS
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.served_sets import NOW_NS, nothing_submitted
from sda_platform_tests.unit.serving.catalogues import row
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import TOKENS, clients_of
from sda_platform_tests.unit.serving.source import MemorySource

SET = ElementSet(25544, "ISS", "1998-067A", START_NS, 15.5, 0.001, 51.6, 10.0, 20.0, 30.0, 1e-4, originator="18 SDS")
WRITERS: dict[str, Callable[[list[ElementSet]], bytes]] = {
    "omm-csv": encode_omm_csv,
    "omm-json": encode_omm_json,
    "omm-kvn": lambda sets: encode_omm(sets, "kvn"),
    "omm-xml": lambda sets: encode_omm(sets, "xml"),
}
OWNERS = st.none() | st.text(st.characters(codec="ascii", categories=["Lu", "Nd"]), min_size=1, max_size=20)
MARKED = {"classification": "C", "owner": "USSF", "source_name": "aurora"}
TWO_LINES = {"tle", "3le", "2le"}


@given(st.sampled_from("UCS"), st.none() | st.sampled_from(DATA_MODES), OWNERS, st.sampled_from(list(WRITERS)))
def test_what_is_marked_is_read_from_every_message_as_it_was_written__44(
    classification: str, data_mode: str | None, owner: str | None, name: str
) -> None:
    marked = replace(SET, classification=classification, data_mode=data_mode, owner=owner)
    (found,) = decode_element_sets(WRITERS[name]([marked]), segment_format=name).to_pylist()
    assert found["error_kind"] is None, found["error"]
    assert [found[each] for each in ("classification", "data_mode", "owner")] == [classification, data_mode, owner]


def test_a_data_mode_that_there_is_not_is_refused__44() -> None:
    data = encode_omm_json([replace(SET, data_mode="MAYBE")])
    (found,) = decode_element_sets(data, segment_format="omm-json").to_pylist()
    assert (found["error_kind"], "must be one of REAL, TEST" in found["error"]) == ("out_of_range", True)


@given(st.sampled_from("UCS"), st.none() | st.sampled_from(DATA_MODES), OWNERS)
def test_a_landed_set_is_marked_in_the_catalogue_and_by_its_source_not_by_itself__44(
    classification: str, data_mode: str | None, owner: str | None
) -> None:
    marked = replace(SET, classification=classification, data_mode=data_mode, owner=owner, source_name="a forger")
    data = encode_omm_csv([marked])
    described = describe_segment(
        data, feed=ELEMENTS_FEED, segment_format="omm-csv", sealed_time_ns=START_NS, sealed_wall_time_ns=START_NS
    )
    meta = replace(described, origins=(Origin(1, "celestrak", "192.0.2.7", rank=10),))
    segment = LoadedSegment(ELEMENTS_FEED, "a.csv", hashlib.sha256(data).hexdigest(), data, meta, None)
    landed = decode_batch(ELEMENT_SETS, [segment], one_by_one(decode)).rows
    (found,) = improvements(landed, ORBITAL_CATALOG.content_schema.empty_table(), as_of_ns=START_NS).to_pylist()
    marks = [found[each] for each in ("classification", "data_mode", "owner", "source_name")]
    assert marks == [classification, data_mode, owner, "celestrak"]
    assert set(COLUMNS) <= {*found, "commit_sequence"}, "the serving index has them"


@dataclass
class Served:
    """An endpoint over a real set (7), an exercise's (8), each also of another source, and an unmarked one (9)."""

    client: Client
    headers: dict[str, str]

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers={**self.headers, **headers})


FILE = """
[clients.aurora]
token_variable = "AURORA_TOKEN"

[clients.survey]
token_variable = "SURVEY_TOKEN"
sources = ["partner"]

[reading]
needs_login = true
"""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Served]]:
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    source = MemorySource()
    day = 86_400 * 10**9
    marked = {7: row(7, **MARKED), 8: row(8, **MARKED, data_mode="EXERCISE")}
    older = [
        {**row(n), "epoch_time_ns": row(n)["epoch_time_ns"] - day, "source_name": "partner", "record_number": 900 + n}
        for n in (7, 8)
    ]
    source.commit(*older, *marked.values(), row(9, source_name="aurora"))
    source.commits["element_sets"].append([marked[7]])
    live = LiveCatalogue(source, IndexStore(tmp_path), lambda: NOW_NS)
    live.start()
    puts = Puts(live, lambda name, data, origins: NOW_NS)
    app = application(live, puts, nothing_submitted(tmp_path), clients_of(tmp_path, FILE))
    with Client(app) as client:
        yield {
            name: Served(client, {"authorization": f"Bearer {TOKENS[f'{name.upper()}_TOKEN']}"})
            for name in ("aurora", "survey")
        }
    puts.close()
    live.close()


SETS = (
    "/objects/7?format={0}", "/objects?id=7&format={0}", "/objects/7/history?since=2024-10-27T00:00:00Z&format={0}",
    "/NORAD/elements/gp.php?CATNR=7&FORMAT={0}",
)  # fmt: skip


def stated(name: str, text: str) -> tuple[set[str], ...]:
    """Every classification, data mode, owner and source in an answer."""
    if name.startswith("json"):
        rows = json.loads(text)
    elif name == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
    elif name in TWO_LINES:
        return ({line[7] for line in text.splitlines() if line.startswith("1 ")}, set(), set(), set())
    else:
        return (set(re.findall(r"CLASSIFICATION_TYPE(?:>| *= *)(\w+)", text)), set(), set(), set())
    return tuple({each.get(k) or "" for each in rows} for k in ("CLASSIFICATION_TYPE", "DATA_MODE", "OWNER", "SOURCE"))


@pytest.mark.parametrize("name", RENDERINGS)
@pytest.mark.parametrize("path", SETS)
def test_what_arrived_as_c_leaves_as_c_in_every_format__44(served: dict[str, Served], path: str, name: str) -> None:
    answer = served["aurora"].get(path.format(name))
    assert answer.status_code == 200, answer.text
    marks = stated(name, answer.text)
    assert marks[0] == {"C"}
    if name in ("json", "json-pretty", "csv"):
        assert marks[2:] == ({"USSF"}, {"aurora"})
    elif name not in TWO_LINES:
        assert all(
            re.search(rf"{mark}\W+(?:\w+\W+)?{value}", answer.text)
            for mark, value in (("OWNER", "USSF"), ("SOURCE", "aurora"))
        )


@pytest.mark.parametrize("name", RENDERINGS)
def test_a_set_of_an_exercise_says_so_or_is_left_out__44(served: dict[str, Served], name: str) -> None:
    answer = served["aurora"].get(f"/objects?id=8,9&format={name}")
    assert answer.status_code == 200
    if name in TWO_LINES:
        assert answer.headers[LEFT_OUT] == "1"
        assert served["aurora"].get(f"/objects/8?format={name}").status_code == 406
    else:
        assert "EXERCISE" in answer.text


def test_other_answers_state_the_markings_too__44(served: dict[str, Served]) -> None:
    get = served["aurora"].get
    facts = {"classification": "C", "data_mode": "EXERCISE", "owner": "USSF", "source": "aurora"}
    for path in ("/objects/8/states?at=2024-10-28T00:00:00Z", "/states?id=8&at=2024-10-28T00:00:00Z"):
        (state,) = get(path).json()
        assert {each: state[each] for each in facts} == facts
    marks = {"CLASSIFICATION_TYPE": "C", "DATA_MODE": "EXERCISE", "OWNER": "USSF", "SOURCE": "aurora"}
    for name in ("gp", "gp_history"):
        found = get(f"/basicspacedata/query/class/{name}/NORAD_CAT_ID/8/orderby/EPOCH desc/limit/1").json()[0]
        assert {each: found[each] for each in marks} == marks
    for name in ("tle", "3le"):
        assert "EXERCISE" not in (found := get(f"/basicspacedata/query/class/gp/NORAD_CAT_ID/8/format/{name}")).text
        assert found.headers[LEFT_OUT] == "1"
    (event,) = get("/events?since=first&feeds=element_sets").json()["events"]
    assert (event["row"]["CLASSIFICATION_TYPE"], event["row"]["SOURCE"]) == ("C", "aurora")


def test_a_client_reads_what_its_sources_brought_as_if_there_were_no_other__44(served: dict[str, Served]) -> None:
    get, everyone = served["survey"].get, served["aurora"].get
    older = row(7)["epoch_time_ns"] - 86_400 * 10**9
    (found,) = get("/objects/7").json()
    assert found["SOURCE"] == "partner"
    assert found["EPOCH"] < everyone("/objects/7").json()[0]["EPOCH"]
    assert [each["NORAD_CAT_ID"] for each in get("/objects").json()] == [7, 8]
    assert get("/objects/9").status_code == 404
    assert [each["SOURCE"] for each in get("/objects/7/history").json()] == ["partner"]
    (state,) = get("/objects/7/states?at=2024-10-28T00:00:00Z").json()
    assert (state["elements_epoch_ns"], state["source"]) == (older, "partner")
    assert get("/objects/9/states?at=2024-10-28T00:00:00Z").status_code == 404
    assert [each["NORAD_CAT_ID"] for each in get("/NORAD/elements/gp.php?GROUP=all&FORMAT=json").json()] == [7, 8]
    for name in ("gp", "satcat"):
        rows = get(f"/basicspacedata/query/class/{name}/orderby/NORAD_CAT_ID").json()
        assert [each["NORAD_CAT_ID"] for each in rows] == ["7", "8"], name
    assert {each["SOURCE"] for each in get("/basicspacedata/query/class/gp_history/NORAD_CAT_ID/7,8").json()} == {
        "partner"
    }
    tags = [who("/objects").headers["etag"] for who in (get, everyone)]
    assert tags[0] != tags[1]
    assert get("/objects", **{"if-none-match": tags[1]}).status_code == 200
    page = get("/objects?limit=1")
    following = page.headers["link"].split(";")[0].strip("<>")
    assert [each["NORAD_CAT_ID"] for each in get(following).json()] == [8]
    assert get("/objects/7?as_of=2024-10-29T00:00:00Z").json()[0]["SOURCE"] == "partner"


@pytest.mark.parametrize(
    "path",
    ["/alerts", "/objects/7/conjunctions", "/schedule", "/events?since=first", "/metrics",
     "/basicspacedata/query/class/cdm_public"],
)  # fmt: skip
def test_what_rests_on_every_source_is_not_for_a_client_of_some__44(served: dict[str, Served], path: str) -> None:
    refused = served["survey"].get(path)
    assert refused.status_code == 403
    assert "survey reads element sets of partner alone" in refused.json()["error"]
    assert served["aurora"].get(path).status_code == 200


def test_sources_without_a_login_would_restrict_nothing_and_are_refused__44(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    with pytest.raises(Exception, match=r"clients\.survey: sources need `needs_login = true`"):
        clients_of(tmp_path, FILE.replace("true", "false"))


def test_two_lines_state_a_classification_and_no_exercise__44() -> None:
    assert encode_tles([replace(SET, classification="S", data_mode="REAL")]).splitlines()[1][7:8] == b"S"
    for mode in DATA_MODES[1:]:
        with pytest.raises(ValueError, match=f"two lines cannot state .*{mode}"):
            encode_tles([replace(SET, data_mode=mode)])


def test_answers_without_markings_are_as_before__44() -> None:
    assert [each.split(b"\r\n")[0].count(b",") for each in [encode_omm_csv([SET])]] == [17]
    assert not re.search(rb"DATA_MODE|OWNER|SOURCE|USER_DEFINED", b"".join(w([SET]) for w in WRITERS.values()))
