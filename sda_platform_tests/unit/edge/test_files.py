"""Files of partners: a watched folder, and uploads over HTTP."""

import asyncio
import errno
from pathlib import Path

import pytest
from upath import UPath

from sda_platform.edge.address import Address
from sda_platform.edge.sources.upload import TEMPORARY, UploadSource
from sda_platform.formats.registry import OWN_ZONES, ZONES, known_format
from sda_platform.lake import durable
from sda_platform_tests.support.collectors import collecting, landed, payloads, until
from sda_platform_tests.support.file_sources import SETS, UPLOAD, folder, post


def test_a_file_that_is_copied_into_the_folder_lands_and_is_put_away(tmp_path: Path) -> None:
    drop = tmp_path / "drop"

    async def scenario() -> None:
        async with collecting(tmp_path, folder(drop)) as collector:
            (drop / "sets.tle.part").write_bytes(SETS[:10])
            (drop / ".hidden.tle").write_bytes(SETS)
            (drop / "sets.tle").write_bytes(SETS)
            await until(lambda: (drop.with_name("drop-done") / "landed" / "sets.tle").exists())
            assert collector.ledger.of_source("partners").sealed == 1
            (drop / "sets.tle").write_bytes(SETS)  # the same again: nothing new, and put away next to the first
            await until(lambda: (drop.with_name("drop-done") / "landed" / "sets.tle.2").exists())

    asyncio.run(scenario())
    assert len(landed(tmp_path, "elements")) == 1
    assert sorted(path.name for path in drop.iterdir() if path.is_file()) == [".hidden.tle", "sets.tle.part"]


def test_a_file_that_is_no_source_is_put_aside_with_its_reason(tmp_path: Path) -> None:
    drop = tmp_path / "drop"

    async def scenario() -> None:
        async with collecting(tmp_path, folder(drop)) as collector:
            (drop / "notes.xyz").write_text("hello")
            (drop / "torn.tle").write_bytes(SETS[:-20])
            await until(lambda: len(list((drop.with_name("drop-done") / "refused").glob("*.reason.txt"))) == 2)
            assert collector.supervised["partners"].source.errors["refused_file"] == 2
            assert collector.health == []

    asyncio.run(scenario())
    assert (
        "breaks off in its last record" in (drop.with_name("drop-done") / "refused" / "torn.tle.reason.txt").read_text()
    )
    assert payloads(tmp_path, "elements") == []


def test_a_folder_of_a_zone_decides_where_its_files_land(tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    (drop / "elements").mkdir(parents=True)

    async def scenario() -> None:
        async with collecting(tmp_path, folder(drop)):
            (drop / "elements" / "sets.txt").write_bytes(SETS)
            await until(lambda: bool(landed(tmp_path, "elements")))

    asyncio.run(scenario())


def test_a_source_beyond_its_quota_is_refused_and_named_and_others_are_not__S6(tmp_path: Path) -> None:
    """The upload that exceeds the quota is taken; the next is answered 429. Files of another source land meanwhile."""
    drop = tmp_path / "drop"

    async def scenario() -> None:
        async with collecting(tmp_path, {**UPLOAD, **folder(drop)}, quota_records=1) as collector:
            assert (await post(collector, "/land/elements?name=a.tle", SETS * 2)).status_code == 201
            refused = await post(collector, "/land/elements?name=b.tle", SETS * 3)
            assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
            assert "upload uses more than 1 records a minute" in refused.json()["error"]
            (drop / "c.tle").write_bytes(SETS * 4)
            await until(lambda: (drop.with_name("drop-done") / "landed" / "c.tle").exists())
            assert [each.partition(":")[0] for each in collector.health] == ["source upload"]
            (drop / "d.tle").write_bytes(SETS)
            partners = collector.supervised["partners"].source
            await until(lambda: partners.errors["over_quota"] > 0)
            assert (drop / "d.tle").exists()
            assert sorted(each.partition(":")[0] for each in collector.health) == ["source partners", "source upload"]

    asyncio.run(scenario())


def test_files_that_are_refused_count_too__S6(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, UPLOAD, quota_refused=2) as collector:
            answers = [await post(collector, "/land/elements?name=a.nonsense", b"?") for _ in range(4)]
            assert [answer.status_code for answer in answers] == [400, 400, 400, 429]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("headers", "hosts", "status"),
    [
        ({}, [], 201),
        ({"Host": "sda.example.org"}, ["sda.example.org"], 201),
        ({"Host": "evil.example"}, [], 403),
        ({"Origin": "http://evil.example"}, [], 403),
        ({"Origin": "null"}, [], 403),
        ({"Sec-Fetch-Site": "cross-site"}, [], 403),
    ],
)
def test_a_foreign_page_or_name_uploads_nothing__S4(
    tmp_path: Path, headers: dict[str, str], hosts: list[str], status: int
) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {"upload": {**UPLOAD["upload"], "hosts": hosts}}) as collector:
            answer = await post(collector, "/land/elements?name=sets.tle", headers=headers)
            assert answer.status_code == status
            assert len(landed(tmp_path, "elements")) == (status == 201)

    asyncio.run(scenario())


