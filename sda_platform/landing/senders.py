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
    landed = lake.log(bronze).rows([*_RECORD, *_SENDER], near)
    # Of the records of these segments, few are wanted.
    wanted = pa.table({name: pa.array([row[name] for row in rows], landed.schema.field(name).type) for name in _RECORD})
    found = landed.join(wanted, list(_RECORD), join_type="left semi").to_pylist()
    senders = {_record_of(row): {name: row[name] for name in _SENDER} for row in found}
    unknown = dict.fromkeys(_SENDER)
    return [{**row, **senders.get(_record_of(row), unknown)} for row in rows]


def _record_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _RECORD)
