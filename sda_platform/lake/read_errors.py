"""What a read of a table's data files can end with, as errors with the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from sda_platform.lake.errors import InvariantError, VersionGone
from sda_platform.lake.object_store import is_failure


@contextmanager
def reading(table: str, version: int | None = None) -> Iterator[None]:
    """Raise VersionGone or InvariantError, with the remedy, for what a read of data files reports."""
    try:
        yield
    except FileNotFoundError as error:
        if version is None:
            raise
        raise gone(table, version) from error
    except (OSError, pa.ArrowInvalid) as error:  # the second for a file without its footer
        if (isinstance(error, OSError) and error.errno is not None) or is_failure(error):
            raise  # the system's or the network's, not the content's
        raise InvariantError(
            f"{table}: a data file is not as it was written ({error}); `sda lake verify --deep` names the file, and "
            "docs/explanation/exactly-once.md describes the remedy"
        ) from error


def gone(table: str, version: int) -> VersionGone:
    """Return the error for a version that cannot be read any more."""
    return VersionGone(
        f"{table}: version {version} cannot be read any more: VACUUM removed its files, or its log was cut; only later "
        "commits can be replayed"
    )
