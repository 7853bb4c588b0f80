"""Every listener is opened without and with each credential; what it answers is what the threat model states."""

import asyncio
import base64
import json
import os
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from starlette.responses import Response
from starlette.routing import Route

from sda_platform.cli.collector.feeder import ObservationArchive
from sda_platform.edge.address import Address
from sda_platform.edge.control import control_plane
from sda_platform.edge.http_server import HttpServer
from sda_platform.ground.message_guard import MessageGuard
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_server import serve
from sda_platform.orchestration.webhooks import SigningKeys
from sda_platform.private_home import private_files
from sda_platform.runtime import liveness, platform_home, worker_socket
from sda_platform.runtime.pages import PageAnswer, Pages
from sda_platform.runtime.ui_roles import Role
from sda_platform.serving.clients import ANYONE, KnownClients
from sda_platform_tests.support import sockets
from sda_platform_tests.support.acting_console import ActingConsole, acting_console
from sda_platform_tests.support.certificates import make_certificates
from sda_platform_tests.support.collectors import address, beacons, collecting, framed, radar_frames, until
from sda_platform_tests.support.file_sources import UPLOAD, post
from sda_platform_tests.support.second_user import as_another_user
from sda_platform_tests.support.served_ui import served, ui, users_file
from sda_platform_tests.support.socket_sources import ended, sealed
from sda_platform_tests.support.station_packets import outcome, packet
from sda_platform_tests.unit.serving.endpoint import FILE, TOKENS, application_over, clients_of, plan

FOREIGN_NAME = {"Host": "evil.example"}
FOREIGN_ADDRESS = "127.0.0.2"
READ, SWITCH, RELOAD = (
    "{ version }",
    'mutation { stopSensor(id: "1") { __typename } }',
    "mutation { reloadWorkspace { __typename } }",
)
Found = Mapping[str, str]


def user_interface(home: Path) -> Found:
    tokens = users_file(home)

    def tried(port: int, headers: Mapping[str, str]) -> str:
        answers = [
            httpx.post(f"http://127.0.0.1:{port}/graphql", json={"query": query}, headers=headers)
            for query in (READ, SWITCH, RELOAD)
        ]
        if answers[0].is_error:
            return str(answers[0].status_code)
        switches, reloads = ("may not" not in answer.text for answer in answers[1:])
        return "changes all" if reloads else "changes runs and sensors" if switches else "reads"

    found = {}
    for anyone, where in ((Role.ADMIN, "loopback"), (Role.VIEWER, "beyond loopback")):
        with ui(home, has_users=False, anyone=anyone) as app, served(app) as port:
            found["page under a foreign name"] = tried(port, FOREIGN_NAME)
            found[f"anyone, {where}, no users set"] = tried(port, {})
    with ui(home) as app, served(app) as port:
        found["anyone, users set"] = tried(port, {})
        for name in ("viewer", "operator", "admin"):
            login = base64.b64encode(f"{name}:{tokens[name]}".encode()).decode()
            found[name] = tried(port, {"Authorization": f"Basic {login}"})
    return found


