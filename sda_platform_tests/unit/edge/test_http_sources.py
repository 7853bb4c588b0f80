"""Sources over HTTP: the optical archive, public catalogues, and what is requested again of a server that fails."""

import asyncio
import gzip
import json
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sda_platform.edge.collector import Collector
from sda_platform.edge.host_limits import HostLimits
from sda_platform.edge.http_client import HttpBounds, HttpClient, HttpFailed, HttpRefused, HttpTooLarge, HttpTooSlow
from sda_platform.edge.sources.optical import OpticalSource
from sda_platform.edge.sources.source import Source, SourceState
from sda_platform_tests.support.collectors import NOW_NS, collecting, log_text, payloads, until
from sda_platform_tests.support.http_sources import TLE, names, optical, pull, record
from sda_platform_tests.support.socket_sources import LINKS
from sda_platform_tests.unit.edge.servers import serving


def test_the_archive_is_polled_and_every_record_lands_once__DP1_F3_E6(tmp_path: Path) -> None:
    """Two records share a time, and one comes late with an older one: none is missed, none lands twice."""
    archive = [record(1, -20), record(2, -10)]

    def answer(request: Request) -> Response:
        since = int(request.query_params["since"])
        return JSONResponse([each for each in archive if each["timestamp_ns"] >= since])

    async def scenario() -> None:
        async with serving(answer) as remote, collecting(tmp_path, optical(remote.url)) as collector:
            await until(lambda: collector.ledger.of_source("archive").sealed == 2)
            archive.extend([record(3, -10), record(4, -25)])
            await until(lambda: collector.ledger.of_source("archive").sealed == 4)
            seen = len(remote.asked)
            await until(lambda: len(remote.asked) > seen + 2)
            assert int(remote.asked[-1].query_params["since"]) == NOW_NS - 70_000_000_000

    asyncio.run(scenario())
    assert names(tmp_path) == ["obs-1", "obs-2", "obs-3", "obs-4"]
    assert all(json.loads(line)["received_ns"] == NOW_NS for line in payloads(tmp_path, "optical"))


