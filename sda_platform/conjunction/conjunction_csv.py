"""A list of conjunctions as CSV: the columns of the console and of `sda alert list`, in one order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TextIO

from sda_platform.clock import iso
from sda_platform.plain_rows import write_csv
from sda_platform.units import SECOND_NS

_COLUMNS: Final = (
    "event_id", "revision", "risk", "rule", "status", "change", "norad_id_1", "object_name_1", "norad_id_2",
    "object_name_2", "tca_utc", "miss_distance_km", "radial_miss_km", "in_track_miss_km", "cross_track_miss_km",
    "collision_probability", "maximum_probability", "relative_speed_km_s", "state_source_1", "data_of_1",
    "data_age_1_s", "state_source_2", "data_of_2", "data_age_2_s", "stated_probability", "stated_by",
    "acknowledged_by", "assigned_to", "comment", "classification", "data_mode",
)  # fmt: skip
_THREE_DIGITS: Final = ("collision_probability", "maximum_probability", "stated_probability")
_METRES: Final = ("miss_distance_km", "radial_miss_km", "in_track_miss_km", "cross_track_miss_km")
Row = Mapping[str, Any]


def write_conjunctions(rows: Iterable[Row], now_ns: int, stream: TextIO) -> None:
    """Write conjunctions, with what is not known of them empty; what a spreadsheet would execute is quoted."""
    write_csv(_lines(rows, now_ns), stream, _COLUMNS)


def _lines(rows: Iterable[Row], now_ns: int) -> Iterator[dict[str, Any]]:
    for row in rows:
        found = {name: row.get(name) for name in _COLUMNS}
        found |= {name: float(f"{value:.2e}") for name in _THREE_DIGITS if (value := row.get(name)) is not None}
        found |= {name: round(value, 3) for name in _METRES if (value := row.get(name)) is not None}
        found |= {f"data_age_{n}_s": _age_s(row.get(f"data_time_{n}_ns"), now_ns) for n in (1, 2)}
        yield {**found, "tca_utc": iso(row["tca_time_ns"])}


def _age_s(time_ns: int | None, now_ns: int) -> float | None:
    return None if time_ns is None else round((now_ns - time_ns) / SECOND_NS, 3)
