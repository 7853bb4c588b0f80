"""The gate before the HTTP servers: what a foreign page may not reach, and that the platform's own clients pass."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import pytest
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster_webserver import cli
from starlette.types import ASGIApp, Receive, Scope, Send

from sda_platform.http_deadline import DeadlineProtocol
from sda_platform.http_gate import HttpGate, basic_login, is_own_host
from sda_platform.runtime import webserver
from sda_platform.runtime.ui_roles import Role
from sda_platform.runtime.webserver import gated
from sda_platform_tests.support.browser import opened
from sda_platform_tests.support.served_ui import served, users_file

MUTATION = {"query": 'mutation{stopSensor(id:"1"){__typename}}'}
SAME = {"origin": "http://127.0.0.1:3000", "host": "127.0.0.1:3000"}


class Recorder:
    """An application that answers everything and keeps what reached it."""

    def __init__(self, content: bytes = b"<p>own page</p>") -> None:
        self.reached: list[str] = []
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        self.reached.append(f"{scope.get('method', 'WS')} {scope['path']}")
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._content})


def status(app: ASGIApp, method: str, path: str, headers: dict[str, str], **options: Any) -> int:
    async def ask() -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.request(method, path, headers=headers, **options)).status_code

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:3000", "localhost:3000", "[::1]:3000", "10.1.2.3", "catalogue:3100", "ui.localhost",
     "sda.example.org", "SDA.example.org:443", ""],
)  # fmt: skip
def test_own_names_and_addresses_pass(host: str) -> None:
    assert is_own_host(host, {"sda.example.org"})


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "localhost.evil.example",
     "xsda.example.org", "sda.example.org.evil", "[::1", "127.0.0.1:3000/evil.example", "a b.c", "1.2.3", ":80"],
)  # fmt: skip
def test_a_name_that_a_stranger_can_point_here_is_refused(host: str) -> None:
    assert not is_own_host(host, {"sda.example.org"})


@pytest.mark.parametrize(
    ("method", "headers", "passes"),
    [
        ("GET", {}, True),
        ("POST", {}, True),
        ("POST", SAME, True),
        ("POST", {**SAME, "sec-fetch-site": "same-origin"}, True),
        ("GET", {"host": "evil.example"}, False),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),
        ("POST", {"host": "evil.example", "origin": "http://evil.example"}, False),
        ("POST", {**SAME, "origin": "http://evil.example"}, False),
        ("POST", {**SAME, "origin": "http://127.0.0.1:4000"}, False),
        ("POST", {**SAME, "origin": "null"}, False),
        ("POST", {**SAME, "origin": "http://[127.0.0.1:3000"}, False),
        ("POST", {"sec-fetch-site": "cross-site"}, False),
        ("POST", {"sec-fetch-site": "same-site"}, False),
        ("PUT", {**SAME, "origin": "http://evil.example"}, False),
        ("DELETE", {**SAME, "origin": "http://evil.example"}, False),
    ],
)
def test_only_own_pages_and_clients_that_are_no_pages_may_write(
    method: str, headers: dict[str, str], passes: bool
) -> None:
    app = Recorder()
    assert status(HttpGate(app), method, "/elements", headers) == (200 if passes else 403)
    assert bool(app.reached) is passes


@pytest.mark.parametrize(
    ("method", "path", "options", "answer"),
    [
        ("POST", "/graphql", {"json": MUTATION}, 200),
        ("POST", "/graphql", {"content": json.dumps(MUTATION), "headers": {"content-type": "text/plain"}}, 415),
        ("POST", "/graphql", {"content": b"x", "headers": {"content-type": "text/plain; x=application/json"}}, 415),
        ("POST", "/graphql", {"data": MUTATION}, 415),
        ("POST", "/graphql", {"content": b"{}"}, 415),
        ("GET", "/graphql", {"params": MUTATION}, 405),
        ("HEAD", "/graphql", {"params": MUTATION}, 405),
        ("GET", "/graphql/", {"params": MUTATION}, 405),
        ("GET", "/prefix/graphql", {"params": MUTATION}, 405),
        ("GET", "/graphql", {"params": {"query": ""}}, 405),
        ("GET", "/graphql", {}, 200),
        ("GET", "/runs", {"params": {"query": "x"}}, 200),
    ],
)
def test_a_mutation_of_dagster_is_a_post_of_json(method: str, path: str, options: dict[str, Any], answer: int) -> None:
    app, headers = Recorder(), options.pop("headers", {})
    assert status(gated(app, ()), method, path, headers, **options) == answer
    assert bool(app.reached) is (answer == 200)


_ATTACKS = """async (target) => {
  const json = JSON.stringify({query: "mutation{x}"});
  const tries = [
    () => fetch(target + "/elements", {method: "POST", mode: "no-cors", body: "x"}),
    () => fetch(target + "/elements", {method: "POST", mode: "no-cors", body: "x", credentials: "include"}),
    () => fetch(target + "/graphql", {method: "POST", mode: "no-cors", body: json}),
    () => fetch(target + "/graphql", {method: "POST", headers: {"Content-Type": "application/json"}, body: json}),
    () => fetch(target + "/graphql?query=mutation{x}", {mode: "no-cors"}),
    () => new Promise((done) => { const i = new Image(); i.onload = i.onerror = done;
                                  i.src = target + "/graphql?query=mutation{image}"; }),
    () => navigator.sendBeacon(target + "/elements", "x"),
    () => new Promise((done) => { const s = new WebSocket(target.replace("http", "ws") + "/graphql");
                                  s.onopen = s.onerror = s.onclose = done; }),
  ];
  for (const each of tries) { try { await each(); } catch (error) { /* refused */ } }
  await new Promise((done) => setTimeout(done, 200));
}"""


@pytest.mark.parametrize(
    "authorization", ["", "Basic", "Basic \xff\xff", "Basic é", "Basic a", "Basic ====", "Basic /w==", "Bearer YTpi"]
)
def test_what_is_no_login_names_nobody(authorization: str) -> None:
    """A header that is not ASCII was a fault of the server, and counted as no wrong login."""
    assert basic_login(authorization) == ("", "")
    assert basic_login("Basic YTpi") == ("a", "b")


def test_a_browser_on_a_foreign_page_or_name_writes_nothing() -> None:
    """No-cors requests, beacons, images, WebSockets, and a name that is moved to this machine (DNS rebinding)."""
    own = Recorder()
    with served(gated(own, ())) as port, served(Recorder(b"<p>foreign page</p>")) as foreign_port:
        rules = "MAP evil.example 127.0.0.1"
        with opened(f"http://127.0.0.1:{foreign_port}", (800, 600), f"--host-resolver-rules={rules}") as page:
            page.goto("/")
            page.sees("foreign page")
            page.run(_ATTACKS, f"http://127.0.0.1:{port}")
            assert own.reached == []
        with opened(f"http://evil.example:{port}", (800, 600), f"--host-resolver-rules={rules}") as page:
            page.goto("/alerts")
            page.sees("SDA_HTTP_HOSTS")
            page.run(_ATTACKS, f"http://evil.example:{port}")
            assert own.reached == []
        with opened(f"http://127.0.0.1:{port}", (800, 600)) as page:
            page.goto("/")
            page.run(_ATTACKS, f"http://127.0.0.1:{port}")
    assert "POST /graphql" in own.reached and "WS /graphql" in own.reached, "its own page works"
    assert "GET /graphql" not in own.reached


@pytest.mark.parametrize(
    ("host", "writes", "anyone", "has_users"),
    [
        ("127.0.0.1", "", Role.ADMIN, False),
        ("webserver", "", Role.VIEWER, False),
        ("0.0.0.0", "true", Role.ADMIN, False),
        ("127.0.0.1", "true", Role.ADMIN, True),
    ],
)
def test_dagsters_command_serves_what_the_gate_makes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, writes: str, anyone: Role, has_users: bool
) -> None:
    """It calls a function of its own by name; if an update changes that, the gate would be open."""
    users_file(tmp_path)
    monkeypatch.setenv("SDA_HOME", str(tmp_path))
    monkeypatch.setenv("SDA_WEBSERVER_HOST", host)
    monkeypatch.setenv("SDA_WEBSERVER_WRITES", writes or "false")
    monkeypatch.setenv("SDA_WEBSERVER_USERS", str(tmp_path / "users.toml") if has_users else "")
    served_apps: list[Any] = []
    options: dict[str, Any] = {}

    def run(app: ASGIApp, **more: Any) -> None:
        served_apps.append(app)
        options.update(more)

    monkeypatch.setattr(uvicorn, "run", run)
    monkeypatch.setattr(cli, "log_action", lambda *_arguments: None)
    monkeypatch.setattr(cli, "create_app_from_workspace_process_context", lambda *_: pytest.fail("not gated"))
    monkeypatch.setattr(cli, "main", lambda: _host_as_dagster_does())
    monkeypatch.setattr(sys, "argv", [])
    webserver.main([])
    assert [type(app) for app in served_apps] == [HttpGate]
    assert (options["http"], options["limit_concurrency"]) == (DeadlineProtocol, webserver.MOST_CONNECTIONS)
    assert options["ws_max_size"] == webserver.MOST_BODY_BYTES == 2**18, "what a parser of queries reads in a second"
    text = asyncio.run(_asked(served_apps[0]))
    assert ("a login is needed" in text) is has_users
    assert ("may not stopSensor" in text) is (anyone is Role.VIEWER)


async def _asked(app: ASGIApp) -> str:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:3000") as client:
        return (await client.post("/graphql", headers=SAME, json=MUTATION)).text


def _host_as_dagster_does() -> None:
    with dg.instance_for_test() as instance, WorkspaceProcessContext(instance, None) as context:
        cli.host_dagster_ui_with_workspace_process_context(context, "127.0.0.1", 1, "", "error")
