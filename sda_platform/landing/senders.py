"""Who brought the records that rows of any table come from."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.lake.lake import Lake
from sda_platform.lake.selections import Near
from sda_platform.lake.table import Table

_RECORD: Final = ("segment_sha256", "record_number")
_SENDER: Final = ("source_name", "peer")


def with_senders(lake: Lake, bronze: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` with who brought their records, as ``bronze`` has it: ``source_name`` and ``peer``."""
    if not rows:
        return rows
    near = Near(
        "received_time_ns", pa.chunked_array([[row["received_time_ns"] for row in rows]], pa.int64())
    ).expression()
    near &= ds.field("segment_sha256").isin(sorted({row["segment_sha256"] for row in rows}))
    landed = lake.log(bronze).rows([*_RECORD, *_SENDER], near).to_pylist()
    senders = {tuple(row[name] for name in _RECORD): {name: row[name] for name in _SENDER} for row in landed}
    unknown = dict.fromkeys(_SENDER)
    return [{**row, **senders.get(tuple(row[name] for name in _RECORD), unknown)} for row in rows]
