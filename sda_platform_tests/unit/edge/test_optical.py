"""The optical source catches up after any outage, and its mark moves only after its records are durable."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sda_platform.edge.channel import Channel
from sda_platform.edge.http_client import HttpBounds
from sda_platform.edge.marks import DurableMark
from sda_platform.edge.optical_records import NoRecords, Record, read_piece
from sda_platform.edge.sources import source as source_module
from sda_platform.edge.sources.optical import OpticalSource
from sda_platform.edge.sources.source import SourceState
from sda_platform.edge.supervision import Supervised
from sda_platform_tests.support.collectors import NOW_NS, collecting, payloads, until
from sda_platform_tests.support.http_sources import names, optical, record
from sda_platform_tests.unit.edge.servers import Remote, serving

DAY_S = 86_400


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "pause_s", lambda *_, **__: 0.005)


class Archive:
    """What an archive holds and how it answers: it may not know ``until``, or refuse long spans."""

    def __init__(self, seconds: Sequence[float], *, knows_until: bool = True, longest_s: float = 1e9) -> None:
        self.records = [record(number, second) for number, second in enumerate(seconds)]
        self.knows_until, self.longest_ns = knows_until, longest_s * 1e9

    def __call__(self, request: Request) -> Response:
        asked = {name: int(value) for name, value in request.query_params.items()}
        until_ns = asked.get("until", 2**63) if self.knows_until else 2**63
        if min(until_ns, NOW_NS) - asked["since"] > self.longest_ns:
            return Response(status_code=413)
        return JSONResponse([each for each in self.records if asked["since"] <= each["timestamp_ns"] < until_ns])


def run(tmp_path: Path, answer: Callable[[Request], Response], landed: int, max_bytes: int = 16 * 2**20) -> Remote:
    """Poll until that many records have landed, and what was asked."""

    async def scenario() -> Remote:
        async with serving(answer) as remote, collecting(tmp_path, {}) as collector:
            source = OpticalSource(
                "archive", collector.services, url=remote.url, poll_interval_s=0.01, overlap_s=60.0,
                bounds=HttpBounds(attempts=1, max_bytes=max_bytes),
            )  # fmt: skip
            collector.supervised["archive"] = Supervised(source)
            collector.supervised["archive"].start()
            await until(lambda: collector.ledger.of_source("archive").sealed >= landed, 20.0)
            asked = len(remote.asked)
            await until(lambda: len(remote.asked) > asked + 1 and source.state is SourceState.RUNNING)
            remote.failed = source.errors["failed_request"]
            return remote

    return asyncio.run(scenario())


def begin_at(tmp_path: Path, seconds: float) -> None:
    """The mark is there from before."""
    (tmp_path / "collector").mkdir()
    mark = {"time_ns": NOW_NS + round(seconds * 1e9)}
    (tmp_path / "collector" / "archive.mark.json").write_text(json.dumps(mark))


@pytest.mark.parametrize(
    "archive",
    [
        Archive(list(range(-7_200, 0, 10)), longest_s=600.0),
        Archive(list(range(-7_200, 0, 10))),
        Archive(list(range(-7_200, 0, 10)), knows_until=False),
    ],
    ids=["refuses long spans", "answers too much", "does not know until"],
)
def test_an_outage_of_any_length_is_caught_up_with__DP1_F3(tmp_path: Path, archive: Archive) -> None:
    """720 records are 100 kB; a tenth of that may be answered at once."""
    begin_at(tmp_path, -7_200.0)
    remote = run(tmp_path, archive, 720, max_bytes=10_000)
    assert sorted(set(names(tmp_path))) == sorted(each["obs_id"] for each in archive.records)
    assert "until" not in remote.asked[-1].query_params
    assert int(remote.asked[-1].query_params["since"]) == NOW_NS - 70_000_000_000
    assert len(remote.asked) < 200
    assert bool(remote.failed) == (archive.longest_ns == 600e9), "an answer that is too large is no failure"


def test_the_first_contact_asks_for_what_the_archive_keeps(tmp_path: Path) -> None:
    remote = run(tmp_path, Archive([-10.0]), 1)
    assert int(remote.asked[0].query_params["since"]) == NOW_NS - DAY_S * 10**9


def test_a_gap_beyond_the_archive_is_counted_once_and_reported(tmp_path: Path) -> None:
    begin_at(tmp_path, -DAY_S - 500.0)

    async def scenario() -> None:
        archive = Archive([])
        async with serving(archive) as remote, collecting(tmp_path, optical(remote.url)) as collector:
            source = collector.supervised["archive"].source
            await until(lambda: len(remote.asked) > 3)
            assert source.errors["archive_gap"] == 1
            assert collector.health == ["source archive: 500 s of records are lost: the archive keeps 24 h"]
            assert all(int(r.query_params["since"]) == NOW_NS - DAY_S * 10**9 for r in remote.asked)
            archive.records.append(record(1, -1.0))
            await until(lambda: collector.ledger.of_source("archive").sealed == 1)
            assert source.errors["archive_gap"] == 1

    asyncio.run(scenario())


WRONG: list[Callable[[], Response]] = [
    lambda: Response("<html>maintenance</html>"),
    lambda: Response(status_code=404),
    lambda: Response(status_code=403),
    lambda: Response(status_code=503, headers={"Retry-After": "\xb2"}),
    lambda: Response('{"a": 1}'),
    lambda: Response("[" * 100_000),
    lambda: Response(b"\xff\xfe"),
    lambda: Response('[{"obs_id": "a", "timest'),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_asked_again_and_shown_until_it_is_right(
    tmp_path: Path, wrong: Callable[[], Response]
) -> None:
    answers = [wrong] * 4

    async def scenario() -> None:
        served = serving(lambda request: answers.pop()() if answers else Archive([-1.0])(request))
        async with served as remote, collecting(tmp_path, optical(remote.url)) as collector:
            source = collector.supervised["archive"].source
            source.patience_s = 0.0
            await until(lambda: len(answers) <= 2)
            assert source.state is SourceState.RETRYING
            assert len(collector.health) == 1
            await until(lambda: collector.ledger.of_source("archive").sealed == 1)
            await until(lambda: source.state is SourceState.RUNNING)
            assert collector.health == []
            assert collector.supervised["archive"].restarts == 0

    asyncio.run(scenario())


def test_one_bad_record_harms_no_other(tmp_path: Path) -> None:
    huge = '{"obs_id": "huge", "timestamp_ns": ' + "9" * 5_000 + "}"
    answer = Response(f"[{json.dumps(record(1, -2.0))}, {huge},\n {json.dumps(record(2, -1.0))}]")
    run(tmp_path, lambda _: answer, 3)
    found = payloads(tmp_path, "optical")
    assert [json.loads(line)["obs_id"] for line in (found[0], found[2])] == ["obs-1", "obs-2"]
    assert found[1] == huge.encode()


@pytest.mark.parametrize(
    "bad",
    [
        '"{\\"obs_id\\":\\"1203"',
        '{"timestamp_ns": 5}',
        '{"obs_id": "a", "timestamp_ns": "now"}',
        "null",
        "1e999",
        "[" * 5_000,
    ],
)
def test_a_bad_record_lands_once_however_often_it_is_answered(tmp_path: Path, bad: str) -> None:
    """The archive keeps it at the time at which it came, or answers it for ever."""
    answers = 0
    bad += "]" * bad.count("[")

    async def scenario() -> None:
        def answer(_: Request) -> Response:
            nonlocal answers
            answers += 1
            new = json.dumps(record(answers, 30.0 * min(answers, 9) - 300.0))
            return Response(f"[{json.dumps(record(0, -400.0))}, {bad}, {bad}, {new}]")

        async with serving(answer) as remote, collecting(tmp_path, optical(remote.url)) as collector:
            await until(lambda: answers > 15)
            assert collector.supervised["archive"].source.errors["bad_record"] == 2

    asyncio.run(scenario())
    found = payloads(tmp_path, "optical")
    assert len(found) - sum(b'"obs-' in each for each in found) == 2


def test_the_mark_moves_only_after_its_records_are_durable__DP1_I12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a hand-over is lost the mark stays, and the records are asked for again."""
    moved: list[tuple[int, int]] = []
    move = DurableMark.move
    lost = [True, True]

    def note(mark: DurableMark, time_ns: int) -> None:
        if time_ns > mark.time_ns:
            moved.append((time_ns, len(payloads(tmp_path, "optical"))))
        move(mark, time_ns)

    put = Channel.put

    async def lose(channel: Channel[Any], item: Any, weight: int, **options: Any) -> None:
        await put(channel, item, weight, **options)
        if lost:
            lost.pop()
            item.receipt.lost += item.records  # as where an edge drops it

    monkeypatch.setattr(DurableMark, "move", note)
    monkeypatch.setattr(Channel, "put", lose)
    remote = run(tmp_path, Archive([-30.0, -20.0, -10.0]), 3)
    assert moved == [(NOW_NS - 10_000_000_000, 3)]
    assert [int(r.query_params["since"]) for r in remote.asked[:3]] == [NOW_NS - DAY_S * 10**9] * 3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(values=st.lists(VALUES, max_size=6), size=st.integers(1, 9), indent=st.none() | st.integers(0, 1))
