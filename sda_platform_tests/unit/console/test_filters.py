"""The filters of the console: what an address selects, what is refused, and that the form keeps all of it."""

from typing import Any

import pytest
from starlette.datastructures import QueryParams

from sda_platform.console.filters import Filters, WrongFilter
from sda_platform.formats.fleet import ProtectedObject
from sda_platform_tests.support.segments import START_NS, after

FLEET = (ProtectedObject(25544, "ISS", "NASA"), ProtectedObject(43476, "GRACE 1", "GFZ"))
ROWS: dict[str, dict[str, Any]] = {
    "red": {"risk": "red", "norad_id_1": 25544, "object_name_1": "ISS (ZARYA)", "tca_time_ns": after(3600)},
    "yellow": {"risk": "yellow", "norad_id_1": 43476, "object_name_1": "GRACE-FO 1", "tca_time_ns": after(90_000),
               "rule": "dilution", "data_of_1": "radar-5 by radars"},
    "green": {"risk": "green", "norad_id_1": 43476, "object_name_1": None, "tca_time_ns": after(7200)},
    "stated": {"risk": "yellow", "norad_id_1": None, "object_name_1": "ISS (NAUKA)", "tca_time_ns": after(7200),
               "comment": "Looked at it"},
}  # fmt: skip
OTHER = {"event_id": "e", "norad_id_2": 7, "object_name_2": "DEB"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["red", "yellow", "green", "stated"]),
        ("level=red&level=green", ["red", "green"]),
        ("level=", ["red", "yellow", "green", "stated"]),
        ("satellite=iss", ["red", "stated"]),
        ("satellite=25544", ["red"]),
        ("satellite=7", ["red", "yellow", "green", "stated"]),
        ("satellite=2554", []),
        ("operator=gfz", ["yellow", "green"]),
        ("within=2h", ["red"]),
        ("within=121min", ["red", "green", "stated"]),
        ("text=radar-5+grace", ["yellow"]),
        ("text=LOOKED", ["stated"]),
        ("text=looked+grace", []),
        ("level=yellow&satellite=iss&within=1d", ["stated"]),
    ],
)
def test_an_address_selects(query: str, expected: list[str]) -> None:
    selection = Filters.of(QueryParams(query)).selection(FLEET, START_NS)
    assert [name for name, row in ROWS.items() if selection.has({**OTHER, **row})] == expected


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("level=blue", "level is 'blue', must be one of red, yellow, green"),
        ("sort=name", "sort is 'name', must be one of level, tca, pc, miss, speed"),
        ("limit=0", "limit is '0', must be a whole number from 1 to 10,000"),
        ("limit=9999999999999", "must be a whole number"),
        ("limit=²", "must be a whole number"),
        ("limit=" + "0" * 9 + "9" * 20, "must be a whole number"),
        ("operator=nobody", "the operator 'nobody'; there are: GFZ, NASA"),
        ("within=3", "within: '3' is no span of time"),
        ("risk=red", "no filter is named 'risk'"),
        ("satellite=a&satellite=b", "satellite is given twice"),
        ("text=" + 201 * "x", "text is longer than 200 characters"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_ignored(query: str, reason: str) -> None:
    with pytest.raises(WrongFilter, match=None) as refused:
        Filters.of(QueryParams(query)).selection(FLEET, START_NS)
    assert reason in str(refused.value)


@pytest.mark.parametrize("query", ["", "level=red&level=green&satellite=a%26b&within=3d&text=x+y&sort=tca&limit=5"])
def test_links_keep_every_filter(query: str) -> None:
    filters = Filters.of(QueryParams(query))
    assert Filters.of(QueryParams(filters.query().removeprefix("?"))) == filters
    assert Filters.of(QueryParams(filters.query(sort="pc").removeprefix("?"))).sort == "pc"


def test_the_form_has_a_label_for_each_control_and_shows_what_is_chosen() -> None:
    form = Filters.of(QueryParams("level=red&operator=NASA&text=%3Cb%3E")).form(["GFZ", "NASA"])
    assert form.count("<label>") == form.count("<input") + form.count("<select")
    assert '<option value="NASA" selected>NASA</option>' in form and 'value="&lt;b&gt;"' in form
    assert 'name="level" value="red" checked' in form and 'value="green"> green' in form
