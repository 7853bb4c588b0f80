"""What clients can make the endpoint hold is bounded: bodies, answers on their way, and answers that are kept."""

import asyncio
import threading
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from sda_platform.serving.bodies import Bodies, bodies_of_logins
from sda_platform.serving.bounded_answers import BoundedAnswers
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.kept_answers import KeptAnswers
from sda_platform.serving.requests import AT_ONCE, BadRequest, TooSlow
from sda_platform.serving.source import Rows
from sda_platform_tests.unit.serving.interleavings import World, asked, world

SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "path": "/elements", "query_string": b"", "headers": []}


def stalled(received: list[bytes], peer: str = "192.0.2.1") -> Request:
    """A request whose body stops after ``received``."""

    async def receive() -> dict[str, Any]:
        if received:
            return {"type": "http.request", "body": received.pop(0), "more_body": True}
        await asyncio.Event().wait()
        raise AssertionError

    return Request({**SCOPE, "client": (peer, 1)}, receive)


def whole(body: bytes, peer: str = "192.0.2.1") -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**SCOPE, "client": (peer, 1)}, receive)


async def taken(bodies: Bodies, request: Request) -> int:
    async with bodies.received(request) as body:
        return len(body)


def test_bodies_are_bounded_together_and_each_has_a_deadline__44() -> None:
    async def scenario() -> None:
        bodies, parts = Bodies(160, within_s=1e-3), [[b"x" * 40], [b"x" * 40]]
        waiting = [asyncio.ensure_future(taken(bodies, stalled(each))) for each in parts]
        while any(parts):
            await asyncio.sleep(0)
        with pytest.raises(Busy, match="other requests"):
            await taken(bodies, whole(b"x"))
        assert await taken(bodies, whole(b"x" * 40, "192.0.2.2")) == 40, "another peer has a share"
        for each in waiting:
            with pytest.raises(TooSlow, match="did not arrive within"):
                await each
        assert await taken(bodies, whole(b"x" * 80)) == 80, "what was held is free again"

    asyncio.run(scenario())


def test_a_login_is_small_whoever_sends_it() -> None:
    async def scenario() -> None:
        assert await taken(bodies_of_logins(), whole(b"x" * 4096)) == 4096
        with pytest.raises(BadRequest, match=r"larger than 4,096 bytes$"):
            await taken(bodies_of_logins(), whole(b"x" * 4097))

    asyncio.run(scenario())


def test_answers_on_their_way_are_bounded_and_equal_ones_count_once__44() -> None:
    body, other = b"a" * 300_000, b"b" * 300_000

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(body if scope["path"] == "/same" else other)(scope, receive, send)

    async def scenario() -> None:
        nonlocal other
        bounded, free = BoundedAnswers(app, most_bytes=800_000), asyncio.Event()

        async def ask(path: str, *, is_stalled: bool, peer: str = "192.0.2.1") -> list[Any]:
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)
                if is_stalled and len(sent) > 1:
                    await free.wait()

            scope = {**SCOPE, "path": path, "method": "GET", "client": (peer, 1)}
            await bounded(scope, stalled([]).receive, send)
            return sent

        slow = [asyncio.ensure_future(ask("/same", is_stalled=True)) for _ in range(100)]
        await asyncio.sleep(0)
        assert bounded.bytes_leaving == len(body), "a hundred clients share its bytes"
        assert (await ask("/other", is_stalled=False))[0]["status"] == 503
        other = b"b" * 200_000
        assert (await ask("/other", is_stalled=False, peer="192.0.2.2"))[0]["status"] == 200, "it has a share"
        free.set()
        for sent in await asyncio.gather(*slow):
            assert b"".join(each["body"] for each in sent[1:]) == body
            assert [each["more_body"] for each in sent[1:]] == [True] * 4 + [False]
        assert bounded.bytes_leaving == 0
        assert (await ask("/other", is_stalled=False))[0]["status"] == 200

    asyncio.run(scenario())


def test_a_peer_that_asks_for_much_holds_no_thread_of_others() -> None:
    """Sixty requests at once, each of which takes long, were more than the server has threads."""
    place: World
    begun, may_end = list[int](), threading.Event()

    def slow(_as_of_ns: int | None = None) -> Rows:
        begun.append(1)
        assert may_end.wait(30)
        return []

    def client(peer: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=place.app, client=(peer, 1))
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=30)

    async def scenario() -> None:
        async with client("2001:db8::1") as greedy, client("2001:db8::2") as same, client("2001:db8:1::1") as other:
            sent = [asyncio.ensure_future((greedy, same)[n % 2].get("/alerts")) for n in range(60)]
            assert (await other.get("/objects")).status_code == 200
            assert len(begun) <= AT_ONCE
            may_end.set()
            assert {(await each).status_code for each in sent} == {200}

    with world(in_threads=True) as place, patch.object(place.source, "alerts", slow):
        asyncio.run(scenario())
    assert len(begun) == 60