def test_an_upload_is_answered_once_it_is_durable(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, UPLOAD) as collector:
            first = await post(collector, "/land/elements?name=sets.tle")
            assert (first.status_code, first.json()["records"]) == (201, 1)
            assert len(landed(tmp_path, "elements")) == 1
            again = await post(collector, "/land/elements?name=other.tle")
            assert (again.status_code, again.json()["segments"]) == (200, [])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/land/nowhere?name=a.tle", SETS, 404),
        ("/land/radar?name=a.tle", SETS, 400),
        ("/land/elements?name=a.xyz", SETS, 400),
        ("/land/elements?name=a.tle", SETS[:-9], 400),
        ("/land/elements?name=a.tle", b"", 400),
        ("/land/elements?name=../../../../tmp/evil.tle", SETS, 201),
        ("/land/elements?name=%00%ff/..", SETS, 400),
        ("/land/elements?name=a.tle", b"x" * 100_001, 413),
        ("/elsewhere", SETS, 404),
    ],
)
def test_a_wrong_upload_is_refused_with_its_reason(tmp_path: Path, path: str, content: bytes, status: int) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, UPLOAD) as collector:
            answer = await post(collector, path, content)
            assert answer.status_code == status, answer.text
            assert str(tmp_path) not in answer.text
            assert collector.health == []

    asyncio.run(scenario())
    assert [path.name for path in (tmp_path / "collector").iterdir() if path.name.startswith(TEMPORARY)] == []
    assert len(payloads(tmp_path, "elements")) == (1 if status == 201 else 0)


def test_an_upload_that_the_disk_refuses_may_be_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: UPath, data: bytes) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    async def scenario() -> None:
        async with collecting(tmp_path, UPLOAD) as collector:
            with monkeypatch.context() as full:
                full.setattr(durable, "create", refuse)
                answer = await post(collector, "/land/elements?name=a.tle")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
            assert answer.json() == {"error": "cannot be stored now: No space left on device"}
            assert collector.supervised["upload"].source.errors == {"not_stored": 1}
            assert (await post(collector, "/land/elements?name=a.tle")).status_code == 201

    asyncio.run(scenario())
    assert payloads(tmp_path, "elements") == [SETS.strip()]


def test_an_upload_without_the_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLOAD_TOKEN", "t0ken")
    sources = {"upload": {**UPLOAD["upload"], "token_variable": "UPLOAD_TOKEN"}}

    async def scenario() -> None:
        async with collecting(tmp_path, sources) as collector:
            assert (await post(collector, "/land/elements?name=a.tle")).status_code == 401
            for text in (b"Bearer token", b"Bearer \xe9", b"Bearer t0ken\xc3\xa9", b""):
                wrong = {b"Authorization": text}
                assert (await post(collector, "/land/elements?name=a.tle", headers=wrong)).status_code == 401
            right = {"Authorization": "Bearer t0ken"}
            assert (await post(collector, "/land/elements?name=a.tle", headers=right)).status_code == 201

    asyncio.run(scenario())


