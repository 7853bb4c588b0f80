"""`sda screen`: the objects of a file that are screened without a platform, and the files that tell what was found."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.clock import iso
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.ingest.contents import UnreadableContent, read_chunks
from sda_platform.ingest.partner_files import identify
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import SGP4_ERRORS
from sda_platform.orbits.screening.search import Screening

_OUTPUTS = {".csv", ".parquet"}


class ScreeningInputError(ValueError):
    """A file that cannot be screened or written; the text names it and says why."""


@dataclass(frozen=True)
class ElementFile:
    """The newest element set of each object in a file, and what of the file could not be read."""

    elements: ElementSets
    unreadable: tuple[str, ...]
    superseded: int


def read_elements(path: Path) -> ElementFile:
    """Read OMM (CSV, JSON, KVN, XML, Parquet) or TLE, compressed or not: any file of elements that can be landed.

    Raises PartnerFileError where its name does not tell the format, and ScreeningInputError where it cannot be read or
    holds no element set.
    """
    file = identify(path, feed=ELEMENTS_FEED)
    try:
        data = b"".join(read_chunks(path, file.format, lambda _position: None))
    except UnreadableContent as error:
        raise ScreeningInputError(f"{path}: cannot be read: {error}") from None
    rows = decode_element_sets(data, segment_format=file.format)
    broken = rows.filter(pc.is_valid(rows.column("error_kind"))).select(["record_number", "error"]).to_pylist()
    sound = rows.filter(pc.is_null(rows.column("error_kind")))
    if not sound.num_rows:
        reason = f": {broken[0]['error']}" if broken else ""
        raise ScreeningInputError(f"{path}: holds no element set{reason}")
    newest = _newest(sound)
    names = [name for name in ElementSets.__dataclass_fields__ if name in newest.column_names]
    return ElementFile(
        ElementSets.from_columns(arrays(newest, names)),
        tuple(f"{path} record {row['record_number']}: {row['error']}" for row in broken),
        sound.num_rows - newest.num_rows,
    )


def write_events(screening: Screening, elements: ElementSets, out: Path) -> list[Path]:
    """Write the events to ``out`` (.csv or .parquet), and beside it, where there are any, co-located pairs and objects
    that SGP4 refused. Returns the files written. Raises ScreeningInputError for another ending."""
    check_output(out)
    norad_id, events, together, refused = elements.norad_id, screening.events, screening.colocated, screening.failures
    tables = {
        out: {
            "norad_lo": norad_id[events.lo],
            "norad_hi": norad_id[events.hi],
            "tca_utc": [iso(t) for t in events.tca_time_ns.tolist()],
            "miss_km": events.miss_distance_km,
            "rel_speed_km_s": events.relative_speed_km_s,
        },
        out.with_suffix(".colocated" + out.suffix): {
            "norad_lo": norad_id[together.lo],
            "norad_hi": norad_id[together.hi],
            "first_seen_utc": [iso(t) for t in together.time_ns.tolist()],
        },
        out.with_suffix(".refused" + out.suffix): {
            "norad_id": norad_id[refused.index],
            "from_utc": [iso(t) for t in refused.time_ns.tolist()],
            "reason": [SGP4_ERRORS.get(code, "unknown") for code in refused.error.tolist()],
        },
    }
    written = []
    for path, columns in tables.items():
        table = pa.table(columns)
        if path == out or table.num_rows:
            _write(table, path)
            written.append(path)
    return written


def check_output(out: Path) -> None:
    """Raise ScreeningInputError unless ``out`` can be written: better before a long search than after it."""
    if out.suffix not in _OUTPUTS:
        raise ScreeningInputError(f"{out}: can be written as {' or '.join(sorted(_OUTPUTS))}")
    if not out.absolute().parent.is_dir():
        raise ScreeningInputError(f"{out}: there is no directory {out.parent}")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _newest(rows: pa.Table) -> pa.Table:
    """Of each object the set with the latest epoch, by catalogue number."""
    order = [("norad_id", "ascending"), ("epoch_time_ns", "ascending"), ("record_number", "ascending")]
    ordered = rows.sort_by(order)
    ids = ordered.column("norad_id").to_numpy()
    is_last = np.append(ids[1:] != ids[:-1], True)
    return ordered.filter(pa.array(is_last))


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        table.to_pandas().to_csv(path, index=False)
