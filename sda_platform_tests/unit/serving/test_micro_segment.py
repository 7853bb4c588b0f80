"""Micro-segments read back by columns hold what the careful path reads."""

import gzip

import pyarrow as pa

from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.segments import Origin
from sda_platform.serving import micro_segment
from sda_platform.serving.index import records
from sda_platform_tests.support.segments import CATALOGUE


def sets(count: int) -> list[ElementSet]:
    decoded = decode_element_sets(gzip.decompress(CATALOGUE.read_bytes()), segment_format="omm-csv").slice(0, count)
    names = [name for name in ElementSet.__dataclass_fields__ if name in decoded.column_names]
    columns = [decoded.column(name).to_pylist() for name in names]
    return [ElementSet(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


ORIGINS = [Origin(500, "anyone"), Origin(1, "aurora", rank=20)]


def test_reading_by_columns_gives_what_the_careful_path_gives() -> None:
    known = [
        *sets(500),
        ElementSet(
            270_387, 'A, "B"', None, 1_730_000_000_123_456_789, 15.5, 1e-7, 51.6, 1.0, 2.0, 3.0, -1.5e-05,
            originator="18 SDS",
        ),
    ]  # fmt: skip
    data = micro_segment.encode(known)
    found = micro_segment.rows(data, received_time_ns=7, origins=ORIGINS)
    careful = decode_element_sets(data, segment_format=micro_segment.FORMAT)
    assert careful.column("error_kind").null_count == careful.num_rows == found.num_rows == 501
    common = [name for name in found.column_names if name in careful.column_names]
    assert len(common) >= 16
    for name in common:
        assert found.column(name).cast(careful.column(name).type).to_pylist() == careful.column(name).to_pylist(), name
    assert found.column("source_priority").to_pylist() == [0] * 500 + [20]
    assert found.column("source_name").to_pylist() == ["anyone"] * 500 + ["aurora"]
    assert set(found.column("received_time_ns").to_pylist()) == {7}
    assert len(records(found)) == 501
    assert found.schema.field("epoch_time_ns").type == pa.int64()


def test_the_name_follows_from_the_content() -> None:
    data = micro_segment.encode(sets(2))
    assert micro_segment.segment_name(data) == micro_segment.segment_name(bytes(data))
    assert micro_segment.segment_name(data).startswith("put-")
    assert micro_segment.segment_name(data) != micro_segment.segment_name(micro_segment.encode(sets(3)))
