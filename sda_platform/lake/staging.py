"""Large Arrow tables on their way to the engine: a Parquet file below the lake, read by the commit, then removed.

Through the connection, a table is serialised, cut into messages and kept whole in the engine's heap; from a file the
engine reads it as it writes, on every core. Nothing here needs to survive: what a crash leaves behind is swept once
it is older than any commit takes, and the batch is made again from its inputs.
"""

import time
import uuid
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.storage import location

_PLACE = "_staging"
_STALE_S = 6 * 3600.0
_ROWS_PER_GROUP = 65_536


class Staging:
    """Staged tables below the lake at ``uri``, of one run."""

    def __init__(self, uri: str) -> None:
        self._place = location(uri) / _PLACE
        self._staged: list[UPath] = []

    def put(self, rows: pa.Table) -> str:
        """Write ``rows`` where the engine can read them; returns the file's address."""
        durable.make_directory(self._place)
        self._sweep()
        path = self._place / f"{uuid.uuid4()}.parquet"
        self._staged.append(path)
        with path.open("wb") as file:
            # Read once, and soon: neither dictionaries nor statistics earn their cost.
            pq.write_table(
                rows,
                file,
                row_group_size=_ROWS_PER_GROUP,
                compression="lz4",
                use_dictionary=False,
                write_statistics=False,
            )
        return str(path)

    def clear(self) -> None:
        """Remove what this run staged: its commit is decided."""
        while self._staged:
            self._staged.pop().unlink(missing_ok=True)

    def _sweep(self) -> None:
        for path in self._place.iterdir() if self._place.exists() else ():
            with suppress(FileNotFoundError):  # its run has removed it meanwhile
                if time.time() - path.stat().st_mtime > _STALE_S:
                    path.unlink(missing_ok=True)
