"""Bounds of what one file of a partner may cost: what it expands to, its records, and what must stay free."""

import errno
import shutil
from dataclasses import dataclass
from typing import Final

from upath import UPath

from sda_platform.formats.cutting import LEAST_RECORD_BYTES, most_records
from sda_platform.landing.listing import is_local

_FEW_BYTES: Final = 16 * 2**20


class BoundExceeded(ValueError):
    """A file costs more than a partner's file may; the text says of what, and how much is allowed."""


@dataclass(frozen=True)
class PartnerBounds:
    """What a file may expand to (bytes, and times its own size), its records, and the bytes that it leaves free.

    Text expands to ten or twenty times its compressed size. Sixteen bytes are fewer than any format needs for a record.
    """

    expanded_bytes: int = 8 * 2**30
    ratio: float = 100.0
    records: int = 50_000_000
    least_free_bytes: int = 0

    def check_expansion(self, file_bytes: int, expanded_bytes: int) -> None:
        """Raises BoundExceeded for a file of ``file_bytes`` that expands to ``expanded_bytes`` or more."""
        if expanded_bytes > min(self.expanded_bytes, max(self.ratio * file_bytes, _FEW_BYTES)):
            raise BoundExceeded(
                f"expands to more than {expanded_bytes:,} bytes; {self.ratio:g} times its size and "
                f"{self.expanded_bytes:,} bytes are allowed"
            )

    def check_records(self, size: int, records: int, records_in_all: int) -> None:
        """Raises BoundExceeded for ``size`` bytes of a file that hold ``records``."""
        if records > most_records(size):
            raise BoundExceeded(f"has {records:,} records in {size:,} bytes, fewer than {LEAST_RECORD_BYTES} for each")
        if records_in_all > self.records:
            raise BoundExceeded(f"has more than {self.records:,} records; land it in parts")

    def check_room(self, place: UPath, size: int) -> None:
        """Raises OSError where ``size`` more bytes would leave less than the floor: the rest is for live records."""
        if self.least_free_bytes and is_local(place):
            above = next(each for each in (place, *place.parents) if each.exists())
            free = shutil.disk_usage(str(above)).free
            if free - size < self.least_free_bytes:
                text = f"only {free:,} bytes are free, of which {self.least_free_bytes:,} are kept for live records"
                raise OSError(errno.ENOSPC, text, str(place))