def test_pieces_of_any_size_give_the_records_of_the_whole(values: list[Any], size: int, indent: int | None) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    found, rest, has_begun = list[Record](), b"", False
    for start in range(0, len(data), size):
        part = rest + data[start : start + size]
        piece = read_piece(part, 7, is_first=not has_begun, is_last=start + size >= len(data))
        found += piece.records
        has_begun, rest = piece.has_begun, piece.rest or b""
    assert found == read_piece(data, 7, is_first=True, is_last=True).records
    assert len(found) == len(values)
    with pytest.raises(NoRecords, match="breaks off"):
        read_piece(data[:-1], 7, is_first=True, is_last=True)


def test_a_bad_record_costs_no_look_at_all_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of `json` counts the lines before it: 262,000 bytes of bad records took six seconds."""
    looked = []

    class Noted(json.JSONDecodeError):
        def __init__(self, reason: str, text: str, at: int) -> None:
            looked.append((text.count("\n", 0, at), text.rfind("\n", 0, at)))
            super().__init__(reason, text, at)

    monkeypatch.setattr(json.decoder, "JSONDecodeError", Noted)
    piece = read_piece(b'[\n{x},\n{"a" 1},\n{"obs_id": "b"}, {]', 7, is_first=True, is_last=False)
    assert [len(line) > 2 for line in piece.lines] == [True, True, True]
    assert len(looked) >= 2 and {*looked} == {(0, -1)}


def test_where_an_array_breaks_off_is_shown_with_forty_characters() -> None:
    beginning = '{"a":"' + "x" * 50
    with pytest.raises(NoRecords) as refusal:
        read_piece(f"[1,{beginning}".encode(), 7, is_first=True, is_last=True)
    assert str(refusal.value) == f"the array breaks off at {beginning[:40]!r}"