def test_a_large_answer_is_made_once_for_all_that_ask_meanwhile__44() -> None:
    answers, made, begun = KeptAnswers(100_000), [], threading.Event()

    def make() -> Response:
        made.append(1)
        begun.wait(10)
        return Response(b"x" * 60_000, headers={"X-Left-Out": "1"})

    found: list[Response] = []
    threads = [threading.Thread(target=lambda: found.append(answers.answer("t", make, "s", ("/a",)))) for _ in range(4)]
    for each in threads:
        each.start()
    begun.set()
    for each in threads:
        each.join()
    assert (len(made), {(len(each.body), each.headers["x-left-out"]) for each in found}) == (1, {(60_000, "1")})
    answers.answer("u", lambda: Response(b"y" * 60_000), "s", ("/b",))
    assert answers.known("s", ("/a",)) is None, "the bound let the older one go"
    answers.answer("t", make, "s", ("/a",))
    assert len(made) == 2
    answers.answer("v", lambda: Response(b"small"), "s", ("/c",))
    again = answers.answer("v", lambda: Response(b"other"), "s", ("/c",))
    assert again.body == b"other" and answers.known("s", ("/c",)) is None, "small answers are not kept"


def test_a_large_answer_is_known_by_what_was_asked_of_which_state__44() -> None:
    answers, large = KeptAnswers(), Response(b"x" * 60_000)
    answers.answer("t", lambda: large, "s1", ("/a", "csv"))
    answers.answer("t", pytest.fail, "s1", ("/a", "any"))
    assert [answers.may_know(each) for each in (("/a", "csv"), ("/a", "any"), ("/b", "csv"))] == [True, True, False]
    (tag, found), other = answers.known("s1", ("/a", "any")) or ("", Response()), answers.known("s2", ("/a", "any"))
    assert (tag, found.body, other) == ("t", large.body, None)


def test_a_kept_answer_is_never_of_an_older_state__44() -> None:
    place: World
    with world() as place:
        place.source.commit(*({**place.source.sets[0], "norad_id": number} for number in range(100, 400)))
        place.live.refresh()
        bodies = []
        for _ in range(3):
            bodies += [asked(place.app, "/objects").body, asked(place.app, "/objects").body]
            place.write("put")
        assert bodies[0::2] == bodies[1::2]
        assert len(set(bodies)) == 3


def test_a_kept_page_waits_for_the_reader_of_its_view_in_a_thread_alone__44() -> None:
    """In the event loop it would hold up every connection."""
    place: World
    is_read, may_end = threading.Event(), threading.Event()

    def read(snapshot: str) -> None:
        with place.live.kept.view(snapshot):
            is_read.set()
            may_end.wait(20)

    async def scenario() -> None:
        transport = httpx.ASGITransport(app=place.app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            client.headers["accept-encoding"] = "identity"
            page = (await client.get("/objects?limit=300")).links["next"]["url"]
            assert len((await client.get(page)).content) > 2**15, "it is kept"
            reader = threading.Thread(target=read, args=(parse_qs(urlsplit(page).query)["snapshot"][0],))
            reader.start()
            assert is_read.wait(20)
            waiting = asyncio.ensure_future(client.get(page))
            for _ in range(20):
                await asyncio.sleep(0)  # these requests alone would never let the other begin
                assert (await client.get("/objects/100")).status_code == 200
            assert reader.is_alive() and not waiting.done()
            may_end.set()
            assert (await waiting).status_code == 200
            reader.join()

    with world(in_threads=True) as place:
        place.source.commit(*({**place.source.sets[0], "norad_id": number} for number in range(100, 900)))
        place.live.refresh()
        asyncio.run(scenario())


def test_further_pages_follow_an_answer_that_was_kept__44() -> None:
    place: World
    with world() as place:
        place.source.commit(*({**place.source.sets[0], "norad_id": number} for number in range(100, 900)))
        place.live.refresh()
        pages = [asked(place.app, "/objects?limit=300").headers["link"] for _ in range(3)]
        assert len(set(pages)) == 1
        place.write("put")
        assert asked(place.app, pages[0].partition("<")[2].partition(">")[0]).status == 200
