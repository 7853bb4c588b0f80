"""A hostile partner at a running platform (`make soak ATTACK=1`): pages and commands show its names, and none obeys.

The partner names objects, files and itself, and writes comments, as `support/hostile` lists, one with a megabyte. Every
page and every command is opened. Then requests are sent to the servers as pages of others would send them.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
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
from sda_platform.serving.routes import ROUTES
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.hostile import HOSTILE
from sda_platform_tests.support.many_commands import ManyCommands
from sda_platform_tests.support.message_texts import KVN
from sda_platform_tests.support.running_platform import RunningPlatform, eventually
from sda_platform_tests.support.segments import START_NS, catalogue_of

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("ATTACK" not in os.environ, reason="opens every page and command; see `make soak ATTACK=1`"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
_WITHIN_S = 600.0
_DRAWN_MS = 1_500
csv.field_size_limit(2**24)  # a payload may have a megabyte
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# They run until they are ended, or need another site.
_NOT_TRIED = {
    "up", "demo", "top", "service", "user", "catalog serve", "collector run", "collector feed", "ground station",
    "ground uplink", "ground fleet report", "ground fleet admit", "ground fleet remove", "ground state replicas",
    "ground state put", "ground state get", "ground state promote", "sensor command", "lake restore", "lake reprocess",
}  # fmt: skip
# By command. What is in braces the platform knows. Commands of this module's end change what others read.
_GIVEN = {
    "alert show": "{alert}", "alert trace": "{alert}", "alert explain": "{alert}", "alert cdm": "{alert}",
    "alert ack": "{alert} --comment {hostile} --by {hostile}", "alert report": "{alert} --out {out}/report.html",
    "catalog show": "{norad}", "catalog search": "{hostile}", "catalog diff": "1 1",
    "catalog edit": "{norad} remark {hostile} --editor {hostile}", "catalog resolve": "{norad} remark {hostile}",
    "catalog export": "{out}/catalogue.csv", "catalog ephemeris": "{norad} {out}/{norad}.oem",
    "catalog retire": "{norad} --editor {hostile}", "catalog restore": "{norad} --editor {hostile}",
    "catalog put": "{sets}", "ground issue": "HOUSEKEEPING --station {hostile}", "ground list": "--station {hostile}",
    "lake sql": "{query}", "lake diff": "orbital_catalog 1", "lake impact": "{segment}", "lake tag": "{hostile}",
    "lake untag": "{hostile}", "lake layout": "orbital_catalog", "lake accept": "orbital_catalog",
    "lake audit": "--history",
    "lake reconcile": "orbital_catalog", "lake replay": "orbital_catalog", "land": "{sets}", "query": "{query}",
    "convert": "{sets} --to json", "simulate": "{out}/world", "pc": "--cdm {cdm}", "whatif": "--primary {norad}",
    "screen": "--catalog {sets} --start 2024-11-01T00:00:00Z --hours 1 --out {out}/found.csv",
    "passes": "--lat 48 --lon 9 --hours 1 --start 2024-11-01T00:00:00Z",
}  # fmt: skip
_QUERIES = (
    "select object_name, norad_id from orbital_catalog limit 1000",
    "select error, payload from dead_letters limit 200",
)
_WRITTEN = re.compile(r"(ORIGINATOR|OBJECT_NAME|MESSAGE_ID|PARTICIPANT_1) *=.*$")


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


def hostile_messages(kind: str) -> bytes:
    """A message of this kind for each name of the list, which names its originator, its objects and its comment."""
    head, _, rest = KVN[kind].partition("\n")
    made = []
    for text in HOSTILE.values():
        if "\n" not in text and "\r" not in text:
            named = "\n".join(
                f"{found[1]} = {text}" if (found := _WRITTEN.match(line)) else line for line in rest.splitlines()
            )
            made.append(f"{head}\nCOMMENT {text}\n{named}\n")
    return "".join(made).encode()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """What the partner sends, by name; the names of files are hostile, too."""
    directory = tmp_path_factory.mktemp("sent")
    names = ("partner.csv", "[bold]=cmd|'!A0 \x1b[31m.csv", "![](x)\u202e.csv")
    sent = {f"sets {number}": directory / name for number, name in enumerate(names)}
    for path in sent.values():
        path.write_bytes(hostile_catalogue())
    for kind in KVN:
        sent[kind] = directory / f"[blink]{kind}![](x).kvn"
        sent[kind].write_bytes(hostile_messages(kind))
    return sent


@pytest.fixture(scope="module")
def platform(
    tmp_path_factory: pytest.TempPathFactory, canary: list[str], files: Mapping[str, Path]
) -> Iterator[RunningPlatform]:
    assert canary == []
    running = RunningPlatform(tmp_path_factory.mktemp("attacked") / "home", START_NS, {"SDA_SERVING": "true"})
    try:
        for name, path in files.items():
            landed = running.ask("land", path, within_s=300.0)
            assert (landed.returncode in (0, 1), faults(landed)) == (True, []), (name, landed.stderr[-2000:])
        assert eventually(lambda: len(running.alerts()) > 0, _WITHIN_S)
        assert eventually(running.is_idle, _WITHIN_S)
        yield running
    finally:
        running.interrupt(within_s=30)
        running.kill()


def commands(group: click.Group, names: Sequence[str] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command by its name."""
    for name, command in group.commands.items():
        path = (*names, name)
        if isinstance(command, click.Group):
            yield from commands(command, path)
        elif " ".join(path) not in RENAMED:
            yield " ".join(path), command


