"""The pages of the console over a small lake: what they say, that nothing in them runs, and what a browser shows."""

import asyncio
import csv
import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from sda_platform.conjunction.acknowledging import act
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
    SCREENED_FROM,
    SCREENED_UPTO,
)
from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.readers import ConsoleReader
from sda_platform.console.routes import MOST_AT_ONCE, console_routes
from sda_platform.foreign_text import printable
from sda_platform.lake.lake import Lake
from sda_platform.settings import Settings
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.encounters import TCA_NS, assessed
from sda_platform_tests.support.hostile import HOSTILE
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.served_ui import served
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client

HTML = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
ALERT = {"event_id": "an-event", "sequence": 2, "op": "insert", "risk": "red", "status": "open", "rule": "dilution",
         "norad_id_1": 25544, "norad_id_2": 5, "tca_time_ns": TCA_NS, "miss_distance_km": 0.3, "as_of_ns": START_NS,
         "collision_probability": 1e-5, "change": "new,risk_level"}  # fmt: skip
CDM = {"norad_id_1": 25544, "norad_id_2": 5, "tca_time_ns": TCA_NS, "originator": "18 SDS", "record_number": 0,
       "stated_probability": 2e-5, "miss_distance_km": 0.25, "received_time_ns": START_NS,
       "created_time_ns": START_NS}  # fmt: skip


def lake_of(home: Path, **names: str) -> Lake:
    """A catalogue of three objects, a red alert, a conjunction that is none, and one that is not judged yet."""
    lake = small_catalogue(home, [5, 11, 25544])
    commit(lake, CONJUNCTION_CANDIDATES, [], watermarks={SCREENED_FROM: START_NS, SCREENED_UPTO: after(86_400)})
    low = {"collision_probability": 1e-9, "maximum_probability": 1e-9, "norad_id_2": 11, "is_2d_valid": True}
    commit(
        lake,
        CONJUNCTION_ASSESSMENTS,
        [
            *(assessed(hours, **names) for hours in (0, 6)),
            assessed(1, event_id="no-alert", tca_time_ns=after(3600), **low),
            assessed(1, event_id="fresh", tca_time_ns=after(7200), **{**low, "collision_probability": 5e-4}),
            assessed(1, event_id="past", tca_time_ns=START_NS - 1, **low),
        ],
    )
    commit(lake, CONJUNCTION_ALERTS, [{**ALERT, **names}])
    commit(lake, RECEIVED_CDMS, [CDM])
    return lake


@contextmanager
def console(home: Path, lake: Lake, **facts: Any) -> Iterator[tuple[Client, ConsoleContext]]:
    settings = Settings(home=home)
    known = ConsoleContext(
        lake,
        settings,
        Overviews(lake, settings.landing_uri),
        lambda: True,
        lambda: None,
        reader=lambda _: ConsoleReader(may_act=True),
    )
    context = replace(known, **facts)
    with Client(Starlette(routes=console_routes(context))) as client:
        yield client, context


