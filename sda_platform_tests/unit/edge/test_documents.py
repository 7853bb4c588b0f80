"""Documents and files of partners: read by a process of their own, within bounds, never below the free-space floor."""

import asyncio
import bz2
import gzip
import io
import lzma
import os
import shutil
import signal
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from starlette.responses import JSONResponse, Response

from sda_platform.clock import MissionClock
from sda_platform.edge.metrics import CollectorMetrics
from sda_platform.edge.sources import documents
from sda_platform.edge.workers import DEADLINE_S, ProcessExecutor, Worker
from sda_platform.formats.cutting import split_records
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.segments import Sender
from sda_platform.landing.lander import Lander
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.collectors import NOW_NS, beacons, collecting, framed, landed, payloads, until
from sda_platform_tests.support.file_sources import SETS, UPLOAD, folder, post
from sda_platform_tests.support.http_sources import optical, pull, record
from sda_platform_tests.support.socket_sources import LINKS, connect, sealed
from sda_platform_tests.unit.edge.servers import serving

CLOCK = MissionClock(NOW_NS, 0, 0.0)
Usage = namedtuple("Usage", "total used free")


class Noting(Worker):
    """Notes in which process each task ran."""

    processes: ClassVar[set[int]] = set()

    async def run(self, function: Any, *args: Any, **options: Any) -> Any:
        pid, result = await super().run(_with_pid, function, *args, **options)
        self.processes.add(pid)
        return result


def _with_pid(function: Any, *args: Any, **options: Any) -> tuple[int, Any]:
    return os.getpid(), function(*args, **options)


def test_documents_and_files_are_read_by_another_process__F1_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way in: an archive's answer, a catalogue, an upload, a folder."""
    monkeypatch.setattr("sda_platform.edge.collector.Worker", Noting)
    Noting.processes.clear()

    async def scenario() -> None:
        archive = serving(lambda request: JSONResponse([record(1, -1.0)]))
        catalogue = serving(lambda request: Response(SETS.replace(b"9995", b"9995\n")))
        async with archive as first, catalogue as second:
            sources = {**optical(first.url), **pull(second.url), **UPLOAD, **folder(tmp_path / "drop")}
            async with collecting(tmp_path, sources, start_worker=ProcessExecutor) as collector:
                (tmp_path / "drop" / "a.tle").write_bytes(SETS)
                assert (await post(collector, "/land/elements?name=b.tle", SETS * 2)).status_code == 201
                await until(lambda: all(collector.ledger.of_source(name).sealed > 0 for name in sources))
                assert collector.supervised["partners"].source.errors == {}
        assert len(Noting.processes) == 2
        assert os.getpid() not in Noting.processes

    asyncio.run(scenario())


def test_a_worker_that_dies_is_started_again() -> None:
    async def scenario() -> None:
        worker = Worker(ProcessExecutor)
        with pytest.raises(OSError, match="died"):
            await worker.run(os.kill, await worker.run(os.getpid), signal.SIGKILL)
        assert await worker.run(os.getpid) != os.getpid()
        worker.close()

    asyncio.run(scenario())


def test_a_task_that_takes_too_long_is_refused_and_the_next_one_runs() -> None:
    async def scenario() -> None:
        executor = ProcessExecutor()
        worker = Worker(lambda: executor, documents.UnexpectedContent)
        first = await worker.run(os.getpid)
        executor.deadline_s = 0.01
        with pytest.raises(documents.UnexpectedContent, match=r"took more than 0\.01 s"):
            await worker.run(signal.pause)
        executor.deadline_s = DEADLINE_S
        assert await worker.run(os.getpid) != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        worker.close()

    asyncio.run(scenario())


