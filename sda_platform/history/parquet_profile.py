"""How compacted files encode each column: a class for each column, an encoding for each class.

Compaction writes these files, so an append on the way to an alert costs what it did before. Byte-stream-split is not in
the profile: the pinned Spark cannot read it (a pipeline test probes that). `benchmarks/encodings.py` measures every
alternative.
"""

from typing import Final

from pyspark.sql import types as T

from sda_platform.lake.merge_process import Encoding, FileFormat
from sda_platform.lake.table import Column, Table

CODEC: Final = "ZSTD"
CODEC_LEVEL = 3
ROW_GROUP_BYTES = 16 * 2**20
"""At most so many encoded bytes in a row group: the unit of a writer's memory, of pruning, and of parallel reading.

A question about one hour decodes a whole group. With 128 MB, the default of DL1, it takes four times as long, and files
are 3 % smaller (`benchmarks/history.py`).
"""
_DISTINCT_TEXT = ("object_name", "international_designator", "observation_id", "payload")
_REPEATED_NUMBERS = ("sigma", "scale", "radius_m", "bound")
_REPEATED_TIMES = ("received_time_ns",)


def encoding_of(table: Table, column: Column) -> Encoding:
    """Return the encoding of a column in compacted files.

    - Whole numbers (times, sequences, numbers of objects, counts) are near one another: deltas. The records of one
      segment were received at few times, and their observations lie in another order: a dictionary.
    - Text that differs from row to row is stored without what it has in common with the row before.
    - Measured and estimated numbers hardly repeat: a dictionary would cost a third more than none.
    - All else has a dictionary: kinds, sources, hashes of segments, the few sigmas of a sensor.
    """
    match column.data_type:
        case T.LongType() if column.name not in _REPEATED_TIMES:
            return "DELTA_BINARY_PACKED"
        case T.StringType() | T.BinaryType() if table.key == (column.name,) or column.name in _DISTINCT_TEXT:
            return "DELTA_BYTE_ARRAY"
        case T.DoubleType() if not any(each in column.name for each in _REPEATED_NUMBERS):
            return "PLAIN"
    return "DICTIONARY"


def file_format(table: Table, bytes_per_row: float) -> FileFormat:
    """Return the format of compacted files of ``table``; its rows take ``bytes_per_row`` in the files that are
    compacted.

    A merge takes a number of rows for its row groups. Rows that are encoded anew take rather less.
    """
    rows = int(ROW_GROUP_BYTES / max(bytes_per_row, 1.0))
    return FileFormat(CODEC, CODEC_LEVEL, rows, {c.name: encoding_of(table, c) for c in table.columns})
