"""What a partner hands over in T0: files, some damaged on their way, some sent again."""

import hashlib
from dataclasses import dataclass, replace

from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.segments import SegmentMeta, describe_segment
from sda_platform_tests.support.segments import START_NS


@dataclass(frozen=True)
class Delivery:
    """A file that a partner sends until the platform has accepted it.

    ``damaged_data`` is what arrives where the transfer fails: as many bytes and records, but not the same.
    """

    feed: str
    name: str
    data: bytes
    meta: SegmentMeta
    damaged_data: bytes | None = None

    @property
    def arriving(self) -> bytes:
        """The bytes that arrive."""
        return self.damaged_data or self.data

    @property
    def known_as(self) -> str:
        """The hash by which the platform knows it: of its bytes, or, where it came damaged, of zone, name and bytes."""
        prefix = f"{self.feed}/{self.name}\0".encode() if self.damaged_data else b""
        return hashlib.sha256(prefix + self.arriving).hexdigest()

    def again(self, name: str) -> "Delivery":
        """The same file sent once more, sound, under ``name``."""
        return replace(self, name=name, damaged_data=None)


def delivery(number: int, feed: str, name: str, records: int, is_damaged: bool = False) -> Delivery:
    """File ``number`` of a history; no two of different numbers have the same bytes, damaged or not."""
    payloads = [b"%d of file %d" % (n, number) for n in range(records)]
    data = pack_records(payloads, [START_NS] * records)
    meta = describe_segment(
        data,
        feed=feed,
        segment_format="isl-frames" if feed == "isl" else "radar-frames",
        sealed_time_ns=START_NS,
        sealed_wall_time_ns=START_NS,
    )
    # No digit has the top bit.
    return Delivery(feed, name, data, meta, data[:-1] + bytes([data[-1] ^ 0x80]) if is_damaged else None)
