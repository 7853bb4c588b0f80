"""The metadata that makes a landed segment exist: what is in it, how long it is, and when it was sealed.

A frozen record and its JSON, no file I/O. Unknown keys are ignored, so that a newer lander can add some.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from sda_platform.formats.cutting import count_records
from sda_platform.formats.markings import Marking

SEGMENT_META_VERSION: Final = 1
_TEXT_FIELDS: Final = ("feed", "format", "sha256")
_OPTIONAL_FIELDS: Final = (
    "first_event_time_ns",
    "last_event_time_ns",
    "source_watermark_ns",
    "reprocess_count",
    "priority",
)
PRIORITIES: Final = ("emergency", "high", "low", "deferred")
"""Priorities of segments, the first is taken first; one without a priority counts as high."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who brings records to us, as we know it and not as they state it.

    ``source``: the configured source or client, the user of a command, or the part of the platform. ``peer``: its
    address, None where it is not known, as of datagrams. ``rank`` of element sets, ``norad_ids``, ``classification``
    and ``data_mode``: see `Origin`.
    """

    source: str
    peer: str | None = None
    rank: int | None = None
    norad_ids: tuple[int, ...] | None = None
    classification: str | None = None
    data_mode: str | None = None

    def origin(self, records: int) -> "Origin":
        """Return the origin of a run of records from here."""
        return Origin(records, **asdict(self))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run of a segment's records came from: the configured source, and the peer that sent them.

    ``peer``: the sender's address, None where it is not known, as of datagrams. ``is_conflict``: each repeats the key
    of an earlier record with other content. ``rank``: of element sets, by which one source wins over another; None:
    the source has none. ``norad_ids``: the objects for which the run was taken; of others it states nothing. None: all.
    ``classification`` and ``data_mode``: those of all that the source brings; None: they are as each record states.
    """

    records: int
    source: str
    peer: str | None = None
    is_conflict: bool = False
    rank: int | None = None
    norad_ids: tuple[int, ...] | None = None
    classification: str | None = None
    data_mode: str | None = None

    @property
    def marking(self) -> Marking:
        """What the source states of the run."""
        return Marking(self.classification, self.data_mode)


class MetaError(ValueError):
    """The text is no segment metadata; the message has the key and the reason."""


@dataclass(frozen=True, slots=True)
class SegmentMeta:
    """Facts of one sealed segment; times are ns since the Unix epoch, UTC.

    `sealed_time_ns` is mission time, `sealed_wall_time_ns` wall time (for latency). `source_watermark_ns`:
    the lander expects no record with an earlier sensor time after this segment; None where the feed has no
    such promise. `reprocess_count`: how often these records came back from dead letters; None where they come live.
    `priority`: one of PRIORITIES, None where the lander has none. `origins`: runs of its records in order, None where
    the lander did not state them.
    """

    feed: str
    format: str
    bytes: int
    records: int
    sha256: str
    sealed_time_ns: int
    sealed_wall_time_ns: int
    first_event_time_ns: int | None = None
    last_event_time_ns: int | None = None
    source_watermark_ns: int | None = None
    reprocess_count: int | None = None
    priority: str | None = None
    origins: tuple[Origin, ...] | None = None
    schema_version: int = SEGMENT_META_VERSION

    def to_json(self) -> str:
        """Write one JSON object with sorted keys; `parse_segment_meta` reads it back equal."""
        return json.dumps(asdict(self), sort_keys=True)


def describe_segment(
    data: bytes,
    *,
    feed: str,
    segment_format: str,
    sealed_time_ns: int,
    sealed_wall_time_ns: int,
    first_event_time_ns: int | None = None,
    last_event_time_ns: int | None = None,
    source_watermark_ns: int | None = None,
    sender: Sender | None = None,
) -> SegmentMeta:
    """Metadata of `data`: counts its bytes and records and hashes it; the event times are the caller's."""
    records = count_records(data, segment_format)
    return SegmentMeta(
        feed=feed,
        format=segment_format,
        bytes=len(data),
        records=records,
        sha256=hashlib.sha256(data).hexdigest(),
        sealed_time_ns=sealed_time_ns,
        sealed_wall_time_ns=sealed_wall_time_ns,
        first_event_time_ns=first_event_time_ns,
        last_event_time_ns=last_event_time_ns,
        source_watermark_ns=source_watermark_ns,
        origins=None if sender is None else (sender.origin(records),),
    )


def ranks(origins: Iterable[Origin]) -> list[int]:
    """Return the rank of each record of these runs; 0 where its source has none."""
    return [origin.rank or 0 for origin in origins for _ in range(origin.records)]


def parse_segment_meta(text: str | bytes) -> SegmentMeta:
    """Return the metadata in a JSON text; raises MetaError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MetaError(f"not JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise MetaError(f"not a JSON object but a {type(value).__name__}")
    if value.get("schema_version") != SEGMENT_META_VERSION:
        raise MetaError(f"schema_version is {value.get('schema_version')!r}, only {SEGMENT_META_VERSION} is known")
    checked = {f.name: _checked(f.name, value.get(f.name)) for f in fields(SegmentMeta) if f.name != "origins"}
    return SegmentMeta(**checked, origins=_origins(value.get("origins"), checked["records"]))


def _origins(value: Any, records: int) -> tuple[Origin, ...] | None:
    if value is None:
        return None
    try:
        found = tuple(map(_origin, value))
        is_whole = sum(run.records for run in found) == records and all(run.records >= 0 for run in found)
    except (AttributeError, KeyError, TypeError) as error:
        raise MetaError(f"origins is no list of origins: {error}") from None
    is_typed = all(
        isinstance(run.source, str)
        and all(isinstance(text, str | None) for text in (run.peer, run.classification, run.data_mode))
        and isinstance(run.rank, int | None)
        and _are_numbers(run.norad_ids)
        for run in found
    )
    if not is_whole or not is_typed:
        raise MetaError(f"origins must be runs of its {records} records, each with a source")
    return found


def _origin(run: dict[str, Any]) -> Origin:
    stated = Origin(**{f.name: run[f.name] for f in fields(Origin) if f.name in run})
    return stated if stated.norad_ids is None else replace(stated, norad_ids=tuple(stated.norad_ids))


def _are_numbers(value: Any) -> bool:
    return value is None or all(type(each) is int for each in value)


def _checked(name: str, value: Any) -> Any:
    if value is None:
        if name in _OPTIONAL_FIELDS:
            return None
        raise MetaError(f"{name} is missing")
    if name == "priority":
        if value not in PRIORITIES:
            raise MetaError(f"priority is {ascii(value)[:80]}, must be one of {', '.join(PRIORITIES)}")
        return value
    if name in _TEXT_FIELDS:
        if not isinstance(value, str) or not value:
            raise MetaError(f"{name} is {ascii(value)[:80]}, must be non-empty text")
        if name == "sha256" and (len(value) != 64 or set(value) - set("0123456789abcdef")):
            raise MetaError(f"sha256 is {ascii(value)[:80]}, must be 64 lower-case hexadecimal digits")
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise MetaError(f"{name} must be a 64-bit integer")
    if value < 0 and name in ("bytes", "records"):
        raise MetaError(f"{name} is {value}, must not be negative")
    return value