def test_pages_that_take_long_leave_threads_to_lookups_and_pages_to_other_peers(tmp_path: Path) -> None:
    """As many requests for pages as a server takes; each waits for a page that takes long."""
    settings, go, begun = Settings(home=tmp_path), Event(), []

    def is_running() -> bool:
        begun.append(1)
        return go.wait(60)

    lake = lake_of(tmp_path)
    context = ConsoleContext(lake, settings, Overviews(lake, settings.landing_uri), is_running, lambda: None)
    lookup = Route("/health", lambda _: Response("sound"))
    app = Starlette(routes=[*console_routes(context), lookup])

    def peer(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://localhost")

    async def asked() -> None:
        async with peer("192.0.2.1") as client, peer("192.0.2.2") as other:
            waiting = [asyncio.create_task(client.get("/", headers=HTML, timeout=60)) for _ in range(100)]
            while len(begun) < MOST_AT_ONCE // 2:
                await asyncio.sleep(0)
            waiting += [asyncio.create_task(other.get("/", headers=HTML, timeout=60)) for _ in range(9)]
            while len(begun) < MOST_AT_ONCE:
                await asyncio.sleep(0)
            assert (await client.get("/health", timeout=60)).text == "sound"
            assert len(begun) == MOST_AT_ONCE
            go.set()
            assert {each.status_code for each in await asyncio.gather(*waiting)} == {200}

    asyncio.run(asked())


@pytest.fixture(scope="module")
def pages(place_of_files: Path | None) -> Iterator[Client]:
    """Pages that no test changes."""
    with tempfile.TemporaryDirectory(dir=place_of_files) as place, console(Path(place), lake_of(Path(place))) as made:
        yield made[0]


def listed(client: Client, query: str = "") -> list[dict[str, str]]:
    text = client.get(f"/conjunctions.csv{query}").text
    assert text.startswith("\ufeff"), "by which Excel reads it as UTF-8"
    return list(csv.DictReader(io.StringIO(text[1:])))


def test_the_table_has_every_conjunction_ahead_with_its_level_and_an_alert_not_made_yet(pages: Client) -> None:
    rows = {row["event_id"]: row for row in listed(pages)}
    assert {name: (row["risk"], row["rule"]) for name, row in rows.items()} == {
        "an-event": ("red", "dilution"),
        "fresh": ("red", "not judged yet"),
        "no-alert": ("green", ""),
    }
    text = pages.get("/").text
    assert "3 conjunctions: 2 red, 0 yellow, 1 green." in text
    assert "18 SDS 2.0e-05" in text and '<em class="agrees">' in text, "a received message is compared with ours"
    assert "in 20.0 h" in text and "track" in text and "R T N" not in rows


@pytest.mark.parametrize(
    ("query", "events"),
    [
        ("", ["fresh", "an-event", "no-alert"]),
        ("?sort=tca", ["no-alert", "fresh", "an-event"]),
        ("?level=green", ["no-alert"]),
        ("?satellite=vanguard&within=3h", ["fresh", "no-alert"]),
        ("?satellite=9", []),
    ],
)
def test_page_and_csv_have_the_same_rows_in_the_same_order(pages: Client, query: str, events: list[str]) -> None:
    assert [row["event_id"] for row in listed(pages, query)] == events
    text = pages.get(f"/{query}").text
    assert re.findall(r'<tr id="c-([\w-]+)">', text) == events
    assert events or "None of 3 conjunctions is selected by these filters" in text


def test_a_limit_cuts_no_red_row_and_says_what_it_cuts(pages: Client) -> None:
    text = pages.get("/?limit=1&sort=tca").text
    assert re.findall(r'<tr id="c-([\w-]+)">', text) == ["no-alert", "fresh", "an-event"]
    text = pages.get("/?limit=1").text
    assert re.findall(r'<tr id="c-([\w-]+)">', text) == ["fresh", "an-event"]
    assert "The first 2 are shown." in text and 'href="?sort=level&amp;limit=3">Show all 3' in text


def test_what_the_table_rests_on_is_stated_and_an_empty_one_is_no_all_clear(tmp_path: Path) -> None:
    with console(tmp_path, lake_of(tmp_path)) as (client, _):
        text = client.get("/").text
        for words in ("2024-11-01T00:00:00Z", "0 s ago, up to 2024-11-02T00:00Z", "3 objects", "running"):
            assert words in text, words
        assert "warnings" not in text
    with console(tmp_path, small_catalogue(tmp_path / "new", [5]), is_running=lambda: False) as (client, _):
        text = client.get("/").text
        assert "Nothing was screened yet: an empty table is no all-clear." in text
        assert "No platform runs in this home" in text and "No conjunction is known." in text


def test_the_page_of_a_conjunction_has_its_history_levels_messages_reasons_and_lineage(pages: Client) -> None:
    text = pages.get("/conjunctions/an-event").text
    for words in ("yellow from 1e-05, red from 0.0001", "18 SDS", "risk level</td><td>dilution", "2 element sets",
                  "LEO", "Acknowledge revision 2", "in 20.0 h"):  # fmt: skip
        assert words in text, words
    for name in ("history", "plane"):
        picture = pages.get(f"/conjunctions/an-event/{name}.svg")
        assert picture.headers["content-type"] == "image/svg+xml" and picture.text.startswith("<svg")
        assert f'src="an-event/{name}.svg"' in text
    assert "no alert" in pages.get("/conjunctions/no-alert").text
    assert "CDM of 18 SDS" in re.sub(r"<!-- (.*?) -->", r"\1", pages.get("/conjunctions/an-event/history.svg").text)


def test_who_acknowledged_an_alert_is_seen_at_once_and_that_it_was_revised_since(tmp_path: Path) -> None:
    with console(tmp_path, lake_of(tmp_path)) as (client, context):
        assert "ann" not in client.get("/").text
        act(
            context.lake, context.settings.landing_uri, alert_id="an-event", revision=1, by="ann", comment="<i>seen</i>"
        )
        assert "ann, revised since" in client.get("/").text
        act(context.lake, context.settings.landing_uri, alert_id="an-event", revision=2, by="bob", comment="")
        assert "bob<" in client.get("/").text and "revised since" not in client.get("/").text
        assert "&lt;i&gt;seen&lt;/i&gt;" in client.get("/conjunctions/an-event").text


def test_the_page_of_an_object_has_its_orbit_its_conjunctions_and_downloads(pages: Client) -> None:
    text = pages.get("/objects/25544", headers=HTML).text
    for words in ("ISS (ZARYA)", "1998-067A", "LEO, ", "days old", 'href="25544?format=tle"',
                  'href="../conjunctions/an-event"', 'href="25544/history"'):  # fmt: skip
        assert words in text, words
    assert 'href="objects/25544"' in pages.get("/objects?text=zarya", headers=HTML).text
    assert "0 objects have" in pages.get("/objects?text=nothing", headers=HTML).text


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/?level=blue", 400, "level is &#x27;blue&#x27;"),
        ("/conjunctions/nope", 404, "no conjunction has the id"),
        ("/conjunctions/an-event/other.svg", 404, "there is no such picture"),
        ("/objects/7", 404, "the catalogue has no object 7"),
        ("/objects/x", 404, "is no catalogue number"),
        ("/objects/" + "0" * 20 + "9" * 30, 404, "is no catalogue number"),
        ("/static/secret.py", 404, "there is no such file"),
    ],
)
def test_what_is_wrong_with_a_request_is_a_page(pages: Client, path: str, status: int, reason: str) -> None:
    answer = pages.get(path, headers=HTML)
    assert (answer.status_code, reason in answer.text) == (status, True)


