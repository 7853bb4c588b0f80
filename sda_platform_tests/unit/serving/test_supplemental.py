"""CelesTrak's supplemental data: what operators brought in the last days, one set of each source."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.formats.instants import format_epoch
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.served_sets import GEO, ISS, NOW_NS, nothing_submitted
from sda_platform_tests.unit.serving.catalogues import DAY_NS, row
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.source import MemorySource

AS_OF_NS = NOW_NS - DAY_NS  # of the catalogue in memory
SUP = "/NORAD/elements/supplemental/sup-gp.php"


def of(source: str, number: int, days_old: float, rank: int = 30, record: int = 0) -> dict[str, object]:
    base = {25544: ISS, 41866: GEO}.get(number) or row(number)
    return {**base, "source_name": source, "source_priority": rank, "record_number": record,
            "epoch_time_ns": AS_OF_NS - round(days_old * DAY_NS), "segment_sha256": f"{record:064x}"}  # fmt: skip


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    source = MemorySource()
    source.commit(
        of("celestrak", 25544, 0.5, 10, 1),
        of("iss-e", 25544, 2.0, 30, 2),
        of("iss-e", 25544, 1.0, 30, 3),
        of("iss-e", 25544, -1.0, 30, 4),  # its epoch is ahead
        of("nasa", 25544, 3.0, 40, 5),
        of("intelsat-e", 41866, 1.0, 30, 6),
        of("intelsat-e", 7, 8.0, 30, 7),  # too old
        of("celestrak", 7, 0.5, 10, 8),
    )
    live = LiveCatalogue(source, IndexStore(tmp_path), lambda: NOW_NS)
    live.start()
    puts = Puts(live, lambda name, data, origins: NOW_NS)
    with Client(application(live, puts, nothing_submitted(tmp_path))) as found:
        yield found
    puts.close()
    live.close()


ISS_SETS = [("25544", "iss-e", 1.0), ("25544", "nasa", 3.0)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("CATNR=25544", ISS_SETS),
        ("INTDES=1998-067", ISS_SETS),
        ("NAME=iss", ISS_SETS),
        ("FILE=geo", [("41866", "intelsat-e", 1.0)]),
        ("SPECIAL=gpz", [("41866", "intelsat-e", 1.0)]),
        ("source=ISS-E", ISS_SETS[:1]),
        ("SOURCE=celestrak", [("7", "celestrak", 0.5), ("25544", "celestrak", 0.5)]),
        ("CATNR=7", []),
        ("SOURCE=nobody", []),
    ],
)
def test_sets_of_operators_are_found_by_each_documented_query__44(
    client: Client, query: str, expected: list[tuple[str, str, float]]
) -> None:
    answer = client.get(f"{SUP}?{query}&FORMAT=json")
    assert answer.status_code == 200, answer.text
    if not expected:
        assert answer.text == "No GP data found"
        return
    found = [(str(each["NORAD_CAT_ID"]), each["SOURCE"], each["EPOCH"]) for each in answer.json()]
    assert found == [
        (number, source, format_epoch(AS_OF_NS - round(days * DAY_NS))) for number, source, days in expected
    ]


def test_the_default_is_three_lines_and_a_wrong_query_says_what_there_is__44(client: Client) -> None:
    assert client.get(f"{SUP}?CATNR=41866").text.splitlines()[0] == "GOES 16"
    refused = client.get(f"{SUP}?GROUP=geo")
    assert (refused.status_code, "FILE" in refused.json()["error"]) == (400, True)
    refused = client.get(f"{SUP}?FORMAT=json")
    assert "give one of CATNR, INTDES, NAME, SPECIAL, FILE, SOURCE" in refused.json()["error"]
