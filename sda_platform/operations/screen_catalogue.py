"""`sda screen`: close approaches among the objects of a file, without a platform.

The same search as the conjunction assets', with processes where those have Spark tasks.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
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
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.orbits.screening.search import Screening, joined, spans
from sda_platform.orbits.screening.volumes import Volume, screen_volume

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


def screen_elements(
    elements: ElementSets,
    work: Sequence[tuple[Volume, npt.NDArray[np.int64]]],
    start_ns: int,
    end_ns: int,
    *,
    processes: int,
    tell: Callable[[int, int], None],
) -> Screening:
    """Screen primaries (rows, each list with its volume) against all over [start, end).

    ``tell`` hears how many tasks are done, and of how many.
    """
    tasks = [(volume, primaries, *span) for volume, primaries in work for span in spans(start_ns, end_ns)]
    parts = []
    for part in _mapped(elements, tasks, min(processes, len(tasks))):
        parts.append(part)
        tell(len(parts), len(tasks))
    return joined(Propagator(elements), parts)


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


_propagator: Propagator
_Task = tuple[Volume, npt.NDArray[np.int64], int, int]


def _mapped(elements: ElementSets, tasks: Sequence[_Task], processes: int) -> Iterator[Screening]:
    if processes == 1:
        _start_worker(elements)
        yield from map(_carry_out, tasks)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (elements,)) as pool:
        yield from pool.map(_carry_out, tasks)


def _start_worker(elements: ElementSets) -> None:
    global _propagator
    _propagator = Propagator(elements)


def _carry_out(task: _Task) -> Screening:
    volume, primaries, start_ns, end_ns = task
    return screen_volume(_propagator, primaries, np.arange(len(_propagator)), start_ns, end_ns, volume)


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
