"""The rank of an element set is that of the source that brought it; what it says of itself ranks nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from starlette.responses import Response

from sda_platform.audit_log import user
from sda_platform.catalog.decoding import decode
from sda_platform.cli.main import main
from sda_platform.formats.segments import SegmentMeta, describe_segment
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.collectors import collecting, until
from sda_platform_tests.support.file_sources import UPLOAD, folder, post
from sda_platform_tests.unit.edge.servers import serving

OMM = {
    "OBJECT_NAME": "ISS (ZARYA)", "OBJECT_ID": "1998-067A", "NORAD_CAT_ID": 25544,
    "EPOCH": "2024-11-01T04:11:16.322656", "MEAN_MOTION": 15.4993, "ECCENTRICITY": 0.0009296, "INCLINATION": 51.6393,
    "RA_OF_ASC_NODE": 356.2817,
    "ARG_OF_PERICENTER": 77.9131, "MEAN_ANOMALY": 33.2203, "BSTAR": 0.00040391, "MEAN_MOTION_DOT": 0.00022844,
    "MEAN_MOTION_DDOT": 0, "ELEMENT_SET_NO": 999, "EPHEMERIS_TYPE": 0, "CLASSIFICATION_TYPE": "U", "REV_AT_EPOCH": 1,
}  # fmt: skip


def omm(**changed: Any) -> bytes:
    return json.dumps([{**OMM, "ORIGINATOR": "OWNER/OPERATOR", **changed}]).encode()


def ranks(root: Path) -> dict[str, int]:
    """Of each segment that waits its rank, by source."""
    found = {}
    for data, meta in waiting(root):
        (origin,) = meta.origins or ()
        (found[origin.source],) = decode(data, meta).column("source_priority").to_pylist()
    return found


def waiting(root: Path) -> list[tuple[bytes, SegmentMeta]]:
    zone = LandingZone(str(root), "elements")
    return [(each.data, each.meta) for each in map(zone.read, zone.pending()) if each.meta]


def test_each_source_ranks_its_sets_as_it_is_configured__F1_18(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(lambda request: Response(omm(MEAN_ANOMALY=1.0))) as remote:
            sources = {
                "celestrak": {"kind": "pull", "url": remote.url, "format": "omm-json", "rank": 10},
                "upload": {**UPLOAD["upload"], "rank": 7},
                **folder(tmp_path / "drop"),
            }
            async with collecting(tmp_path, sources) as collector:
                (tmp_path / "drop" / "a.json").write_bytes(omm(MEAN_ANOMALY=2.0))
                answer = await post(collector, "/land/elements?name=b.json&format=omm-json", omm(MEAN_ANOMALY=3.0))
                assert answer.status_code == 201
                await until(lambda: all(collector.ledger.of_source(name).sealed == 1 for name in sources))

    asyncio.run(scenario())
    assert ranks(tmp_path / "landing") == {"celestrak": 10, "upload": 7, "partners": 0}


def test_a_person_states_the_rank_of_a_file_and_its_originator_gives_none__F1_18(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_bytes(omm(MEAN_ANOMALY=1.0))
    (tmp_path / "other.json").write_bytes(omm(MEAN_ANOMALY=2.0))
    for arguments in (["own.json", "--rank", "30"], ["other.json"]):
        name, *options = arguments
        done = CliRunner().invoke(main, ["--home", str(tmp_path), "land", str(tmp_path / name), *options])
        assert done.exit_code == 0, done.output
    found = [decode(*each) for each in waiting(tmp_path / "landing")]
    assert sorted(rows.column("source_priority").to_pylist() for rows in found) == [[0], [30]]
    assert {origin.source for _, meta in waiting(tmp_path / "landing") for origin in meta.origins or ()} == {user()}


def test_sets_of_an_earlier_versions_segment_rank_by_their_originator() -> None:
    meta = describe_segment(
        omm(),
        feed="elements",
        segment_format="omm-json",
        sealed_time_ns=1_730_500_000_000_000_000,
        sealed_wall_time_ns=0,
    )
    assert decode(omm(), meta).column("source_priority").to_pylist() == [30]
    assert meta.origins is None
