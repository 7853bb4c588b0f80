"""What a conjunction data message states of its objects beside their states: designator, manoeuvres, tracking.

By keyword of CCSDS 508.0-B-1, tables 3-3 and 3-4, from the catalogue, the fleet and the windows of the tracks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.formats.fleet import ProtectedObject
from sda_platform.formats.instants import format_epoch
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.units import SECOND_NS

StatedObjects = Mapping[int, Mapping[str, str]]
"""Values by keyword, of each object by catalogue number."""
_COUNTS: Final = ("radar_count", "optical_count", "isl_count", "rejected_count")
_ANSWERS: Final = {True: "YES", False: "NO"}


def stated_objects(
    lake: Lake, assessments: Sequence[Mapping[str, Any]], fleet: Iterable[ProtectedObject] = ()
) -> StatedObjects:
    """Describe the objects of ``assessments`` for messages; ``fleet`` states which of them can manoeuvre."""
    numbers = {int(each[f"norad_id_{n}"]) for each in assessments for n in (1, 2)}
    found: dict[int, dict[str, str]] = {number: {} for number in numbers}
    columns = ["norad_id", "international_designator"]
    for row in lake.log(ORBITAL_CATALOG).rows(columns, ds.field("norad_id").isin(sorted(numbers))).to_pylist():
        if row["international_designator"]:
            found[row["norad_id"]]["INTERNATIONAL_DESIGNATOR"] = row["international_designator"]
    for member in fleet:
        if member.norad_id in found and member.manoeuvrable is not None:
            found[member.norad_id]["MANEUVERABLE"] = _ANSWERS[member.manoeuvrable]
    fits = {each[f"track_id_{n}"] for each in assessments for n in (1, 2) if each.get(f"track_id_{n}")}
    for row in _windows(lake, fits):
        found.get(row["norad_id"], {}).update(_tracking(row))
    return found


def _windows(lake: Lake, fits: Iterable[str]) -> list[dict[str, Any]]:
    wanted = sorted(fits)
    if not wanted:
        return []
    names = ["norad_id", "sequence", "window_start_ns", "epoch_time_ns", *_COUNTS]
    chosen = ds.field("fit_id").isin(wanted) & (ds.field("op") == INSERT)
    rows: list[dict[str, Any]] = lake.log(FUSED_TRACKS).rows(names, chosen).to_pylist()
    return sorted(rows, key=lambda row: int(row["sequence"]))


def _tracking(window: Mapping[str, Any]) -> dict[str, str]:
    """Return the last observations lie in the window, whose middle is the epoch of its fit."""
    start_ns, middle_ns = int(window["window_start_ns"]), int(window["epoch_time_ns"])
    used = sum(int(window[name]) for name in _COUNTS[:-1])
    return {
        "TIME_LASTOB_START": _instant(start_ns),
        "TIME_LASTOB_END": _instant(2 * middle_ns - start_ns),
        "OBS_AVAILABLE": str(used + int(window["rejected_count"])),
        "OBS_USED": str(used),
    }


def _instant(time_ns: int) -> str:
    millisecond_ns = SECOND_NS // 1000
    return format_epoch(time_ns // millisecond_ns * millisecond_ns)
