"""Only a wrong configuration ends a source: all else passes, is visible meanwhile, and it continues by itself."""

import asyncio
import errno
import gzip
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.edge import collector as collector_module
from sda_platform.edge import supervision
from sda_platform.edge.address import Address
from sda_platform.edge.collector import Collector
from sda_platform.edge.sources.source import Source, SourceFailed, SourceMisconfigured, SourceState
from sda_platform.edge.supervision import RECOVERED_S, Supervised
from sda_platform.lake import durable
from sda_platform.landing import contents
from sda_platform.landing.lander import Lander
from sda_platform.resilience import pause_s, retry_after_s
from sda_platform_tests.support.collectors import beacons, collecting, framed, log_text, payloads, radar_frames
from sda_platform_tests.support.file_sources import SETS, folder
from sda_platform_tests.support.socket_sources import LINKS, RADAR, connect, ended, sealed, send_datagrams
from sda_platform_tests.support.warped_loop import reached, run_warped


@pytest.fixture(autouse=True)
def _no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector's own timers would be the only ones that the warped clock ever jumps to."""
    for name in ("_SAMPLE_S", "_BACKLOG_S"):
        monkeypatch.setattr(collector_module, name, 60.0)


class Failing(Source):
    """Fails ``failures`` times with ``error``, then runs."""

    kind = zone = "radar"

    def __init__(self, collector: Collector, error: BaseException | None, failures: int) -> None:
        super().__init__("failing", collector.services)
        self.error, self.left = error, failures
        self.started_s: list[float] = []

    async def run(self) -> None:
        self.started_s.append(asyncio.get_running_loop().time())
        if self.left:
            self.left -= 1
            if self.error is not None:
                raise self.error
            return
        self.works()
        await self.stopping.wait()


def supervised(collector: Collector, source: Source) -> Supervised:
    collector.supervised[source.name] = each = Supervised(source)
    each.start()
    return each


PASSING = [
    SourceFailed("the archive answers HTML"),
    OSError(errno.ENOSPC, "No space left on device"),
    RecursionError("too deep"),
    KeyError("x"),
    None,
]


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_a_source_that_fails_is_started_again_after_growing_pauses_up_to_a_minute__DP2_F5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    draws = count()
    monkeypatch.setattr(supervision, "pause_s", lambda n, **given: pause_s(n, **{**given, "seed": f"{next(draws)}"}))

    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            source = Failing(collector, error, 18)
            each = supervised(collector, source)
            await reached(lambda: len(source.started_s) >= 15)
            assert source.state is not SourceState.FAILED
            (problem,) = collector.health
            assert str(error or "ended by itself").strip("'") in problem
            await reached(lambda: source.state is SourceState.RUNNING and each.restarts == 18)
            pauses = [after - before for before, after in zip(source.started_s, source.started_s[1:], strict=False)]
            assert pauses[0] < 0.4
            assert 10.0 < max(pauses) <= 61.0
            await asyncio.sleep(300.0 if isinstance(error, Exception) else RECOVERED_S)
            assert collector.health == []

    run_warped(scenario())