def test_a_task_that_needs_too_much_memory_or_crashes_is_refused_and_the_next_one_runs(tmp_path: Path) -> None:
    """The file has some hundred bytes: each of its rows has the one text in its dictionary."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array(["x" * 200_000]))
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"obs_id": texts}), path, compression="zstd")

    async def scenario() -> None:
        worker = Worker(lambda: ProcessExecutor(most_bytes=2**29), PartnerFileError)
        with pytest.raises(PartnerFileError, match=r"needs more memory|alloc of size \d+ failed"):
            await worker.run(Lander(str(tmp_path / "landing"), CLOCK).land, path)
        with pytest.raises(PartnerFileError, match="crashed the process"):
            await worker.run(os.abort)
        assert await worker.run(abs, -3) == 3
        worker.close()

    asyncio.run(scenario())


def test_the_lag_of_the_loop_is_measured_and_exported(tmp_path: Path) -> None:
    """A block of the loop is what a document read in it would be."""

    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            await asyncio.sleep(0.15)
            loop = asyncio.get_running_loop()
            until_s = loop.time() + 0.4
            while loop.time() < until_s:
                pass
            await asyncio.sleep(0.15)
            assert collector.loop_lag_s > 0.25
            (sample,) = [
                line for line in CollectorMetrics(collector).text().decode().splitlines() if line[:10] == "event_loop"
            ]
            assert float(sample.split()[1]) > 0.25

    asyncio.run(scenario())


def bomb(path: Path, line: bytes, lines: int, head: bytes = b"") -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(head)
        for _ in range(lines // 10_000):
            file.write(line * 10_000)
    return path


@pytest.mark.parametrize(
    ("name", "line", "lines", "reason"),
    [
        ("a.csv.gz", b"A,B,5\n" * 10, 400_000, "expands to more than"),
        ("a.jsonl.gz", b'{"obs_id": "aaaaaaaaaaaaaaaaaaaa"}\n', 2_000_000, "expands to more than"),
        ("a.jsonl", b"1,\n", 150_000, "records in 450,000 bytes, fewer than 16 for each"),
    ],
)
def test_a_file_that_expands_to_too_much_is_refused_and_nothing_of_it_lands__F1(
    tmp_path: Path, name: str, line: bytes, lines: int, reason: str
) -> None:
    zone = "elements" if ".csv" in name else "optical"
    path = tmp_path / name
    if name.endswith(".gz"):
        bomb(path, line, lines)
        assert path.stat().st_size < 300_000
    else:
        path.write_bytes(line * lines)
    lander = Lander(str(tmp_path / "landing"), CLOCK, bounds=PartnerBounds())
    with pytest.raises(PartnerFileError, match=reason):
        lander.land(path, feed=zone, segment_format="omm-csv" if zone == "elements" else "optical-jsonl")
    assert landed(tmp_path, zone) == []


def test_text_that_compresses_well_is_no_bomb_and_a_person_may_land_any(tmp_path: Path) -> None:
    lines = b"".join(b'{"obs_id": "obs-%06d", "timestamp_ns": 1730419200000000000}\n' % n for n in range(20_000))
    (tmp_path / "night.jsonl.gz").write_bytes(gzip.compress(lines))
    lander = Lander(str(tmp_path / "landing"), CLOCK, bounds=PartnerBounds())
    assert lander.land(tmp_path / "night.jsonl.gz", feed="optical").records == 20_000
    small = bomb(tmp_path / "same.jsonl.gz", b'{"obs_id": "a"}\n', 1_000_000)
    assert small.stat().st_size < 200_000
    assert lander.land(small, feed="optical").records == 1_000_000  # 16 MB are few


def test_records_of_a_file_are_bounded_in_all(tmp_path: Path) -> None:
    (tmp_path / "a.isl").write_bytes(pack_records(beacons(20), [0] * 20))
    bounds = PartnerBounds(records=19)
    with pytest.raises(PartnerFileError, match="more than 19 records"):
        Lander(str(tmp_path / "landing"), CLOCK, bounds=bounds).land(
            tmp_path / "a.isl", feed="isl", segment_format="isl-frames"
        )


def test_below_the_floor_files_and_documents_wait_and_live_records_are_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [100]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 0, free[0]))

    async def scenario() -> None:
        async with serving(lambda request: Response(SETS)) as remote:
            sources = {**LINKS, **UPLOAD, **folder(tmp_path / "drop"), **pull(remote.url)}
            async with collecting(tmp_path, sources, least_free_bytes=1_000) as collector:
                (tmp_path / "drop" / "a.tle").write_bytes(SETS)
                answer = await post(collector, "/land/elements?name=b.tle")
                assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
                assert "kept for live records" in answer.json()["error"]
                await until(lambda: collector.supervised["partners"].source.errors["not_stored"] > 1)
                await until(lambda: bool(remote.asked))
                assert payloads(tmp_path, "elements") == []
                _, writer = await connect(collector, "links")
                writer.write(framed(beacons(3)))
                await sealed(collector, "links", 3)
                writer.close()
                free[0] = 10**6
                await until(lambda: (tmp_path / "drop-done" / "landed" / "a.tle").exists())
                await until(lambda: not (tmp_path / "collector" / "sets.document").exists())
                assert len(remote.asked) == 1  # the document was kept: its host was not asked again
                assert (await post(collector, "/land/elements?name=b.tle")).status_code == 200

    asyncio.run(scenario())
    assert set(payloads(tmp_path, "elements")) == {SETS.strip()}
    assert list((tmp_path / "drop-done" / "refused").iterdir()) == []


def test_what_a_killed_collector_left_is_swept_at_the_start(tmp_path: Path) -> None:
    state = tmp_path / "collector"
    (state / "upload-abc").mkdir(parents=True)
    (state / "upload-abc" / "night.jsonl").write_bytes(b"half")
    (state / "sets.pull.json").write_text("{}")
    (state / f".sets.pull.json.{os.getpid()}.0.tmp").write_bytes(b"half")

    async def scenario() -> None:
        async with collecting(tmp_path, {}):
            assert [path.name for path in state.iterdir()] == ["sets.pull.json"]

    asyncio.run(scenario())


_PACKED = {
    "zip": lambda data: _zipped({"1.tle": data[: len(data) // 2], "2.tle": data[len(data) // 2 :]}),
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def _zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize("name", ["history", "history.{kind}", "sets.tle.{kind}"])
@pytest.mark.parametrize("kind", _PACKED)
def test_a_pulled_archive_is_read_as_a_dropped_one__41(kind: str, name: str, tmp_path: Path) -> None:
    packed, sender = _PACKED[kind](SETS * 2), Sender("archive", "sets.example")
    arguments = ("elements", "tle", CLOCK, str(tmp_path / "landing"), "pulled", PartnerBounds(), sender)
    document = tmp_path / "x.document"
    document.write_bytes(packed)
    records, _, is_new = documents.seal_document(document, *arguments, name.format(kind=kind))
    assert (records, is_new) == (2 * len(payloads_of(SETS)), True)
    assert documents.seal_document(packed, *arguments, "again")[2] is False, "these bytes were landed before"
    (segment,) = LandingZone(str(tmp_path / "landing"), "elements").pending()
    loaded = LandingZone(str(tmp_path / "landing"), "elements").read(segment)
    assert loaded.meta is not None
    assert loaded.meta.origins == (sender.origin(records),)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("upload-")] == []
    with pytest.raises(documents.UnexpectedContent, match="cannot be read"):
        documents.seal_document(packed[:-30], *arguments, "torn")


def test_a_pulled_archive_of_several_kinds_or_too_large_is_refused(tmp_path: Path) -> None:
    arguments = ("elements", "tle", CLOCK, str(tmp_path / "landing"), "pulled", PartnerBounds(), Sender("archive"))
    with pytest.raises(documents.UnexpectedContent, match="several endings"):
        documents.seal_document(_zipped({"a.tle": SETS, "b.pdf": b"%PDF"}), *arguments)
    with pytest.raises(documents.UnexpectedContent, match="times its size"):
        documents.seal_document(gzip.compress(b"1 " + b" " * 2**26), *arguments)
    assert not (tmp_path / "landing" / "elements").exists()


def payloads_of(data: bytes) -> list[bytes]:
    return [record.payload for record in split_records(data, "tle")]