@pytest.mark.parametrize("headers", [{}, {"accept": "application/json"}, {"accept": "*/*"}])
def test_programs_are_not_answered_with_pages(pages: Client, headers: dict[str, str]) -> None:
    assert pages.get("/objects/25544", headers=headers).status_code == 404, "left to the endpoint"
    assert pages.get("/objects/25544?format=tle", headers=HTML).status_code == 404


@pytest.mark.parametrize("path", ["/", "/conjunctions/an-event", "/objects/25544", "/objects?text=ISS"])
def test_a_page_runs_no_script_of_its_own_and_links_nowhere_else(pages: Client, path: str) -> None:
    answer = pages.get(path, headers=HTML)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    scripts = re.findall(r"<script([^>]*)>([^<]*)", answer.text)
    assert all("src=" in attributes or 'type="application/json"' in attributes for attributes, _ in scripts)
    assert not re.search(r"\s(on\w+|style)=|<style", answer.text)
    targets = re.findall(r'(?:href|src)="([^"]*)"', answer.text)
    assert targets and not [each for each in targets if each.startswith("/") or ":" in each], "links are relative"
    assert answer.text.count("<h1>") == 1 and 'lang="en"' in answer.text
    for table in re.findall(r"<table.*?</table>", answer.text, re.DOTALL):
        assert "<caption>" in table and "scope=" in table
    for image in re.findall(r"<img[^>]*>", answer.text):
        assert re.search(r'alt="[^"]+"', image)


