"""`sda sensor schedule`: the scheduled observations, as rows or as files that observatory software reads."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.listing import number, word, words
from sda_platform.clock import iso
from sda_platform.formats.observing_tasks import Camera, ObservingTask, encode_sensorkit
from sda_platform.lake.lake import Lake
from sda_platform.plain_rows import plain, write_csv
from sda_platform.runtime.current_rows import scheduled_observations
from sda_platform.serving.record import COLUMNS as ELEMENT_COLUMNS
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import element_set
from sda_platform.whole_files import replace_content

FIELDS: Final = (
    "source_id", "start_utc", "end_utc", "norad_id", "priority_class", "reason", "azimuth_start_deg",
    "azimuth_end_deg", "max_elevation_deg", "request_id",
)  # fmt: skip
SUFFIXES: Final = {"csv": "csv", "json": "json", "sensorkit": "sensorkit.json"}
COLUMNS: Final = (
    word("sensor", "source_id"),
    word("start (UTC)", lambda row: row["start_utc"][:-5].replace("T", " ")),
    word("end", lambda row: row["end_utc"][11:-5]),
    number("object", "norad_id"),
    word("class", "priority_class"),
    words("reason", "reason"),
    number("elevation", lambda row: f"{row['max_elevation_deg']:.0f}°"),
)
Rows = Sequence[Mapping[str, Any]]


def upcoming(lake: Lake, *, after_ns: int) -> list[dict[str, Any]]:
    """Return the scheduled observations that end after ``after_ns``, by their beginning, with times as text."""
    return [
        {**row, "start_utc": iso(row["start_time_ns"]), "end_utc": iso(row["end_time_ns"])}
        for row in scheduled_observations(lake)
        if row["end_time_ns"] > after_ns
    ]


def written(lake: Lake, rows: Rows, encoding: str, camera: Camera = Camera()) -> bytes:  # noqa: B008 - frozen
    """Return the rows as csv, json, or sensorkit (docs/how-to/run-a-schedule.md)."""
    if encoding == "sensorkit":
        return encode_sensorkit(_with_elements(lake, rows), camera)
    chosen = [{name: row[name] for name in FIELDS} for row in rows]
    if encoding == "json":
        return f"{json.dumps(plain(chosen), indent=2)}\n".encode()
    out = io.StringIO()
    write_csv(chosen, out, FIELDS)
    return out.getvalue().encode()


def write_files(directory: Path, lake: Lake, rows: Rows, encoding: str) -> list[Path]:
    """Write one file for each sensor, which replaces the one before at once; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for source_id in sorted({row["source_id"] for row in rows}):
        path = directory / f"{source_id}.{SUFFIXES[encoding]}"
        replace_content(path, written(lake, [row for row in rows if row["source_id"] == source_id], encoding))
        paths.append(path)
    return paths


def _with_elements(lake: Lake, rows: Rows) -> list[tuple[ObservingTask, Any]]:
    wanted = ds.field("norad_id").isin(sorted({row["norad_id"] for row in rows}))
    found = lake.log(ORBITAL_CATALOG).rows(ELEMENT_COLUMNS, wanted).to_pylist()
    sets = {row["norad_id"]: element_set(StoredElements(**row)) for row in found}
    tasks = (ObservingTask(**{name: row[name] for name in ObservingTask.__dataclass_fields__}) for row in rows)
    return [(task, sets[task.norad_id]) for task in tasks if task.norad_id in sets]