def test_the_mark_survives_a_restart__DP1_I12(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(lambda request: JSONResponse([record(1, -90), record(2, -10)])) as remote:
            async with collecting(tmp_path, optical(remote.url)) as collector:
                await until(lambda: collector.ledger.of_source("archive").sealed == 2)
                await until(lambda: len(remote.asked) > 1)
            remote.asked.clear()
            async with collecting(tmp_path, optical(remote.url)):
                await until(lambda: bool(remote.asked))
            assert int(remote.asked[0].query_params["since"]) == NOW_NS - 70_000_000_000

    asyncio.run(scenario())


def test_a_damaged_mark_stops_its_source_until_it_is_removed_and_no_other__DP2_F5(tmp_path: Path) -> None:
    (tmp_path / "collector").mkdir()
    (tmp_path / "collector" / "archive.mark.json").write_text("{")

    async def scenario() -> None:
        sources = {**optical("http://127.0.0.1:9"), **LINKS}
        async with collecting(tmp_path, sources) as collector:
            assert collector.supervised["links"].source.state is SourceState.RUNNING
            (problem,) = collector.health
            assert problem.startswith("source archive: ")
            assert "archive.mark.json: is no mark" in problem
            (tmp_path / "collector" / "archive.mark.json").unlink()
            source = collector.supervised["archive"].source
            await until(lambda: source.errors["failed_request"] > 0)  # nothing listens there: it asks

    asyncio.run(scenario())


def test_a_record_from_the_future_does_not_move_the_mark(tmp_path: Path) -> None:
    async def scenario() -> None:
        future = {**record(1), "timestamp_ns": NOW_NS + 10**18}
        async with serving(lambda request: JSONResponse([future, record(2, -1)])) as remote:
            async with collecting(tmp_path, optical(remote.url)) as collector:
                await until(lambda: len(remote.asked) > 3)
                assert collector.ledger.of_source("archive").sealed >= 2
            assert int(remote.asked[-1].query_params["since"]) == NOW_NS - 61_000_000_000

    asyncio.run(scenario())


def test_what_is_no_record_lands_and_is_counted__DP1_Q1(tmp_path: Path) -> None:
    odd: list[Any] = [7, {"obs_id": 3}, None, {"obs_id": "x", "timestamp_ns": True}]

    async def scenario() -> None:
        served = serving(lambda request: JSONResponse([*odd, record(1)]))
        async with served as remote, collecting(tmp_path, optical(remote.url)) as collector:
            await until(lambda: collector.ledger.of_source("archive").sealed >= 5)
            assert collector.supervised["archive"].source.errors["bad_record"] >= 4

    asyncio.run(scenario())
    assert payloads(tmp_path, "optical")[:1] == [b"7"]


def sent(answers: list[Callable[[], Response]], **changed: Any) -> tuple[list[float], int, "str | int"]:
    """Ask once with these answers, one after the other; returns pauses, number of requests, and status or error."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def scenario() -> tuple[list[float], int, str | int]:
        left = list(answers)
        bounds = HttpBounds(**{"first_pause_s": 0.001, "longest_pause_s": 20.0, "total_s": 5.0, **changed})
        client = HttpClient(bounds, sleep=sleep)
        async with serving(lambda request: left.pop(0)()) as remote:
            try:
                outcome: str | int = (await client.get(remote.url)).status
            except (HttpFailed, HttpRefused) as error:
                outcome = type(error).__name__
            finally:
                await client.close()
            return pauses, len(remote.asked), outcome

    return asyncio.run(scenario())


def status(code: int, **headers: str) -> Callable[[], Response]:
    return lambda: Response(status_code=code, headers=headers)


@pytest.mark.parametrize(
    ("answers", "requests", "outcome"),
    [
        ([status(200)], 1, 200),
        ([status(304)], 1, 304),
        ([status(503), status(200)], 2, 200),
        ([status(503)] * 3, 3, "HttpFailed"),
        ([status(429), status(200)], 2, 200),
        ([status(408), status(200)], 2, 200),
        ([status(404)], 1, "HttpRefused"),
        ([status(403)], 1, "HttpRefused"),
    ],
)
def test_what_passes_is_asked_again_and_nothing_else_is__F4(
    answers: list[Callable[[], Response]], requests: int, outcome: str | int
) -> None:
    assert sent(answers)[1:] == (requests, outcome)


def test_retry_after_is_honoured_up_to_the_cap__F4() -> None:
    headers = {"retry-after": "7"}
    pauses, _, _ = sent([status(429, **headers), status(503, **{"retry-after": "900"}), status(200)])
    assert pauses == [7.0, 20.0]


def test_an_answer_beyond_the_bound_is_refused() -> None:
    assert sent([lambda: Response(b"x" * 2_000)], max_bytes=1_000)[1:] == (1, "HttpTooLarge")


def test_nothing_listens_and_the_breaker_stops_asking__DP2_F7() -> None:
    async def scenario() -> None:
        client = HttpClient(HttpBounds(attempts=5, first_pause_s=0.0001, longest_pause_s=0.0002, connect_s=1.0))
        with pytest.raises(HttpFailed, match="Connect"):
            await client.get("http://127.0.0.1:9")
        with pytest.raises(HttpFailed, match="no request"):
            await client.get("http://127.0.0.1:9")
        await client.close()

    asyncio.run(scenario())


def test_a_catalogue_is_asked_conditionally_and_not_again_after_a_restart(tmp_path: Path) -> None:
    text = "\n".join(TLE) + "\n"

    async def scenario() -> None:
        def answer(request: Request) -> Response:
            if request.headers.get("If-None-Match") == '"v1"':
                return Response(status_code=304)
            return Response(text, headers={"ETag": '"v1"', "Last-Modified": "Fri, 01 Nov 2024 00:00:00 GMT"})

        async with serving(answer) as remote:
            async with collecting(tmp_path, pull(remote.url)) as collector:
                await until(lambda: collector.ledger.of_source("sets").sealed == 1)
            async with collecting(tmp_path, pull(remote.url)):
                await asyncio.sleep(0.05)
            assert len(remote.asked) == 1
            state = tmp_path / "collector" / "sets.pull.json"
            state.write_text(json.dumps({**json.loads(state.read_text()), "asked_s": 0.0}))  # two hours later
            (tmp_path / "collector" / "hosts.json").unlink()
            async with collecting(tmp_path, pull(remote.url)):
                await until(lambda: len(remote.asked) == 2)
            assert remote.asked[1].headers["If-Modified-Since"] == "Fri, 01 Nov 2024 00:00:00 GMT"

    asyncio.run(scenario())
    assert payloads(tmp_path, "elements") == ["\n".join(TLE).encode()]


def is_waiting(source: Source) -> bool:
    return source.state in (SourceState.RETRYING, SourceState.RUNNING)


def test_a_catalogue_that_asks_for_a_pause_has_it_across_restarts__F4_41(tmp_path: Path) -> None:
    """CelesTrak and Space-Track lock out clients that go on asking: one request, and the next when they allow it."""

    async def scenario() -> None:
        refuse = serving(lambda request: Response(status_code=429, headers={"Retry-After": "7200"}))
        async with refuse as remote:
            options = pull(remote.url, interval_s=3_600)
            for _ in range(2):
                began_s = time.time()
                async with collecting(tmp_path, options) as collector:
                    await until(partial(is_waiting, collector.supervised["sets"].source))
                assert len(remote.asked) == 1
            held = json.loads((tmp_path / "collector" / "sets.pull.json").read_text())
            assert held["asked_s"] + 3_600 == pytest.approx(began_s + 7_200, abs=30)

    asyncio.run(scenario())


def test_sources_of_one_host_share_its_limit_across_restarts__F4_41(tmp_path: Path) -> None:
    """The pause that the server asks of one source holds for the other one, which has never asked."""

    async def scenario() -> None:
        refuse = serving(lambda request: Response(status_code=429, headers={"Retry-After": "7200"}))
        async with refuse as remote:
            first = pull(remote.url)
            second = {
                "messages": {**first["sets"], "url": f"{remote.url}/cdm", "zone": "messages", "format": "cdm-kvn"}
            }
            async with collecting(tmp_path, first) as collector:
                await until(partial(is_waiting, collector.supervised["sets"].source))
            async with collecting(tmp_path, {**first, **second}) as collector:
                await until(partial(is_waiting, collector.supervised["messages"].source))
            assert len(remote.asked) == 1

    asyncio.run(scenario())


def test_the_requests_to_a_host_are_apart_and_other_hosts_are_not_held__F4_41(tmp_path: Path) -> None:
    limits = HostLimits(tmp_path, spacing_s=12.0)
    assert limits.wait_s("a", 1_000.0) == 0.0
    limits.take("a", 1_000.0, requests=2)
    assert HostLimits(tmp_path).wait_s("a", 1_004.0) == 20.0
    assert limits.wait_s("b", 1_004.0) == 0.0
    limits.put_off("a", 1_004.0, 7_200.0)
    limits.put_off("a", 1_005.0, 5.0)  # a shorter pause does not end a longer one
    assert limits.wait_s("a", 1_004.0) == 7_200.0
    assert limits.wait_s("a", -1e9) == 86_400.0
    (tmp_path / "hosts.json").write_text("{")
    assert limits.wait_s("a", 1_004.0) == 0.0


def test_a_login_comes_first_and_its_secrets_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPACETRACK_USER", "anna")
    monkeypatch.setenv("SPACETRACK_PASSWORD", "s3cret")

    async def scenario() -> str:
        def answer(request: Request) -> Response:
            if request.url.path == "/ajaxauth/login":
                return Response(headers={"Set-Cookie": "session=1; Path=/"})
            is_known = request.cookies.get("session") == "1"
            return Response("\n".join(TLE) + "\n") if is_known else Response(status_code=401)

        async with serving(answer) as remote, collecting(tmp_path, pull(remote.url, login="space-track")) as collector:
            await until(lambda: collector.ledger.of_source("sets").sealed == 1)
            assert [request.method for request in remote.asked] == ["POST", "GET"]
            assert await remote.asked[0].body() == b"identity=anna&password=s3cret"
            return log_text(collector)

    assert "s3cret" not in asyncio.run(scenario())


def test_a_missing_password_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACETRACK_USER", raising=False)
    monkeypatch.delenv("SPACETRACK_PASSWORD", raising=False)

    async def scenario() -> None:
        served = serving(lambda request: Response())
        async with served as remote, collecting(tmp_path, pull(remote.url, login="space-track")) as collector:
            source = collector.supervised["sets"].source
            await until(lambda: "SPACETRACK_USER and SPACETRACK_PASSWORD" in source.detail)
            assert remote.asked == []
            assert source.state is SourceState.FAILED

    asyncio.run(scenario())


def test_an_optical_source_keeps_progress() -> None:
    assert OpticalSource.is_stateful


def test_a_page_instead_of_a_catalogue_is_refused_before_it_lands_and_asked_for_again__41(tmp_path: Path) -> None:
    """As a server answers that is under maintenance, or has no data: with status 200."""
    answers = [b"<html><body>maintenance</body></html>", b"No GP data found", "\r\n".join(TLE).encode() + b"\r\n"]
    logs: list[str] = []

    async def scenario() -> None:
        def answer(request: Request) -> Response:
            number = len(logs)
            return Response(answers[number], headers={"etag": f'"{number}"'})

        state = tmp_path / "collector" / "sets.pull.json"
        async with serving(answer) as remote:
            for number in range(len(answers)):
                async with collecting(tmp_path, pull(remote.url)) as collector:
                    is_landed = number == len(answers) - 1
                    done = partial(_is_settled, collector, is_landed=is_landed)
                    await until(done)
                logs.append(log_text(collector))
                state.write_text(json.dumps({**json.loads(state.read_text()), "asked_s": 0.0}))  # an interval later
                (tmp_path / "collector" / "hosts.json").unlink()
            assert [each.headers.get("if-none-match") for each in remote.asked] == [None] * 3, "no known state"

    asyncio.run(scenario())
    assert payloads(tmp_path, "elements") == ["\n".join(TLE).encode()]
    assert "the document begins with 'No GP data found', like none of omm-csv" in logs[1]


def _is_settled(collector: Collector, *, is_landed: bool) -> bool:
    return collector.ledger.of_source("sets").sealed == 1 if is_landed else "document refused" in log_text(collector)


def test_an_answer_in_another_format_of_the_zone_is_landed_as_what_it_is__41(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(lambda _: Response("\n".join(TLE).encode() + b"\n")) as remote:
            sources = pull(remote.url, format="omm-csv")
            async with collecting(tmp_path, sources) as collector:
                await until(lambda: collector.ledger.of_source(next(iter(sources))).sealed == 1)

    asyncio.run(scenario())
    assert payloads(tmp_path, "elements") == ["\n".join(TLE).encode()]


@pytest.mark.parametrize("given_s", [None, 0.05])
def test_an_answer_that_never_comes_is_waited_for_no_longer_than_allowed(given_s: float | None) -> None:
    async def never(_request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")

    async def scenario() -> None:
        allowed_s = 0.05 if given_s is None else 60.0
        bounds = HttpBounds(attempts=1, total_s=allowed_s, first_pause_s=0.001, longest_pause_s=1.0)
        client = HttpClient(bounds)
        client._client._transport = httpx.MockTransport(never)
        client._client._mounts = {}
        with pytest.raises(HttpTooSlow):
            await client.get("http://127.0.0.1:9/x", total_s=given_s)
        await client.close()

    asyncio.run(asyncio.wait_for(scenario(), 30.0))


_ZEROS = bytes(2**26)
_BOMBS = {
    "gzip of gzip": (gzip.compress(gzip.compress(_ZEROS)), "gzip, gzip", HttpRefused),
    "zstd": (b"never expanded", "zstd", HttpRefused),
    "gzip": (gzip.compress(_ZEROS), "gzip", HttpTooLarge),
    "no gzip": (b"plain", "gzip", HttpFailed),
    "part of a gzip": (gzip.compress(b"a" * 10**5)[:-9], "gzip", HttpFailed),
}


@pytest.mark.parametrize("which", _BOMBS)
def test_an_answer_that_expands_is_bounded_while_it_does__S6(which: str) -> None:
    body, encoding, expected = _BOMBS[which]

    async def scenario() -> None:
        bounds = HttpBounds(attempts=1, total_s=30.0, first_pause_s=0.001, longest_pause_s=1.0, max_bytes=2**20)
        client = HttpClient(bounds)
        answer = Response(body, headers={"Content-Encoding": encoding})
        async with serving(lambda _: answer) as remote:
            with pytest.raises(expected):
                await client.get(remote.url)
            assert remote.asked[0].headers["accept-encoding"] == "gzip"
        await client.close()

    tracemalloc.start()
    try:
        asyncio.run(scenario())
        assert tracemalloc.get_traced_memory()[1] < 2**24, "never as much as it expands to"
    finally:
        tracemalloc.stop()


def test_gzip_of_several_members_is_read_whole() -> None:
    async def scenario() -> bytes:
        client = HttpClient(HttpBounds(attempts=1, total_s=5.0, first_pause_s=0.001, longest_pause_s=1.0))
        answer = Response(gzip.compress(b"a" * 10**6) + gzip.compress(b"b"), headers={"Content-Encoding": "gzip"})
        async with serving(lambda _: answer) as remote:
            content = (await client.get(remote.url)).content
        await client.close()
        return content

    assert asyncio.run(scenario()) == b"a" * 10**6 + b"b"
