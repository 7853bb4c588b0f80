"""Outcomes of rehearsed faults, as lines of JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import integer_field, json_object, number_field, text_field
from sda_platform.formats.records import RawRecord


@dataclass(frozen=True)
class GameDay:
    """A fault that was rehearsed at ``started_time_ns``; None: it was not detected, or not recovered from, in time.

    ``detect_within_s`` 0: it is no failure, and must not be declared as one.
    ``skipped``: why it was not rehearsed; empty: it was.
    """

    fault: str
    started_time_ns: int
    detected_after_s: float | None
    recovered_after_s: float | None
    detect_within_s: float
    recover_within_s: float
    skipped: str = ""


def read_game_day(record: RawRecord) -> GameDay:
    """Return the outcome on one line; raises RecordError."""
    fields = json_object(record.payload)
    return GameDay(
        fault=text_field(fields, "fault"),
        started_time_ns=integer_field(fields, "started_time_ns"),
        detected_after_s=_seconds_or_none(fields, "detected_after_s"),
        recovered_after_s=_seconds_or_none(fields, "recovered_after_s"),
        detect_within_s=_seconds(fields, "detect_within_s"),
        recover_within_s=_seconds(fields, "recover_within_s"),
        skipped=text_field(fields, "skipped") if fields.get("skipped") else "",
    )


def encode_game_days(outcomes: Iterable[GameDay]) -> bytes:
    """Outcomes as lines of JSON; equal ones give equal bytes."""
    return b"".join(json.dumps(asdict(each), sort_keys=True).encode() + b"\n" for each in outcomes)


def _seconds(fields: Mapping[str, Any], name: str) -> float:
    value = number_field(fields, name)
    if value < 0.0:
        raise RecordError("bad_field", f"{name} is {value:g}, must not be negative")
    return value


def _seconds_or_none(fields: Mapping[str, Any], name: str) -> float | None:
    return None if fields.get(name) is None else _seconds(fields, name)