def test_a_body_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, UPLOAD) as collector:
            source = collector.supervised["upload"].source
            host, _, port = source.address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /land/elements?name=a.tle HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nhalf")
            await writer.drain()
            writer.close()
            await until(lambda: source.errors["torn"] == 1)

    asyncio.run(scenario())
    assert payloads(tmp_path, "elements") == []


def test_an_upload_that_trickles_in_gives_its_place_back__F1(tmp_path: Path) -> None:
    """Each byte comes in time, but the body does not: four such senders would shut out all others."""

    async def scenario() -> None:
        async with collecting(tmp_path, {}) as collector:
            source = UploadSource("slow", collector.services, bind=Address("127.0.0.1", 0), at_once=1, body_s=0.1)
            running = asyncio.create_task(source.run())
            await until(lambda: bool(source.address))
            reader, writer = await asyncio.open_connection(*Address.parse(source.address))
            writer.write(b"POST /land/elements?name=a.tle HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n")

            async def trickle() -> None:
                while not writer.is_closing():
                    writer.write(b"x")
                    await asyncio.sleep(0.01)

            trickling = asyncio.create_task(trickle())
            async with asyncio.timeout(10):
                assert (await reader.readline()).split()[1] == b"408"
            trickling.cancel()
            writer.close()
            assert source.errors == {"slow": 1}
            source.stop()
            await running

    asyncio.run(scenario())
    assert payloads(tmp_path, "elements") == []


ACTS = {
    "atlantic-x.ground": b'{"station":"atlantic","event":"issued","event_time_ns":1,"command_id":"c","kind":"ABORT"}\n',
    "x.acks": b'{"alert_id":"a","revision":9,"acknowledged_by":"chief","acknowledged_time_ns":1}\n',
    "x.edits": b'{"norad_id":5,"attribute":"name","value":"A","origin":"hq","lamport":1,"vector":{"hq":1}}\n',
    "x.membership": b'{"member":"a"}\n',
    "x.metrics": b'{"sample":1}\n',
    "x.gameday": b'{"fault":"link cut"}\n',
}


def test_files_that_command_and_decide_reach_no_zone_unless_their_source_names_it(tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    (drop / "ground").mkdir(parents=True)

    async def scenario() -> None:
        async with collecting(tmp_path, {**UPLOAD, **folder(drop)}) as collector:
            for name, content in ACTS.items():
                (drop / name).write_bytes(content)
                (drop / "ground" / name).write_bytes(content)
            await until(
                lambda: len(list((drop.with_name("drop-done") / "refused").glob("*.reason.txt"))) == 2 * len(ACTS)
            )
            for zone in OWN_ZONES:
                assert (await post(collector, f"/land/{zone}?name=x", ACTS["x.edits"])).status_code == 404

    asyncio.run(scenario())
    assert {known_format(name).zone for zone in OWN_ZONES for name in ZONES[zone]} == {*OWN_ZONES}
    assert len(ACTS) == len(OWN_ZONES)
    assert (
        "its source brings no files to zone ground, only to "
        in (drop.with_name("drop-done") / "refused" / "atlantic-x.ground.reason.txt").read_text()
    )
    assert [zone for zone in ZONES if landed(tmp_path, zone)] == []


def test_a_source_brings_edits_of_a_site_where_its_configuration_names_their_zone(tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    trusted = {"partners": {**folder(drop)["partners"], "zones": ["edits"]}}

    async def scenario() -> None:
        async with collecting(tmp_path, trusted):
            (drop / "x.edits").write_bytes(ACTS["x.edits"])
            (drop / "sets.tle").write_bytes(SETS)
            await until(
                lambda: (
                    (drop.with_name("drop-done") / "landed" / "x.edits").exists()
                    and (drop.with_name("drop-done") / "refused" / "sets.tle").exists()
                )
            )

    asyncio.run(scenario())
    assert len(landed(tmp_path, "edits")) == 1
