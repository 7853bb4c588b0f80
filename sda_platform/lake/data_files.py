"""Data files of a table that Arrow writes: many rows of one commit, before the engine adds the files to the log.

The rows are in Arrow already. Through the engine they would be written, read and written again. Until the commit no
reader knows the files. What a commit leaves that failed expires, as other files that no version has.
"""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from upath import UPath

from sda_platform import failpoints
from sda_platform.lake import durable
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table

_BYTES_PER_FILE: Final = 16 * 2**20
_ROWS_PER_GROUP: Final = 65_536
_CODEC: Final = "zstd"
_CODEC_LEVEL: Final = 1


def write(table: Table, uri: str, rows: pa.Table, attempt: str) -> str:
    """Write ``rows``, at least one, which have all columns of ``table``, into files of the table at ``uri``.

    ``attempt`` is a value of this call alone; the names of the files contain it. Returns the files as Delta's log has
    added files, a JSON array. They have the bounds of the table's bounded columns, and a checksum for each page; they
    are not synced. As many cores as the rows are worth write at once. A failure, as of a full disk, is raised after the
    files of this call were removed.
    """
    directory = location(uri)
    durable.make_directory(directory)
    content = rows.select(table.arrow_schema.names).cast(table.arrow_schema)
    count = max(1, min(os.cpu_count() or 1, content.nbytes // _BYTES_PER_FILE))
    size = -(-content.num_rows // count)
    parts = [content.slice(first, size) for first in range(0, content.num_rows, size)]
    files = [directory / f"part-{number:05d}-{attempt}.{_CODEC}.parquet" for number in range(len(parts))]
    try:
        if len(parts) == 1:
            return json.dumps([_write(table, files[0], parts[0])])
        with ThreadPoolExecutor(len(parts)) as pool:
            return json.dumps(list(pool.map(partial(_write, table), files, parts)))
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        raise


def _write(table: Table, path: UPath, rows: pa.Table) -> dict[str, Any]:
    with path.open("wb") as file:
        pq.write_table(
            rows,
            file,
            row_group_size=_ROWS_PER_GROUP,
            compression=_CODEC,
            compression_level=_CODEC_LEVEL,
            use_dictionary=False,  # it costs as much as it saves, and compaction chooses encodings
            write_statistics=list(table.bounded_columns),
            write_page_checksum=True,
            store_schema=False,
        )
        written_bytes = file.tell()
        failpoints.hit("lake.file_written", table.name)
    return {
        "path": path.name,
        "partitionValues": {},
        "size": written_bytes,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": json.dumps(_statistics(table, rows)),
    }


def _statistics(table: Table, rows: pa.Table) -> dict[str, Any]:
    bounds = {name: pc.min_max(rows[name]).as_py() for name in table.bounded_columns}
    known = {name: each for name, each in bounds.items() if each["min"] is not None}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: each["min"] for name, each in known.items()},
        "maxValues": {name: each["max"] for name, each in known.items()},
        "nullCount": {name: rows[name].null_count for name in bounds},
    }