def faults(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a command's output must not have."""
    shown = done.stdout + done.stderr
    found = {"controls": _CONTROLS.search(shown), "traceback": "Traceback" in shown, "exit code": done.returncode > 1}
    return [name for name, is_found in found.items() if is_found]


def test_hostile_names_are_shown_and_those_that_control_a_display_are_dead_letters(platform: RunningPlatform) -> None:
    kept = {row["object_name"] for row in json.loads(platform.sda("query", _QUERIES[0], "--json"))["rows"]}
    assert all(map(is_plain, kept)) and kept >= {each for each in HOSTILE.values() if is_plain(each)}
    refused = "\n".join(platform.rows(DEAD_LETTERS, "error").column("error").to_pylist())
    controls = {ascii(each)[1:-1] for each in HOSTILE.values() if not is_plain(each) and len(each.splitlines()) == 1}
    assert {each for each in controls if each not in refused} == set()


def calls(platform: RunningPlatform, files: Mapping[str, Path], out: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Every command, those with a name of the list once for each kind of text, and each in every form."""
    consumed = next(path for path in (platform.home / "landing/elements").rglob("*.meta.json"))
    known = {
        "alert": platform.alerts()[0].event_id, "norad": str(platform.alerts()[0].norad_id_1), "out": str(out),
        "sets": str(files["sets 2"]), "cdm": str(files["cdm"]), "segment": consumed.name.split(".")[0],
    }  # fmt: skip
    tried = dict(commands(main))
    assert set(_GIVEN) | _NOT_TRIED <= set(tried)
    for name, command in tried.items():
        if name in _NOT_TRIED:
            continue
        needed = [each.name for each in command.params if each.required]
        assert name in _GIVEN or not needed, f"{name} needs {needed}: say what it is given"
        words = _GIVEN.get(name, "").split()
        texts = ["![](//127.0.0.1:29999/x)", "\x1b[31m[/b]\u202e"] if "{hostile}" in words else [""]
        queries = _QUERIES if "{query}" in words else [""]
        forms = next((each.type.choices for each in command.params if each.name == "form"), [""])  # type: ignore[attr-defined]
        for text, query, form in product(texts, queries, forms):
            given = [each.format(**known, hostile=text, query=query) for each in words]
            yield form, [*name.split(), *given, *(("--format", form) if form else ())]


def test_no_command_lets_a_name_control_the_terminal(
    platform: RunningPlatform, files: Mapping[str, Path], tmp_path: Path
) -> None:
    wrong = []
    with ManyCommands(platform.environment, tmp_path) as sda:
        tried = [(form, call, sda.ask(call)) for form, call in calls(platform, files, tmp_path)]
    for form, call, done in tried:
        found = faults(done)
        if form == "csv" and any(
            cell.lstrip()[:1] in ("=", "+", "@") for row in csv.reader(io.StringIO(done.stdout)) for cell in row
        ):
            found.append("a formula")
        if found:
            wrong.append((" ".join(call), done.returncode, found, done.stdout[-300:]))
    assert wrong == []


def test_no_page_obeys_a_name(platform: RunningPlatform, canary: list[str], tmp_path: Path) -> None:
    address, norad_id = published(platform.home, CATALOGUE), platform.alerts()[0].norad_id_1
    run_id = platform.runs()[0].run_id
    pages = ["/overview", "/runs", f"/runs/{run_id}", "/assets", "/asset-groups", "/jobs", "/automation", "/deployment"]
    pages += [f"/assets/{table.name}?view={view}" for table in TABLES for view in ("overview", "events")]
    with opened(platform.url, (1600, 1000)) as page:
        for path in pages:
            page.goto(path)
            page.sees("Deployment")
            page.settle(_DRAWN_MS)
        assert (page.dialogs, page.elsewhere) == (0, [])
    with opened(f"http://{address}", (1600, 1000)) as page:
        for route in ROUTES:
            if route.method == "GET":
                page.goto(route.path.format(norad_id=norad_id, submission_id="<img src=//127.0.0.1:29999/x>"))
        assert (page.dialogs, page.elsewhere) == (0, [])
    with opened((tmp_path / "page.html").as_uri(), (1600, 1000)) as page:
        platform.sda("alert", "report", platform.alerts()[0].event_id, "--out", tmp_path / "page.html")
        page.goto("")
        page.settle(_DRAWN_MS)
        assert (page.dialogs, page.elsewhere) == (0, [])
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
