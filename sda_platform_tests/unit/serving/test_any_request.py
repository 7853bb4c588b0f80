"""Any request is answered, or refused with the schema of errors: none fails the endpoint.

Requests are made of the OpenAPI document: values that fit its schemas, values at and beyond their bounds, and what
senders get wrong.
"""

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from sda_platform.serving.negotiation import best
from sda_platform.serving.openapi import openapi
from sda_platform.serving.rendering import RENDERINGS
from sda_platform_tests.support.sampling import number
from sda_platform_tests.unit.serving.catalogues import row
from sda_platform_tests.unit.serving.interleavings import ALERTS, NOW_NS, World, asked, world

_NUMBERS = [
    "0", "1", "7", "8", "-1", "007", "1e3", "7.0", "٧", "²", "99999", "9223372036854775807", "9223372036854775808",
    "18446744073709551616",
]  # fmt: skip
_INSTANTS = [
    "2024-11-01T00:00:00Z", "2024-11-01", "2024-11-01T00:00:00+01:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    "1600-02-29T00:00:00Z", "2262-04-11T23:47:16.854775807Z", "1677-09-21T00:12:43Z", "2016-12-31T23:59:60Z",
    "2024-02-30T00:00:00Z", "T", "now", "0000-00-00T00:00:00Z", "2024-11-01T24:00:00Z", "2024-W01-1",
]  # fmt: skip
_TEXTS = ["", " ", "7,8", ",", "7,,8", "ISS", "%", "\x00", "\U0001f600", "a" * 3000, "../..", "<", "é", "nan", "inf"]
_WORDS = [*RENDERINGS, "JSON", "sensorkit", "red", "yellow", "all", "active", "geo", "noaa", "gpz", "gpz-plus"]
_SECONDS = ["1", "0.001", "5e-324", "1e308", "0", "-1", "3600"]
_VALUES = [*_NUMBERS, *_INSTANTS, *_TEXTS, *_WORDS, *_SECONDS, "1730000000007000000-0000000000000007-7"]
_HEADERS = {
    "Accept": ["*/*", "text/csv", "text/plain;q=0.5, application/xml", ";", "q=1", "image/png", "text/csv;q=nan"],
    "If-None-Match": ["*", '"x"', 'W/"x", "', "é"],
    "If-Modified-Since": ["Tue, 15 Nov 1994 12:45:26 GMT", "99999999999", "Tue, 99 Nov 99999 12:45:26 GMT", ""],
    "If-Match": ["*", '"x"'],
    "Accept-Encoding": ["gzip", "gzip;q=0, *", "br"],
}
_READS = [(path, each["get"]) for path, each in openapi("0", {})["paths"].items() if "get" in each]
_EXPECTED = {200, 304, 400, 404, 406, 410, 412}


def prepared(place: World) -> None:
    """Give the endpoint what makes rows: alerts, a schedule, and sets that some formats cannot hold."""
    place.source.approaches = ALERTS
    times = {"start_time_ns": NOW_NS, "end_time_ns": NOW_NS + 120 * 10**9}
    task = {"request_id": "r", "source_id": "o", "priority_class": 0, **times}
    place.source.scheduled = [{**task, "norad_id": number} for number in (7, 77)]
    old = row(77, epoch_time_ns=-(2**61), object_name='A, "B"')
    place.source.commit(old, row(799_500_001), row(78, international_designator=None, object_name=None))
    place.live.refresh()


def a_request(chance: random.Random) -> tuple[str, dict[str, str]]:
    """A GET by the OpenAPI document, with a few parameters and headers of any value."""
    path, operation = chance.choice(_READS)
    query = []
    for parameter in operation["parameters"]:
        value = _a_value(chance, parameter["schema"])
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(value or "7", safe=""))
        elif chance.random() < 2 / (1 + len(operation["parameters"])):
            query += [f"{quote(parameter['name'])}={quote(value, safe='')}"] * chance.choice([1, 1, 1, 1, 2])
    headers = {name: chance.choice(values) for name, values in _HEADERS.items() if chance.random() < 0.15}
    return f"{path}?{'&'.join(query)}", headers


def _a_value(chance: random.Random, schema: dict[str, Any]) -> str:
    if chance.random() < 0.4:
        return chance.choice(_VALUES)
    if "enum" in schema:
        return str(chance.choice(schema["enum"]))
    if schema["type"] == "integer":
        return str(chance.choice([7, 8, schema.get("minimum", 0), schema.get("maximum", 9)]))
    return chance.choice(_INSTANTS[:1] if "pattern" in schema or schema["type"] == "array" else _TEXTS + _WORDS)


def judge(place: World, seed: int) -> int:
    """Send one request, and judge its answer; the status."""
    path, headers = a_request(random.Random(seed))
    answer = asked(place.app, path, headers)
    assert answer.status in _EXPECTED, (seed, path, headers, answer)
    if answer.status >= 400:
        assert [*json.loads(answer.body)] == ["error"], (seed, path, answer)
        assert answer.headers["content-type"] == "application/json"
    elif answer.status == 200 and "accept" in {n.lower() for n in headers} and "format=" not in path.lower():
        media_type = answer.headers["content-type"].partition(";")[0]
        is_negotiated = path.startswith("/objects") and "states" not in path and "conjunctions" not in path
        assert not is_negotiated or best(headers["Accept"], [media_type]) == media_type, (seed, path, headers)
    return answer.status


@pytest.fixture
def place() -> Iterator[World]:
    with world() as found:
        prepared(found)
        yield found


def test_any_request_is_answered_or_refused_by_one_schema__44(place: World) -> None:
    seen = {judge(place, seed) for seed in range(number(in_soak=20_000, in_suite=250))}
    assert seen >= {200, 400, 404, 406}, "the requests reach what they shall"


@pytest.mark.parametrize("media", ["json", "csv", "tle", "2le", "xml", "kvn", "json-pretty"])
def test_nothing_found_is_an_empty_answer_in_every_format(place: World, media: str) -> None:
    answer = asked(place.app, f"/objects?epoch_min=2050-01-01T00:00:00Z&format={media}")
    assert answer.status == 200
    assert b"NORAD_CAT_ID>" not in answer.body


def test_a_task_whose_set_two_lines_cannot_hold_is_left_out(place: World) -> None:
    answer = asked(place.app, "/schedule?format=sensorkit")
    assert (answer.status, answer.headers["x-left-out"], answer.body.count(b"request_id")) == (200, "1", 1)
