"""Whether the content of a data file is what was written: by its footer, or by every column and checksum of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from sda_platform.lake import durable, hadoop_checksums
from sda_platform.lake.delta_log import hadoop_checksum


class ContentDamaged(Exception):
    """The content is not what was written; the text has the difference, without the file's name."""


def rows_by_footer(path: UPath) -> int:
    """Number of rows in a Parquet file's footer. Raises ContentDamaged if it cannot be read."""
    with _reading(), path.open("rb") as file:
        return int(pq.read_metadata(file).num_rows)


def rows_by_columns(path: UPath, names: frozenset[str]) -> int:
    """Return rows of a Parquet file, of which every page is read from the disk and compared with its checksum.

    Spark writes a checksum with each page. On a local disk Hadoop keeps checksums of the whole file, and so does a
    merge of files. Raises ContentDamaged where a checksum differs, a page cannot be decoded, or a column is not one of
    the table's ``names``.
    """
    durable.forget_cached(path)
    _compare_hadoop_checksums(path)
    with _reading(), path.open("rb") as file, pq.ParquetFile(file, page_checksum_verification=True) as content:
        unknown = sorted(set(content.schema_arrow.names) - names)
        if unknown:
            raise ContentDamaged(f"has a column {unknown[0]!r}, which the table does not have")
        return sum(batch.num_rows for batch in content.iter_batches(use_threads=False))


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:  # the last: the name of a column
        raise ContentDamaged(f"cannot be read ({' '.join(str(error).split())})") from error


def _compare_hadoop_checksums(path: UPath) -> None:
    """Raise ContentDamaged where Hadoop kept checksums of the file and one differs."""
    kept = hadoop_checksum(path)
    sums = kept.read_bytes() if kept.exists() else b""
    if not sums.startswith(hadoop_checksums.MARK):
        return
    with _reading(), path.open("rb") as file:
        is_damaged = hadoop_checksums.differ(file, sums)
    if is_damaged:
        raise ContentDamaged("differs from the checksums that Hadoop kept of it")
