"""Why a request has no window: its object decayed, its set is not usable, the search ends, or no sensor sees it.

The rows of the schedule are made clear to people before they are committed: by code, and in words.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import iso
from sda_platform.orbits.propagation import SGP4_ERRORS
from sda_platform.orbits.usable_spans import STATED_DECAY
from sda_platform.tasking.scheduling import NO_WINDOW
from sda_platform.tasking.tables import BEYOND_HORIZON, DECAYED, NO_ELEMENTS, SET_UNUSABLE

_BY_DRAG: Final = (1, 4, 6)
"""What SGP4 answers when drag has used up an orbit: its shape, or its radius, is none any more."""
_MINUTE: Final = 16


def with_causes(
    rows: Iterable[dict[str, Any]], catalogue: Catalogue | None, start_ns: int, end_ns: int
) -> list[dict[str, Any]]:
    """Add the cause to ``rows`` of the schedule without a window; windows were searched in [start, end].

    ``catalogue`` is what windows are searched with; None where a commit of an earlier version did not read it.
    """
    found = [dict(row) for row in rows]
    concerned = [row for row in found if row.get("unserved_reason") == NO_WINDOW]
    if catalogue is None or not concerned:
        return found
    numbers = np.unique([row["norad_id"] for row in concerned])
    places = catalogue.positions(numbers)
    part = catalogue.propagator.take(places)
    _, until_ns, codes = part.usable_parts(start_ns, end_ns)
    known = {
        int(number): (int(epoch_ns), int(until), int(code))
        for number, epoch_ns, until, code in zip(
            part.elements.norad_id, part.elements.epoch_time_ns, until_ns, codes, strict=True
        )
    }
    for row in concerned:
        row["unserved_reason"], row["unserved_detail"] = _cause(row, known.get(row["norad_id"]), end_ns)
    return found


def _cause(row: Mapping[str, Any], known: tuple[int, int, int] | None, end_ns: int) -> tuple[str, str]:
    if known is None:
        return NO_ELEMENTS, "the catalogue has no element set of it"
    epoch_ns, until_ns, code = known
    if code and until_ns < min(row["deadline_time_ns"], end_ns):
        reason = SGP4_ERRORS.get(code, "unknown")
        has_decayed = code == STATED_DECAY or (code in _BY_DRAG and until_ns > epoch_ns)
        ends = f"its set of {_minute(epoch_ns)} is usable until {_minute(until_ns)}"
        return (DECAYED, f"decay: {ends} ({reason})") if has_decayed else (SET_UNUSABLE, f"{ends} ({reason})")
    if row["deadline_time_ns"] > end_ns:
        return BEYOND_HORIZON, f"no sensor can see it until {_minute(end_ns)}, and later passes are not searched yet"
    return NO_WINDOW, "no sensor can see it in time"


def _minute(time_ns: int) -> str:
    return f"{iso(time_ns)[:_MINUTE]}Z"