def _connects(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def _by_users(path: str, *, answers: bool) -> Found:
    other = as_another_user(lambda: _connects(path))
    return {
        "other user of the machine": "refused" if other == "PermissionError" else other,
        "the platform's user": "answers" if answers else "silent",
    }


def code_server(home: Path) -> Found:
    with private_files(0o077):
        where = platform_home.code_server_socket(home)
        Path(where.removeprefix("unix:")).parent.mkdir(parents=True, exist_ok=True)
        states = health.HealthServicer()
        states.set("DagsterApi", health_pb2.HealthCheckResponse.SERVING)
        server = grpc.server(futures.ThreadPoolExecutor(1))
        health_pb2_grpc.add_HealthServicer_to_server(states, server)
        server.add_insecure_port(where)
        server.start()
    found = _by_users(where.removeprefix("unix:"), answers=bool(liveness.code_server_answers(where)(10.0)))
    server.stop(None).wait()
    return found


def worker_host(home: Path) -> Found:
    directory = home / "dagster"
    directory.mkdir()

    def answer() -> None:
        with listener.accept() as connection:
            worker_socket.receive(connection)
            worker_socket.send(connection, {"value": True})

    with worker_socket.listen(directory) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        answers = worker_socket.ask(directory, {"what": "probe"})
        thread.join()
        return _by_users(str(directory / worker_socket.SOCKET), answers=answers)


def _status(url: str, headers: Mapping[str, str] | None = None, **options: Any) -> str:
    answer = httpx.request(options.pop("method", "GET"), url, headers=headers, **options)
    return "reads" if answer.is_success else str(answer.status_code)


def pages(_home: Path) -> Found:
    with Pages("127.0.0.1", 0, {"/health": lambda: PageAnswer(b"ok", "text/plain")}) as served_pages:
        url = f"http://127.0.0.1:{served_pages.port}/health"
        return {"page under a foreign name": _status(url, FOREIGN_NAME), "anyone": _status(url)}


def catalogue(home: Path) -> Found:
    found = {}

    def writes(port: int, norad_id: int, token: str = "") -> str:
        headers = {"content-type": "application/x-ccsds-kvn", **({"authorization": f"Bearer {token}"} if token else {})}
        answer = httpx.post(f"http://127.0.0.1:{port}/ephemerides", content=plan(norad_id), headers=headers)
        return "writes" if answer.is_success else str(answer.status_code)

    def over(name: str, clients: KnownClients, **options: Any) -> Iterator[int]:
        with application_over(home / name, clients, **options) as (app, _lake), served(app) as port:
            yield port

    for port in over("open", ANYONE):
        url = f"http://127.0.0.1:{port}/objects/25544"
        found["page under a foreign name"] = _status(url, FOREIGN_NAME)
        found["anyone, loopback, no clients set"] = f"{_status(url)}, {writes(port, 25544)}"
    for port in over("clients", clients_of(home)):
        url = f"http://127.0.0.1:{port}/objects/25544"
        found["anyone, clients set"] = f"{_status(url)}; a write: {writes(port, 25544)}"
        found["client, object of another"] = writes(port, 5, TOKENS["AURORA_TOKEN"])
        found["client, own object"] = writes(port, 25544, TOKENS["AURORA_TOKEN"])
    pages = [Route("/", lambda _: Response())]
    for port in over("logins", clients_of(home, FILE + "[reading]\nneeds_login = true\n"), pages=pages):
        for name, headers in (("anyone", {}), ("client", {"authorization": f"Bearer {TOKENS['AURORA_TOKEN']}"})):
            read, shown = (_status(f"http://127.0.0.1:{port}{path}", headers) for path in ("/objects/25544", "/"))
            found[f"{name}, reading needs a login"] = f"{read}; console: {shown}"
    return found


def console(home: Path) -> Found:
    def does(desk: ActingConsole, user: str = "", **headers: str) -> str:
        before, status = len(desk.actions), desk.act(user, headers, by="ann").status_code
        page = desk.text(user)
        assert (len(desk.actions) > before) == (status == 303) == ("desk@nasa.example" in page and not headers)
        assert "Hand-over log" in page
        return "reads, acts on alerts, sees contacts" if status == 303 else f"reads; acting: {status}"

    found = {}
    with acting_console(home / "open") as desk:
        found["anyone, loopback, no users set"] = does(desk)
        found["page of another origin"] = str(desk.act(headers={"origin": "http://evil.example"}).status_code)
    with acting_console(home / "reached", is_open=False) as desk:
        found["anyone, beyond loopback, no users set"] = does(desk)
    with acting_console(home / "users", has_users=True) as desk:
        found["anyone, users set"] = does(desk)
        found["viewer"] = does(desk, "viewer-v")
        (found["operator, admin"],) = {does(desk, "operator-o"), does(desk, "admin-a")}
    return found


def collector(home: Path) -> Found:
    os.environ["UPLOAD_TOKEN"] = "t0ken"

    async def tried(token: str, headers: dict[str, str]) -> str:
        upload = {**UPLOAD["upload"], **({"token_variable": "UPLOAD_TOKEN"} if token else {})}
        async with (
            collecting(home / (token or "open"), {"upload": upload}) as running,
            HttpServer(control_plane(running, token), Address("127.0.0.1", 0)) as control,
            httpx.AsyncClient() as client,
        ):
            read = (await client.get(f"http://{control.address}/sources", headers=headers)).status_code
            landed = (await post(running, "/land/elements?name=a.tle", headers=headers)).status_code
        return "reads, lands" if (read, landed) == (200, 201) else str(read) if read == landed else f"{read}, {landed}"

    async def all_tried() -> Found:
        return {
            "page under a foreign name": await tried("", FOREIGN_NAME),
            "anyone, loopback, no token set": await tried("", {}),
            "anyone, token set": await tried("t0ken", {}),
            "the token": await tried("t0ken", {"Authorization": "Bearer t0ken"}),
        }

    try:
        return asyncio.run(all_tried())
    finally:
        del os.environ["UPLOAD_TOKEN"]


def frames(home: Path) -> Found:
    make_certificates(home)
    own = {name: str(home / f"right.{end}") for name, end in (("certificate", "crt"), ("key", "key"))}
    tls = {**own, "sender_authority": str(home / "right.crt")}
    trusted = ssl.create_default_context(cafile=str(home / "right.crt"))
    known = ssl.create_default_context(cafile=str(home / "right.crt"))
    known.load_cert_chain(home / "right.crt", home / "right.key")

    async def tried(name: str, options: Mapping[str, Any], context: ssl.SSLContext | None = None, **how: Any) -> str:
        links = {"links": {"kind": "isl", "bind": "127.0.0.1:0", **options}}
        async with collecting(home / name, links) as running:
            reader, writer = await asyncio.open_connection(*address(running, "links"), ssl=context, **how)
            writer.write(framed(beacons(2)))
            closing = asyncio.create_task(ended(reader))
            landing = asyncio.create_task(sealed(running, "links", 2))
            done, waiting = await asyncio.wait({closing, landing}, return_when=asyncio.FIRST_COMPLETED)
            for each in waiting:
                each.cancel()
            writer.close()
            return "lands" if landing in done else "closed"

    async def all_tried() -> Found:
        return {
            "anyone, no options": await tried("open", {}),
            "address that is not allowed": await tried(
                "allow", {"allow": ["127.0.0.1"]}, local_addr=(FOREIGN_ADDRESS, 0)
            ),
            "no certificate of the authority": await tried("bare", tls, trusted),
            "certificate of the authority": await tried("tls", tls, known),
        }

    return asyncio.run(all_tried())


def radar(home: Path) -> Found:
    async def tried(name: str, sender_address: str, *allowed: str) -> str:
        source = {"radar-a": {"kind": "radar", "bind": "127.0.0.1:0", **({"allow": allowed} if allowed else {})}}
        async with collecting(home / name, source) as running:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind((sender_address, 0))
                sender.sendto(radar_frames(1)[0], address(running, "radar-a"))
            refused = running.supervised["radar-a"].source.errors
            await until(lambda: bool(refused or running.ledger.of_source("radar-a").sealed))
            return "left out" if refused else "lands"

    async def all_tried() -> Found:
        return {
            "anyone, no options": await tried("open", FOREIGN_ADDRESS),
            "address that is not allowed": await tried("foreign", FOREIGN_ADDRESS, "127.0.0.1"),
            "address that is allowed": await tried("own", "127.0.0.1", "127.0.0.1"),
        }

    return asyncio.run(all_tried())


def feed(_home: Path) -> Found:
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = Address("127.0.0.1", int(free.getsockname()[1]))
    with ObservationArchive().serving(place):
        url = f"http://{place}/?since=0"
        return {"page under a foreign name": _status(url, FOREIGN_NAME), "anyone": _status(url)}


@contextmanager
def _station(home: Path, guard: MessageGuard | None = None) -> Iterator[str]:
    with serve(DurableStation(home / "station.sqlite", lambda: 0), 0, guard) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def ground_station(home: Path) -> Found:
    with _station(home) as url:
        tokens = [httpx.post(f"{url}/promotions", json={"uplink": "a", "above": 0}).json()["token"] for _ in range(2)]

        def commanded(name: str, token: int) -> str:
            found = outcome(httpx.post(f"{url}/commands", content=packet(command_id=name, token=token)))
            return {"executed": "executes", "stale_sender": "refused"}.get(found, found)

        page = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
        found = {
            "page of another origin": _status(f"{url}/promotions", page, method="POST", content="{}"),
            "older token": commanded("x", min(tokens) - (tokens[0] == tokens[1])),
            "newest token": commanded("y", max(tokens)),
        }
    keys = SigningKeys("SDA_STATION_KEYS", "one:whsec_" + "A" * 32)
    with _station(home, MessageGuard(keys, home / "station.sqlite")) as url:
        found["newest token, keys set, no signature"] = _status(f"{url}/commands", {}, method="POST", content="{}")
    return found


TRIED: Mapping[str, Callable[[Path], Found]] = {
    sockets.UI: user_interface,
    sockets.CODE_SERVER: code_server,
    sockets.WORKERS: worker_host,
    sockets.PAGES: pages,
    sockets.CATALOGUE: catalogue,
    sockets.CONSOLE: console,
    sockets.COLLECTOR: collector,
    sockets.FRAMES: frames,
    sockets.RADAR: radar,
    sockets.FEED: feed,
    sockets.STATION: ground_station,
}


@pytest.mark.parametrize("listener", TRIED, ids=[attempt.__name__ for attempt in TRIED.values()])
def test_a_listener_answers_each_sender_as_the_threat_model_states(
    listener: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    tmp_path.chmod(0o755)
    assert TRIED[listener](tmp_path) == sockets.stated(listener)


def test_every_listener_is_opened_the_engine_by_a_test_with_a_jvm() -> None:
    assert {*TRIED, sockets.ENGINE} == {each.listener for each in sockets.ATTEMPTS}
    engine_test = Path(__file__).parents[1] / "system/test_platform.py"
    assert "sockets.stated(sockets.ENGINE)" in engine_test.read_text()


@pytest.mark.parametrize("size", ["9999999", "-1", "x"])
def test_a_station_reads_no_body_without_bound(tmp_path: Path, size: str) -> None:
    with _station(tmp_path) as url:
        request = urllib.request.Request(f"{url}/commands", method="POST", headers={"Content-Length": size})
        with pytest.raises(urllib.error.HTTPError, match="413"):
            urllib.request.urlopen(request, timeout=10)
        json.loads(httpx.post(f"{url}/heartbeats", json={"uplink": "a"}).text)
