"""What a format declares: its name, where it lands, how it is recognised, framed, read and written."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sda_platform.formats.decoded import Decoded
from sda_platform.formats.records import Framing, RawRecord

Content = Literal[
    "observation",
    "telemetry",
    "element set",
    "ephemeris",
    "orbit parameters",
    "tracking data",
    "conjunction",
    "satellite",
    "edit",
    "ground event",
    "membership event",
    "acknowledgement",
    "metric value",
    "rehearsed fault",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format of the platform; `registry.FORMATS` lists all.

    `zone` is the landing zone that carries it. Files end with one of `suffixes`, segments with the first. Of several
    formats with a suffix the one is meant whose `begins` is found in the beginning of the file. `row_column`: rows of a
    Parquet file that have this column are read as the JSON of this format. ``is_named``: a record may have its object
    only in the name of its file, which lands with it (`tabulated_paths.name_line`).
    """

    name: str
    title: str
    content: Content
    zone: str
    suffixes: tuple[str, ...]
    framing: Framing
    begins: re.Pattern[bytes] | None = None
    row_column: str | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationFormat(Format):
    """A format of one kind of sensor, decoded by columns: n payloads to n rows."""

    source_kind: str
    decode: Callable[[Sequence[bytes]], Decoded]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat(Format):
    """A format that is decoded record by record.

    `read` returns what one record holds, and raises RecordError. `write` returns a file of several such values, and
    raises ValueError for what the format cannot hold; None: the format is only read. Formats of one content read and
    write the same values.
    """

    read: Callable[[RawRecord], Any]
    write: Callable[[Sequence[Any]], bytes] | None = None
