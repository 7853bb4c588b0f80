"""Rows of a table that gauges follow from, read anew when the table has a new commit."""

from collections.abc import Sequence
from typing import Any

import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from sda_platform.lake.correction_log import current_rows
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table


class RowsAtHead:
    """The rows ``where`` an expression holds, with some ``columns``; of a correction log those that are current."""

    def __init__(self, lake: Lake, table: Table, columns: Sequence[str], where: ds.Expression | None = None) -> None:
        self._lake, self.table, self._columns, self._where = lake, table, columns, where
        self._key = table.key[0] if "op" in (each.name for each in table.columns) else ""
        self._sequence = 0
        self.rows: list[dict[str, Any]] = []

    def refresh(self, sequence: int) -> Exception | None:
        """Read the rows as of the commit ``sequence``, if it is new; why they could not be read, and are read again."""
        if sequence == self._sequence:
            return None
        columns = [*self._columns, *((self._key, "sequence", "op") if self._key else ())]
        try:
            found = self._lake.log(self.table).rows(columns, where=self._where)
        except (LakeError, DeltaError, OSError) as error:
            return error
        self.rows = (current_rows(found, self._key) if self._key else found).to_pylist()
        self._sequence = sequence
        return None
