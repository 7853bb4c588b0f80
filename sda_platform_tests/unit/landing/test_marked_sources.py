"""What a record or its source states of its marking stays with it: ephemerides, messages, observations, and tracks."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sda_platform.catalog.ephemeris_decoding import decode as decode_ephemerides
from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIDES_FEED
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.formats.markings import MARKS, UNMARKED, Marking
from sda_platform.formats.segments import Sender, describe_segment, parse_segment_meta
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.ingest.decoding import decode as decode_observations
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.ingest.transforms import new_observations
from sda_platform.lake.table import Table
from sda_platform.landing.decoding import Decoder, decode_batch, one_by_one
from sda_platform.landing.segments import LoadedSegment
from sda_platform_tests.support.collectors import beacons, collecting, framed, until
from sda_platform_tests.support.collectors import landed as arrived
from sda_platform_tests.support.ephemerides_of_operators import oem_of
from sda_platform_tests.support.file_sources import SETS, UPLOAD, folder, post
from sda_platform_tests.support.scenes import SECOND_NS, START_NS
from sda_platform_tests.support.segments import after, radar_segment
from sda_platform_tests.support.socket_sources import LINKS, connect, sealed
from sda_platform_tests.support.windows import observed_windows, some_catalogue

EXERCISE = Marking("C", "EXERCISE")


def landed(
    table: Table, zone: str, data: bytes, segment_format: str, decoder: Decoder, marking: Marking
) -> list[dict[str, Any]]:
    """The rows of a segment from a source that states this marking."""
    meta = describe_segment(
        data, feed=zone, segment_format=segment_format, sealed_time_ns=after(60), sealed_wall_time_ns=after(60),
        sender=Sender("exercise-site", classification=marking.classification, data_mode=marking.data_mode),
    )  # fmt: skip
    meta = parse_segment_meta(meta.to_json())
    segment = LoadedSegment(zone, "a", meta.sha256, data, meta, None)
    rows: list[dict[str, Any]] = decode_batch(table, [segment], decoder).rows.to_pylist()
    return rows


def ephemeris(header: str = "", comment: str = "", source: Marking = UNMARKED) -> dict[str, Any]:
    text = oem_of(25544).decode().replace("CREATION_DATE", f"{header}CREATION_DATE", 1)
    text = text.replace("META_STOP\n", f"META_STOP\n{comment}", 1)
    (row,) = landed(EPHEMERIDES, EPHEMERIDES_FEED, text.encode(), "oem-kvn", one_by_one(decode_ephemerides), source)
    assert row["error"] is None
    return row


@pytest.mark.parametrize(
    ("header", "comment", "source", "expected"),
    [
        ("", "", UNMARKED, UNMARKED),
        ("CLASSIFICATION = SECRET\n", "", UNMARKED, Marking("S")),
        ("CLASSIFICATION = U\n", "", EXERCISE, EXERCISE),
        ("CLASSIFICATION = SBU\n", "COMMENT DATA MODE: TEST\n", UNMARKED, Marking("SBU", "TEST")),
        ("", "", EXERCISE, EXERCISE),
    ],
)
def test_an_ephemeris_has_the_marking_of_its_message_and_of_its_source__44(
    header: str, comment: str, source: Marking, expected: Marking
) -> None:
    row = ephemeris(header, comment, source)
    assert Marking.of(row) == expected, "what neither states is not known"
    assert OperatorEphemerides.of([row]).marking(0) == expected
    both = OperatorEphemerides.none().and_paths(OperatorEphemerides.of([row]))
    assert [both.marking(n) for n in range(len(both.ephemerides))] == [expected]


def test_observations_have_the_marking_of_their_source_and_no_other__44() -> None:
    for marking in (EXERCISE, UNMARKED):
        rows = landed(RAW_RECORDS, "radar", radar_segment(3), "radar-frames", decode_observations, marking)
        raw = pa.Table.from_pylist(rows, RAW_RECORDS.arrow_schema)
        known = pa.table({"observation_id": pa.array([], pa.string())})
        found = new_observations(raw, known).to_pylist()
        assert [Marking.of(row) for row in found] == [marking] * 3


@pytest.mark.parametrize("kind", ["links", "upload", "partners"])
def test_a_collector_states_what_its_configuration_does__44(tmp_path: Path, kind: str) -> None:
    """Of frames in batches, of uploads, and of files in a folder."""
    drop = tmp_path / "drop"
    described: dict[str, dict[str, Any]] = {**LINKS, **UPLOAD, **folder(drop)}
    source = {**described[kind], "classification": "confidential", "data_mode": "EXERCISE"}

    async def scenario() -> None:
        async with collecting(tmp_path, {kind: source}) as collector:
            if kind == "links":
                _, writer = await connect(collector, kind)
                writer.write(framed(beacons(3)))
                await sealed(collector, kind, 3)
            elif kind == "upload":
                assert (await post(collector, "/land/elements?name=a.tle", SETS)).status_code == 201
            else:
                (drop / "a.tle").write_bytes(SETS)
                await until(lambda: (drop.with_name("drop-done") / "landed" / "a.tle").exists())

    asyncio.run(scenario())
    ((meta, _),) = arrived(tmp_path, "isl" if kind == "links" else "elements")
    assert meta.origins and {run.marking for run in meta.origins} == {EXERCISE}


def test_a_track_has_the_highest_marking_of_its_observations__44() -> None:
    fuse, windows = window_fuser(some_catalogue(), 30 * SECOND_NS), observed_windows(objects=4, windows=3)
    marked = [mark(windows[0], "U", "REAL"), mark(windows[1], "C", "EXERCISE"), windows[2]]
    fits = [fuse(rows) for rows in marked]
    assert [set(zip(*(each[name].to_pylist() for name in MARKS), strict=True)) for each in fits] == [
        {("U", "REAL")}, {EXERCISE}, {UNMARKED},
    ]  # fmt: skip
    for seen, expected in (
        (fits[:1], {Marking("U", "REAL")}),
        (fits[:2], {EXERCISE}),
        (fits, {EXERCISE}),
        (fits[2:], set()),
    ):
        assert set(followed(pa.concat_tables(seen)).markings.values()) == expected


def followed(windows: pa.Table) -> Tracks:
    nothing, now_ns = TRACK_SCHEMA.empty_table(), START_NS + 120 * SECOND_NS
    rows = live_tracks(windows, windows.select(CHANGE_COLUMNS), nothing, some_catalogue(), now_ns)
    return Tracks.of(rows.select(TRACK_COLUMNS))


def mark(rows: pa.Table, *marks: str) -> pa.Table:
    for name, value in zip(MARKS, marks, strict=True):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows
