"""A station that is called: reconnects, gives up, keeps its element set fresh, sends GOODBYE (F4)."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from sda_platform.edge import collector as collector_module
from sda_platform.edge.address import Address
from sda_platform.edge.collector import Collector
from sda_platform.edge.http_client import HttpBounds
from sda_platform.edge.sources.element_refresh import ElementRefresh
from sda_platform.edge.sources.source import SourceState
from sda_platform.edge.sources.station import GOODBYE, StationSource
from sda_platform.edge.supervision import Supervised
from sda_platform_tests.support.collectors import collecting, framed, payloads, telemetry, until
from sda_platform_tests.support.http_sources import TLE
from sda_platform_tests.support.warped_loop import reached, run_warped
from sda_platform_tests.unit.edge.servers import serving

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def station(*talks: Talk) -> AsyncIterator[Address]:
    """A station that speaks as the first of ``talks`` on the first connection, and so on, then hangs up."""
    left = list(talks)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if left:
            await left.pop(0)(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()


def called(collector: Collector, address: Address, **options: Any) -> StationSource:
    """A station source that runs within ``collector``; its pauses are a thousandth of the usual ones."""
    pauses = {"first_pause_s": 0.001, "longest_pause_s": 0.03, **options}
    source = StationSource("station", collector.services, address=address, **pauses)
    collector.supervised["station"] = Supervised(source)
    collector.supervised["station"].start()
    return source


def sends(data: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return talk


def test_a_lost_connection_is_called_again_and_nothing_lands_twice__F4(tmp_path: Path) -> None:
    farewell = asyncio.Event()
    said: list[bytes] = []

    async def last(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(telemetry(7, first=3), "big"))  # two of them again, after the reconnect
        said.append(await reader.read(-1))
        farewell.set()

    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector, station(sends(framed(telemetry(5), "big")), last) as address:
            source = called(collector, address)
            await until(lambda: collector.ledger.of_source("station").sealed == 10)
            await collector.supervised["station"].stop()
            async with asyncio.timeout(5):
                await farewell.wait()
            assert source.errors == {"duplicate": 2}
            steps = [text.partition(" in")[0].partition(",")[0] for text in source.transitions]
            assert steps == [
                "connecting", "connected", "reconnecting", "connecting", "connected", "disconnecting", "stopped",
            ]  # fmt: skip

    asyncio.run(scenario())
    assert payloads(tmp_path, "telemetry") == telemetry(10)
    assert said == [GOODBYE]


@pytest.fixture
def _no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector's own timers would be the only ones that the warped clock ever jumps to."""
    for name in ("_SAMPLE_S", "_BACKLOG_S"):
        monkeypatch.setattr(collector_module, name, 60.0)


def pauses_of(source: StationSource) -> list[float]:
    """The pauses of a station, from what it logged."""
    return [float(found[1]) for text in source.transitions if (found := re.match(r"reconnecting in ([0-9.]+) s", text))]


DOUBLING = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


@pytest.mark.usefixtures("_no_samples")
def test_pauses_double_up_to_30_s_and_a_silent_station_is_reported_after_5_minutes_and_called_on__F4_2_3(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            began_s = asyncio.get_running_loop().time()
            source = called(collector, Address("127.0.0.1", 9), first_pause_s=1.0, longest_pause_s=30.0)
            await reached(lambda: bool(collector.health))
            assert 300.0 <= asyncio.get_running_loop().time() - began_s < 340.0
            assert pauses_of(source)[:7] == pytest.approx(DOUBLING, rel=0.11)
            assert pauses_of(source)[:5] != DOUBLING[:5]  # with jitter (F4.40)
            await reached(lambda: len(source.transitions) == 64, within_s=7_200.0)
            assert source.state in (SourceState.RETRYING, SourceState.STARTING)
            assert collector.supervised["station"].restarts == 0

    run_warped(scenario())


@pytest.mark.usefixtures("_no_samples")
def test_after_a_drop_the_pauses_begin_anew_and_a_station_that_only_hangs_up_is_called_less_often__F4_32(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        talks = [sends(b""), sends(b""), sends(framed(telemetry(1), "big")), *[sends(b"")] * 3]
        async with collecting(tmp_path, {}) as collector, station(*talks) as address:
            source = called(collector, address, first_pause_s=1.0, longest_pause_s=30.0)
            await reached(lambda: len(pauses_of(source)) == 6)
            assert pauses_of(source) == pytest.approx([1.0, 2.0, 1.0, 2.0, 4.0, 8.0], rel=0.11)

    run_warped(scenario())


def test_a_stop_ends_the_pause_between_two_attempts__F4(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            source = called(collector, Address("127.0.0.1", 9), first_pause_s=3600.0, longest_pause_s=3600.0)
            await until(lambda: source.state is SourceState.RETRYING)
            async with asyncio.timeout(2):
                await collector.supervised["station"].stop()
            assert source.state is SourceState.STOPPED

    asyncio.run(scenario())


def refresh(answers: list[Response], tmp_path: Path) -> tuple[ElementRefresh, dict[str, int]]:
    """A pass during which the API gives ``answers``."""

    async def scenario() -> tuple[ElementRefresh, dict[str, int]]:
        left = list(answers)
        async with (
            serving(lambda request: left.pop(0) if left else Response(status_code=404)) as remote,
            collecting(tmp_path, {}) as collector,
        ):

            async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.read(-1)

            async with station(silent) as address:
                bounds = HttpBounds(first_pause_s=0.001, longest_pause_s=0.002)
                keeping = ElementRefresh(remote.url, 25_544, interval_s=0.001, bounds=bounds)
                source = called(collector, address, elements=keeping)
                await until(lambda: not left)
                await until(lambda: keeping.refreshed + source.errors["elements"] >= 1)
                await collector.supervised["station"].stop()
                assert all(request.url.path == "/tle/25544" for request in remote.asked)
                return keeping, dict(source.errors)

    return asyncio.run(scenario())


def tle(lines: tuple[str, str, str] = TLE) -> Response:
    return JSONResponse(dict(zip(("name", "line1", "line2"), lines, strict=True)))


def test_the_element_set_is_asked_for_at_the_start_and_lands__F4(tmp_path: Path) -> None:
    keeping, _ = refresh([Response(status_code=503), tle()], tmp_path)
    assert keeping.refreshed == 1
    assert payloads(tmp_path, "elements") == ["\n".join(TLE).encode()]


def test_a_wrong_element_set_is_refused_and_the_last_one_kept__F4(tmp_path: Path) -> None:
    other_object = (TLE[0], TLE[1].replace("25544", "25545"), TLE[2].replace("25544", "25545"))
    torn = (TLE[0], TLE[1][:-1] + str((int(TLE[1][-1]) + 1) % 10), TLE[2])
    _, errors = refresh([tle(), tle(other_object), tle(torn), Response("[]"), Response(status_code=404)], tmp_path)
    assert errors["elements"] >= 3
    assert payloads(tmp_path, "elements") == ["\n".join(TLE).encode()]
