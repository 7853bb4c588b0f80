"""A hostile partner at a running platform (`make soak ATTACK=1`): pages and commands show its names, and none obeys.

The partner names objects and files as `support/hostile` lists, one with a megabyte. Then the probes of the reviews are
sent to the servers, as pages of others would send them.
"""

import csv
import io
import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import httpx
import pytest

from sda_platform.cli.grammar import RENAMED
from sda_platform.cli.main import main
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.foreign_text import is_plain
from sda_platform.published import CATALOGUE, published
from sda_platform.registry import TABLES
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.hostile import HOSTILE
from sda_platform_tests.support.running_platform import RunningPlatform, eventually
from sda_platform_tests.support.segments import START_NS, catalogue_of

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("ATTACK" not in os.environ, reason="opens every page and command; see `make soak ATTACK=1`"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
_WITHIN_S = 600.0
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# They run until they are ended, need another site, or change what the next command reads.
_NOT_TRIED = {
    "up", "demo", "top", "service", "user", "catalog serve", "collector run", "collector feed", "ground station",
    "ground uplink", "ground agent", "ground lease", "lake restore", "lake reprocess", "lake accept", "simulate",
}  # fmt: skip


@pytest.fixture(scope="module")
def canary() -> Iterator[list[str]]:
    """Whatever reaches the address that the hostile names lead to."""
    reached: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reached.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Nothing: the list has it."""

    with ThreadingHTTPServer(("127.0.0.1", 29_999), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield reached
        server.shutdown()


def hostile_catalogue() -> bytes:
    """The published sets of the fleet and what approaches it; each name of an object is one of the list."""
    events = (Path(__file__).parents[1] / "data/screening/fleet_events_24h_5km_2024-11-01.csv").read_text()
    met = {int(row[name]) for row in csv.DictReader(io.StringIO(events)) for name in ("norad_lo", "norad_hi")}
    rows = list(csv.DictReader(io.StringIO(catalogue_of(sorted(met)).decode())))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    names = [*HOSTILE.values(), "N" * 2**20]
    for number, row in enumerate(rows):
        writer.writerow({**row, "OBJECT_NAME": names[number % len(names)]})
    return out.getvalue().encode()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, canary: list[str]) -> Iterator[RunningPlatform]:
    assert canary == []
    directory = tmp_path_factory.mktemp("attacked")
    running = RunningPlatform(directory / "home", START_NS, {"SDA_SERVING": "true"})
    for name in ("partner.csv", "[bold]=cmd|' /C calc'!A0 \x1b[31m.csv", "![](x)\u202e.csv"):
        (directory / name).write_bytes(hostile_catalogue())
        running.ask("land", directory / name, within_s=300.0)
    try:
        assert eventually(lambda: len(running.alerts()) > 0, _WITHIN_S)
        assert eventually(running.is_idle, _WITHIN_S)
        yield running
    finally:
        running.interrupt(within_s=30)
        running.kill()


def commands(group: click.Group, names: Sequence[str] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command that needs no argument, by its name."""
    for name, command in group.commands.items():
        path = (*names, name)
        if isinstance(command, click.Group):
            yield from commands(command, path)
        elif not any(each.required for each in command.params) and " ".join(path) not in _NOT_TRIED:
            yield " ".join(path), command


def test_hostile_names_are_shown_and_those_that_control_a_display_are_dead_letters(platform: RunningPlatform) -> None:
    kept = {row["object_name"] for row in json.loads(platform.sda(*QUERY, "--format", "json"))}
    assert kept <= {each for each in HOSTILE.values() if is_plain(each)} and len(kept) > 5
    assert platform.rows(DEAD_LETTERS, "error").num_rows > 0


QUERY = ("query", "select object_name, norad_id from orbital_catalog", "--limit", "1000")


def test_no_command_lets_a_name_control_the_terminal(platform: RunningPlatform) -> None:
    alert = platform.alerts()[0].alert_id
    calls: list[Sequence[str]] = [
        QUERY,
        ("alert", "show", alert),
        ("alert", "explain", alert),
        ("alert", "trace", alert),
        ("query", "select error, payload from dead_letters", "--limit", "100"),
    ]
    calls += [name.split() for name, _ in commands(main) if name not in RENAMED]
    forms: dict[str, Sequence[str]] = {"table": (), "csv": ("--format", "csv"), "json": ("--format", "json")}
    wrong = []
    for call in calls:
        for form, options in forms.items():
            done = platform.ask(*call, *options, within_s=180.0)
            if done.returncode == 2 and form != "table":
                continue  # it has one form only
            shown = done.stdout + done.stderr
            if _CONTROLS.search(shown) or "Traceback" in shown or done.returncode not in (0, 1):
                wrong.append((" ".join(call), form, done.returncode, shown[-300:]))
            if form == "csv" and any(
                cell.lstrip()[:1] in ("=", "+", "@") for row in csv.reader(io.StringIO(done.stdout)) for cell in row
            ):
                wrong.append((" ".join(call), form, done.returncode, "a formula"))
    assert wrong == []


def test_no_page_obeys_a_name(platform: RunningPlatform, canary: list[str]) -> None:
    address = published(platform.home, CATALOGUE)
    with opened(platform.url, (1600, 1000)) as page:
        for table in TABLES:
            page.goto(f"/assets/{table.name}")
            page.sees(table.name)
        page.goto("/runs")
        page.sees("Runs")
    with opened(f"http://{address}", (1600, 1000)) as page:
        for path in ("/objects?limit=1000", "/alerts", "/health", "/objects/25544"):
            page.goto(path)
            assert page.dialogs == 0
    assert canary == []


def test_what_pages_of_others_send_changes_nothing(platform: RunningPlatform) -> None:
    address = published(platform.home, CATALOGUE)
    evil: dict[str, Any] = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
    rebound = {**evil, "Host": "evil.example"}
    mutation = {"query": 'mutation { stopSensor(id: "x") { __typename } }'}
    answers = {
        "GET mutation": httpx.get(f"{platform.url}/graphql", params=mutation),
        "page of others": httpx.post(f"{platform.url}/graphql", json=mutation, headers={"Origin": evil["Origin"]}),
        "plain text": httpx.post(f"{platform.url}/graphql", content=json.dumps(mutation), headers=evil),
        "rebinding": httpx.post(f"{platform.url}/graphql", content=json.dumps(mutation), headers=rebound),
        "files": httpx.get(f"{platform.url}/logs/..%2f..%2f..%2f..%2fetc%2fpasswd"),
        "sets of others": httpx.post(f"http://{address}/elements", content=b"1", headers=evil),
        "alerts, rebound": httpx.get(f"http://{address}/alerts", headers={"Host": "evil.example"}),
    }
    assert {name: answer.status_code for name, answer in answers.items() if answer.status_code < 400} == {}
    asked = {"path": "/etc/passwd.ipynb", "repoLocName": "sda_platform"}
    answers["notebook"] = httpx.get(f"{platform.url}/notebook", params=asked)
    assert "root:" not in "".join(answer.text for answer in answers.values())
