"""Decoding takes its memory from the C library, and leaves the process as it was."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from sda_platform.failpoints import InjectedFault
from sda_platform.formats.observations import decode_segments
from sda_platform.formats.segments import SegmentMeta
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.landing.decoding import decode_batch
from sda_platform.landing.segments import LoadedSegment
from sda_platform_tests.support.segments import described, radar_segment

DATA = radar_segment(3)
SEGMENT = LoadedSegment("radar", "a", described(DATA).sha256, DATA, described(DATA), None)


def test_rows_of_a_batch_are_in_memory_of_the_c_library() -> None:
    pool, before = pa.system_memory_pool(), pa.system_memory_pool().bytes_allocated()
    usual = pa.default_memory_pool().backend_name
    batch = decode_batch(RAW_RECORDS, [SEGMENT], decode_segments)
    assert batch.rows.num_rows == 3
    assert pool.bytes_allocated() > before
    assert pa.default_memory_pool().backend_name == usual


def test_the_usual_memory_is_back_when_decoding_is_interrupted() -> None:
    usual = pa.default_memory_pool().backend_name
    seen: list[str] = []

    def interrupted(_segments: Sequence[tuple[bytes, SegmentMeta]]) -> pa.Table:
        seen.append(pa.default_memory_pool().backend_name)
        raise InjectedFault("of the machine")

    with pytest.raises(InjectedFault):
        decode_batch(RAW_RECORDS, [SEGMENT], interrupted)
    assert seen == ["system"]
    assert pa.default_memory_pool().backend_name == usual
