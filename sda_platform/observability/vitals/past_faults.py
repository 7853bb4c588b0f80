"""The faults of the past: `<home>/faults.jsonl` has a line for each that began or was over, with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sda_platform import json_lines
from sda_platform.observability.vitals.notices import Notice, NoticeState

_MOST_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class PastFault:
    """A fault of ``subject``: when it began and was over, in mission time; None: it lasts, or began before the file."""

    vital: str
    subject: str
    side: str
    begun_time_ns: int | None
    over_time_ns: int | None
    text: str


def keep(home: Path, notices: Sequence[Notice], time_ns: int) -> None:
    """Append what began or was over at the mission time ``time_ns``. Raises OSError."""
    lines = [
        {"time_ns": time_ns, "state": notice.state, "fault": [notice.vital, subject, notice.side], "text": text}
        for notice in notices
        if notice.state != NoticeState.LASTS and not notice.escalates
        for subject, text in zip(notice.subjects, notice.details, strict=True)
    ]
    if lines:
        json_lines.append(home / json_lines.PAST_FAULTS, *lines, most_bytes=_MOST_BYTES)


def past_faults(home: Path) -> list[PastFault]:
    """Return every fault that the file has, the newest first."""
    found: list[PastFault] = []
    lasting: dict[tuple[str, str, str], int] = {}
    for line in json_lines.read(home / json_lines.PAST_FAULTS):
        vital, subject, side = line["fault"]
        key = vital, subject, side
        place = lasting.pop(key, None)
        if line["state"] == NoticeState.OVER and place is not None:
            found[place] = replace(found[place], over_time_ns=line["time_ns"])
            continue
        is_begun = line["state"] == NoticeState.BEGUN
        if is_begun:
            lasting[key] = len(found)
        begun_ns, over_ns = (line["time_ns"], None) if is_begun else (None, line["time_ns"])
        found.append(PastFault(vital, subject, side, begun_ns, over_ns, line["text"]))
    return found[::-1]
