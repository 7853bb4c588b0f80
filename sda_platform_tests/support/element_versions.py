"""Element sets of one object in the order of preference."""

from typing import Any

from hypothesis import strategies as st

NOW_NS = 10_000 * 10**9
SOURCES = ("18 SDS", "ESA SST", "EXOANALYTIC", "LEOLABS", "NUMERICA")


def row(norad_id: int, epoch_s: int = 0, **facts: Any) -> dict[str, Any]:
    found = {
        "norad_id": norad_id,
        "epoch_time_ns": epoch_s * 10**9,
        "source_priority": 0,
        "element_set_number": None,
        "originator": None,
        "segment_sha256": "00",
        "record_number": 0,
    }
    return {**found, **facts}


rows = st.lists(
    st.builds(
        row,
        st.integers(1, 6),
        st.integers(9_990, 10_100).map(lambda s: s // 30 * 30),
        source_priority=st.sampled_from([0, 10, 20]),
        element_set_number=st.sampled_from([None, 1, 999]),
        originator=st.sampled_from([None, *SOURCES]),
        segment_sha256=st.sampled_from(["00", "01", "02"]),
        record_number=st.integers(0, 50),
    ),
    max_size=40,
    unique_by=lambda r: (r["segment_sha256"], r["record_number"]),
)