def test_a_program_fault_is_logged_and_on_the_health_page_at_once__DP2_F4(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            source = Failing(collector, ZeroDivisionError("division by zero"), 1)
            supervised(collector, source)
            await reached(lambda: source.state is SourceState.RUNNING)
            assert collector.health == ["source failing: fault of the program: ZeroDivisionError: division by zero"]
            assert "Traceback" in log_text(collector)

    run_warped(scenario())


def test_a_wrong_configuration_is_final_and_shown_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            source = Failing(collector, SourceMisconfigured("set PASSWORD in the environment"), 1)
            each = supervised(collector, source)
            await reached(lambda: source.state is SourceState.FAILED)
            await asyncio.sleep(3600.0)
            assert (len(source.started_s), each.restarts) == (1, 0)
            assert collector.health == ["source failing: set PASSWORD in the environment"]

    run_warped(scenario())


def test_a_port_that_is_taken_is_bound_once_it_is_free__DP2_F5(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            late = {"radar-b": {"kind": "radar", "bind": f"127.0.0.1:{taken.getsockname()[1]}"}}
            async with collecting(tmp_path, {**RADAR, **late}) as collector:
                source = collector.supervised["radar-b"].source
                await asyncio.sleep(600.0)
                assert source.state is SourceState.RETRYING
                (problem,) = collector.health
                assert "radar-b" in problem
                assert "Address already in use" in problem
                send_datagrams(collector, "radar-a", radar_frames(1))
                await sealed(collector, "radar-a", 1)
                taken.close()
                await reached(lambda: source.state is SourceState.RUNNING)

    run_warped(scenario())


def test_what_one_connection_brings_ends_no_other__F1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, LINKS) as collector:
            source = collector.supervised["links"].source
            _, good = await connect(collector, "links")
            good.write(framed(beacons(1)))
            await sealed(collector, "links", 1)
            with monkeypatch.context() as broken:
                broken.setattr(source._intake, "split", lambda _: 1 / 0)  # type: ignore[attr-defined]
                reader, bad = await connect(collector, "links")
                bad.write(framed(beacons(1)))
                await ended(reader)
            assert collector.health == ["source links: fault of the program: ZeroDivisionError: division by zero"]
            good.write(framed(beacons(3)[1:]))
            await sealed(collector, "links", 3)
            assert (source.state, source.errors["fault"]) == (SourceState.RUNNING, 1)
            good.close()

    asyncio.run(scenario())


def refusing(number: int) -> Callable[..., Any]:
    def refuse(*_args: Any, **_options: Any) -> Any:
        raise OSError(number, errno.errorcode[number])

    return refuse


@pytest.mark.parametrize(
    ("where", "number"),
    [("sealing", errno.ENOSPC), ("reading", errno.EIO), ("progress", errno.EMFILE)],
)
def test_a_file_stays_while_our_disk_refuses_and_lands_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, where: str
) -> None:
    """A partner's good file is never refused for it, and the files beside it land."""
    drop = tmp_path / "drop"
    places = {"sealing": (durable, "create"), "progress": (durable, "write"), "reading": (contents, "_unpacked")}

    async def scenario() -> None:
        async with collecting(tmp_path, folder(drop)) as collector:
            source = collector.supervised["partners"].source
            with monkeypatch.context() as broken:
                broken.setattr(*places[where], refusing(number))
                (drop / "sets.tle.gz").write_bytes(gzip.compress(SETS))
                await reached(lambda: bool(collector.health) and source.errors["not_stored"] > 3)
                assert (source.state, (drop / "sets.tle.gz").exists()) == (SourceState.RETRYING, True)
                (problem,) = collector.health
                assert "sets.tle.gz: not landed yet" in problem
                assert errno.errorcode[number] in problem
            await reached(lambda: (drop.with_name("drop-done") / "landed" / "sets.tle.gz").exists())
            await reached(lambda: source.state is SourceState.RUNNING)
            assert collector.health == []

    run_warped(scenario())
    assert payloads(tmp_path, "elements") == [SETS.strip()]
    assert list((drop.with_name("drop-done") / "refused").iterdir()) == []


def test_a_file_that_cannot_be_read_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop, land = tmp_path / "drop", Lander.land

    def some(lander: Lander, path: Path, **options: Any) -> Any:
        if path.name == "a.tle":
            raise OSError(errno.EIO, "Input/output error", str(path))
        if path.name == "b.tle":
            raise ValueError("a fault of ours")
        return land(lander, path, **options)

    monkeypatch.setattr(Lander, "land", some)

    async def scenario() -> None:
        async with collecting(tmp_path, folder(drop)) as collector:
            for name in ("a.tle", "b.tle", "c.tle"):
                (drop / name).write_bytes(SETS)
            await reached(lambda: (drop.with_name("drop-done") / "landed" / "c.tle").exists())
            await asyncio.sleep(60.0)
            assert {path.name for path in drop.glob("*.tle")} == {"a.tle", "b.tle"}
            (problem,) = collector.health
            assert "a fault of ours" in problem

    run_warped(scenario())


def test_a_file_that_its_sender_takes_back_or_still_writes_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop, land = tmp_path / "drop", Lander.land
    seen = []

    def change(lander: Lander, path: Path, **options: Any) -> Any:
        seen.append(path)
        if path.name == "gone.tle":
            (drop / path.name).unlink()
        elif len(seen) < 4:
            monkeypatch.setattr("sda_platform.landing.partner_files.stamp_of", lambda _: (len(seen), object(), 0))
        else:
            monkeypatch.undo()
        return land(lander, path, **options)

    monkeypatch.setattr(Lander, "land", change)

    async def scenario() -> None:
        async with collecting(tmp_path, folder(drop)) as collector:
            (drop / "gone.tle").write_bytes(SETS)
            (drop / "grows.tle").write_bytes(SETS)
            await reached(lambda: (drop.with_name("drop-done") / "landed" / "grows.tle").exists())
            assert collector.supervised["partners"].source.errors == {}
            assert collector.health == []

    run_warped(scenario())
    assert list((drop.with_name("drop-done") / "refused").iterdir()) == []


@pytest.mark.parametrize(
    "header", ["²", "١٢", "9" * 400, "Mon, 01 Jan 99999 00:00:00 GMT", "0" * 5_000, "-1", ",", "Mon,"]
)
def test_no_text_of_retry_after_is_a_fault(header: str) -> None:
    assert 0.0 <= retry_after_s(header, now=datetime(2026, 1, 1, tzinfo=UTC), cap_s=60.0) <= 60.0


@given(st.text(max_size=60) | st.from_regex(r"\A\w{3}, \d{1,6} \w{3} \d{1,9} [\d:]{0,12} [+-]?\d{0,9}\Z"))
def test_any_text_of_retry_after_is_bounded(header: str) -> None:
    assert 0.0 <= retry_after_s(header, now=datetime(2026, 1, 1, tzinfo=UTC), cap_s=60.0) <= 60.0


def test_an_address_with_other_digits_is_refused_as_one() -> None:
    with pytest.raises(ValueError, match="is no address"):
        Address.parse("host:²")