def test_names_of_others_are_shown_and_make_nothing(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, object_name_1="".join(HOSTILE.values()))
    commit(
        lake,
        CONJUNCTION_ASSESSMENTS,
        [assessed(1, event_id=f"h{n}", object_name_2=text) for n, text in enumerate(HOSTILE.values())],
    )
    with console(tmp_path, lake) as (client, _):
        for path in ("/", "/conjunctions/an-event", "/objects?text=%3Cb%3E"):
            page = client.get(path, headers=HTML).text
            assert set(re.findall(r"<(\w+)", page)) <= _TAGS, set(re.findall(r"<(\w+)", page)) - _TAGS
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", page)
        assert client.get("/conjunctions/an-event/history.svg").status_code == 200
        names = {row["event_id"]: row["object_name_2"] for row in listed(client)}
        assert all(printable(text) in names[f"h{n}"] for n, text in enumerate(HOSTILE.values()))


_TAGS = {
    "a", "body", "br", "button", "canvas", "caption", "code", "dd", "details", "div", "dl", "dt", "em", "fieldset",
    "form", "h1", "h2", "head", "header", "html", "img", "input", "label", "legend", "li", "link", "main", "meta",
    "nav", "option", "p", "script", "section", "select", "small", "span", "strong", "summary", "table", "tbody", "td",
    "th", "thead", "time", "title", "tr", "ul",
}  # fmt: skip


_DOTS_OF_COASTS = """() => {
  const canvas = document.getElementById("orbits"), dots = canvas.getContext("2d").getImageData(0, 0, canvas.width,
    canvas.height).data;
  let found = 0;
  for (let i = 0; i < dots.length; i += 4)
    if (Math.abs(dots[i] - 61) + Math.abs(dots[i + 1] - 90) + Math.abs(dots[i + 2] - 69) < 40) found++;
  return found;
}"""


@pytest.mark.parametrize("width", sampled([320, 1600], 1600))
def test_a_browser_shows_the_pages_and_moves_by_keys(tmp_path: Path, width: int) -> None:
    hostile = {"object_name_1": HOSTILE["script"], "object_name_2": HOSTILE["image"] + 60 * "W"}
    with ExitStack() as held:
        _, context = held.enter_context(console(tmp_path, lake_of(tmp_path, **hostile)))
        port = held.enter_context(served(Starlette(routes=console_routes(context))))
        page = held.enter_context(opened(f"http://127.0.0.1:{port}", (width, 900)))
        for path in ("/objects/25544", "/conjunctions/an-event", "/"):
            page.goto(path)
            page.sees("TCA +0.00 s, distance 0.300 km" if "an-event" in path else "25544")
            wide = page.run("() => document.documentElement.scrollWidth")
            assert wide == width, f"{path} is {wide} wide at {width}"
            assert page.dialogs == 0 and page.elsewhere == []
            if "an-event" in path:
                assert "primary over 0.0° N, 18.4° E" in page.text
                assert page.run(_DOTS_OF_COASTS) > 100  # type: ignore[operator]  # it is a number
        page.sees("This page")
        page.goto("/conjunctions/an-event")
        page.type("Your name", "ann")
        page.type("Assign to", HOSTILE["element"])
        page.press("Assign")
        page.sees("Hand-over log", f"assigned to {HOSTILE['element']}")
        assert page.run("() => document.querySelector('form.act input[name=by]').value") == "ann", "it is typed once"
        page.press("Acknowledge revision")
        page.sees("acknowledged by ann; assigned to")
        assert page.dialogs == 0 and page.elsewhere == []
        page.goto("/")
        page.sees(f"→ {HOSTILE['element']}")
        page.run("() => document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))")
        assert page.run("() => document.activeElement.className") == "event"
