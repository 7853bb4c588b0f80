"""Parquet files of rows with any encoding of a column: what the profile of compacted files is judged against."""

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T

from sda_platform.history.parquet_profile import CODEC, CODEC_LEVEL
from sda_platform.lake.merge_process import Encoding
from sda_platform.lake.table import Column

UNREADABLE: frozenset[Encoding] = frozenset({"BYTE_STREAM_SPLIT"})
"""Encodings that the pinned Spark does not read."""


def candidates(column: Column) -> tuple[Encoding, ...]:
    """The encodings that the type of a column allows; none for arrays, which keep the default."""
    match column.data_type:
        case T.StringType() | T.BinaryType():
            return ("DICTIONARY", "PLAIN", "DELTA_BYTE_ARRAY")
        case T.LongType() | T.IntegerType():
            return ("DICTIONARY", "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
        case T.DoubleType() | T.FloatType():
            return ("DICTIONARY", "PLAIN", "BYTE_STREAM_SPLIT")
    return ()


def write_encoded(rows: pa.Table, to: str | io.BytesIO, encodings: Mapping[str, Encoding]) -> None:
    """Write a Parquet file of ``rows`` with these encodings of columns, compressed as the files of tables are."""
    others = {name: each for name, each in encodings.items() if each != "DICTIONARY"}
    pq.write_table(
        rows,
        to,
        compression=CODEC,
        compression_level=CODEC_LEVEL,
        use_dictionary=[_path(column) for column in rows.schema if column.name not in others],
        column_encoding=others or None,
        data_page_version="2.0",
        store_schema=False,
    )


def _path(column: pa.Field) -> str:
    """The path of a column's values in a Parquet schema."""
    return f"{column.name}.list.element" if pa.types.is_list(column.type) else str(column.name)
