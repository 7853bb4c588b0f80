"""Where a collector's requests may go: a partner's answer leads to no other server and to no service here."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sda_platform.edge.http_client import (
    HttpBounds,
    HttpClient,
    HttpFailed,
    HttpRefused,
    _is_same_server,
    _judged,
    _JudgedTransport,
)
from sda_platform_tests.unit.edge.servers import Remote, serving

ONCE = HttpBounds(attempts=1)


async def asked(url: str, *, form: dict[str, str] | None = None, internal: tuple[str, ...] = ()) -> bytes:
    client = HttpClient(ONCE, internal=internal)
    try:
        return (await (client.post(url, form) if form else client.get(url))).content
    finally:
        await client.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("form", [None, {"identity": "me", "password": "secret"}], ids=["get", "login"])
@pytest.mark.parametrize("target", ["graphql?query=mutation{stopSensor}", ""])
def test_a_redirect_to_another_server_is_refused_and_nothing_reaches_it__S2(
    status: int, form: dict[str, str] | None, target: str
) -> None:
    async def play() -> list[Request]:
        async with AsyncExitStack() as stack:
            inner: Remote = await stack.enter_async_context(serving(lambda _request: Response("reached")))
            answer = RedirectResponse(f"{inner.url}/{target}", status)
            partner = await stack.enter_async_context(serving(lambda _request: answer))
            with pytest.raises(HttpRefused, match="redirects to another server"):
                await asked(f"{partner.url}/archive", form=form)
            return inner.asked

    assert asyncio.run(play()) == []


def test_a_redirect_at_the_same_server_is_followed_three_times() -> None:
    async def play(steps: int) -> bytes:
        def answer(request: Request) -> Response:
            step = int(request.url.path.strip("/"))
            return RedirectResponse(f"/{step + 1}") if step < steps else Response(f"after {step}")

        async with serving(answer) as partner:
            return await asked(f"{partner.url}/0")

    assert asyncio.run(play(3)) == b"after 3"
    with pytest.raises(HttpRefused, match="more than 3 times"):
        asyncio.run(play(4))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Addresses by name, as a partner's own name server answers."""
    known: dict[str, str] = {}

    async def resolve(_loop: object, host: str, port: int, **_options: object) -> list[object]:
        if host not in known:
            raise OSError(-2, "Name or service not known")
        return [(2, 1, 6, "", (known[host], port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    yield known


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.0.1",
        "::1",
        "169.254.169.254",
        "fe80::1%eth0",
        "0.0.0.0",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
    ],
)
def test_a_name_that_resolves_to_this_machine_is_refused__S2(names: dict[str, str], address: str) -> None:
    names["archive.partner.example"] = address
    with pytest.raises(HttpRefused, match="which is this machine"):
        asyncio.run(asked("http://archive.partner.example:3000/graphql"))


@pytest.mark.parametrize(
    "address", ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1"]
)
def test_a_name_in_a_private_network_is_refused_unless_it_is_declared__S2(names: dict[str, str], address: str) -> None:
    names["archive.partner.example"] = address
    for internal in ((), ("partner.example",)):
        with pytest.raises(HttpRefused, match="internal_names"):
            asyncio.run(asked("http://archive.partner.example:3000/graphql", internal=internal))
    url = httpx.URL("http://archive.partner.example/x")
    assert asyncio.run(_judged(url, {"archive.partner.example"})) == [address]
    names["archive"] = address
    assert asyncio.run(_judged(httpx.URL("http://archive/x"), ())) == [address]


def test_the_address_that_was_judged_is_the_one_that_is_connected_to__S2(names: dict[str, str]) -> None:
    """A name server may answer otherwise a moment later; a certificate is still that of the name."""
    names["archive.partner.example"] = "93.184.215.14"
    reached: list[httpx.Request] = []

    def record(request: httpx.Request) -> httpx.Response:
        names["archive.partner.example"] = "127.0.0.1"
        reached.append(request)
        return httpx.Response(200)

    async def play() -> None:
        transport = _JudgedTransport(httpx.MockTransport(record), ())
        async with httpx.AsyncClient(transport=transport) as client:
            await client.get("https://archive.partner.example/x")
            with pytest.raises(HttpRefused, match="which is this machine"):
                await client.get("https://archive.partner.example/x")

    asyncio.run(play())
    assert [request.url.host for request in reached] == ["93.184.215.14"]
    assert reached[0].headers["host"] == "archive.partner.example"
    assert reached[0].extensions["sni_hostname"] == "archive.partner.example"


def test_the_next_address_is_tried_where_one_does_not_answer(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(_loop: object, _host: str, port: int, **_options: object) -> list[object]:
        return [(2, 1, 6, "", (place, port)) for place in ("2001:4860::1", "93.184.215.14", "93.184.215.14")]

    assert names == {}
    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    reached: list[str] = []

    def record(request: httpx.Request) -> httpx.Response:
        reached.append(request.url.host)
        if ":" in request.url.host:
            raise httpx.ConnectError("no route")
        return httpx.Response(200)

    async def play() -> None:
        transport = _JudgedTransport(httpx.MockTransport(record), ())
        async with httpx.AsyncClient(transport=transport) as client:
            assert (await client.post("http://archive.partner.example/x", data={"a": "b"})).status_code == 200

    asyncio.run(play())
    assert reached == ["2001:4860::1", "93.184.215.14"]


def test_an_unknown_name_may_be_known_later(names: dict[str, str]) -> None:
    with pytest.raises(HttpFailed, match=r"nowhere\.example"):
        asyncio.run(asked("http://nowhere.example/"))


@pytest.mark.parametrize(
    ("first", "then", "is_followed"),
    [
        ("http://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "http://a.example/x", False),
        ("http://a.example:8080/x", "https://a.example/x", False),
        ("https://a.example/x", "https://a.example:3000/x", False),
        ("https://a.example/x", "https://b.a.example/x", False),
        ("https://a.example/x", "https://A.example/y?z", True),
    ],
)
def test_a_server_is_its_scheme_name_and_port(first: str, then: str, is_followed: bool) -> None:
    assert _is_same_server(httpx.URL(first), httpx.URL(then)) is is_followed
