"""`sda screen`: read the objects to screen from a file, and write the events to files. Needs no platform."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.sources import source_priority
from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.clock import iso
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.lake.arrow import arrays
from sda_platform.landing.contents import UnreadableContent, read_chunks
from sda_platform.landing.partner_files import identify
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import degrees_of_freedom, element_covariance_rtn, element_tails
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.in_force import Terms, terms_in_force
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.orbits.risk.gaussian_parts import assess_passes
from sda_platform.orbits.risk.object_kinds import HARD_BODY_RADIUS_M, object_type
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.encounter import relative_states
from sda_platform.orbits.screening.search import ScreeningResult
from sda_platform.plain_rows import write_csv
from sda_platform.units import DAY_NS

OLD_DAYS: Final = 7.0
"""Errors of element sets are measured up to a week; after it sets of low orbits are off by tens of kilometres."""
_OUTPUTS = {".csv", ".parquet"}


@dataclass(frozen=True)
class ElementFile:
    """The element sets of a file that are in force in a window, with their terms, and what could not be read.

    ``names`` are the objects' names, row by row; ``left_out`` counts sets that are in force at no time of the window.
    """

    elements: ElementSets
    terms: Terms
    names: tuple[str, ...]
    unreadable: tuple[str, ...]
    left_out: int


def read_elements(path: Path, start_ns: int, end_ns: int) -> ElementFile:
    """Read OMM (CSV, JSON, KVN, XML, Parquet) or TLE, compressed or not: any file of elements that can be landed.

    Raises PartnerFileError if the name has no known format, and ClickException if the file cannot be read or has
    no element set.
    """
    file = identify(path, feed=ELEMENTS_FEED)
    try:
        data = b"".join(read_chunks(path, file.format, lambda _position: None))
    except UnreadableContent as error:
        raise click.ClickException(f"{path}: cannot be read: {error}") from None
    rows = decode_element_sets(data, segment_format=file.format)
    broken = rows.filter(pc.is_valid(rows.column("error_kind"))).select(["record_number", "error"]).to_pylist()
    sound = rows.filter(pc.is_null(rows.column("error_kind")))
    if not sound.num_rows:
        reason = f": {broken[0]['error']}" if broken else ""
        raise click.ClickException(f"{path}: holds no element set{reason}")
    terms = _terms(sound, start_ns, end_ns)
    chosen = sound.take(pa.array(terms.row))
    names = [name for name in ElementSets.__dataclass_fields__ if name in chosen.column_names]
    return ElementFile(
        ElementSets.from_columns(arrays(chosen, names)),
        dataclasses.replace(terms, row=np.arange(len(terms.row))),
        tuple(name or "" for name in chosen.column("object_name").to_pylist()),
        tuple(f"{path} record {row['record_number']}: {row['error']}" for row in broken),
        sound.num_rows - chosen.num_rows,
    )


def events_of(screening: ScreeningResult, file: ElementFile) -> pa.Table:
    """Return the events with names, the miss in the axes of the first object, and 2D Pc by the errors of element sets.

    The radii are those assumed for the kind that the name shows.
    """
    events, elements, tca_ns = screening.events, file.elements, screening.events.tca_time_ns
    sides, propagator = (events.lo, events.hi), Propagator(elements)
    states = [propagator.at(rows, tca_ns)[1:] for rows in sides]
    relative = relative_states(*states[0], *states[1])
    covariances = [
        rtn_to_teme(element_covariance_rtn(propagator, rows, tca_ns, *state), *state)
        for rows, state in zip(sides, states, strict=True)
    ]
    tails = [
        element_tails(degrees_of_freedom(propagator, rows), *state) for rows, state in zip(sides, states, strict=True)
    ]
    kind_radius_m = np.array([HARD_BODY_RADIUS_M[object_type(name)] for name in file.names])
    radius_km = (kind_radius_m[events.lo] + kind_radius_m[events.hi]) / 1000
    passes = Encounters(*states[0], covariances[0], *states[1], covariances[1], radius_km, tails=(tails[0], tails[1]))
    risk = assess_passes(passes)
    miss = dict(zip(("radial_km", "in_track_km", "cross_track_km"), relative.position_rtn_km.T, strict=True))
    names = np.array(file.names, dtype=object)
    objects = {
        f"{name}_{n}": values[rows]
        for n, rows in enumerate(sides, 1)
        for name, values in {"norad_id": elements.norad_id, "object_name": names}.items()
    }
    return pa.table(
        {
            **objects,
            "tca_utc": [iso(t) for t in tca_ns.tolist()],
            "miss_km": events.miss_distance_km,
            **miss,
            "rel_speed_km_s": events.relative_speed_km_s,
            "pc_2d": risk.probability,
            "largest_pc_2d": risk.maximum_probability,
            **{f"age_{n}_days": _age_days(elements, rows, tca_ns) for n, rows in enumerate(sides, 1)},
        }
    )


def write_events(found: pa.Table, screening: ScreeningResult, elements: ElementSets, out: Path) -> list[Path]:
    """Write the events to ``out`` (.csv or .parquet); write co-located pairs and objects that SGP4 refused next to it.

    Returns the files written. Raises ClickException for another suffix.
    """
    check_output(out)
    norad_id, together, refused = elements.norad_id, screening.colocated, screening.failures
    tables = {
        out: found,
        out.with_suffix(".colocated" + out.suffix): {
            "norad_id_1": norad_id[together.lo],
            "norad_id_2": norad_id[together.hi],
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
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        if path == out or table.num_rows:
            _write(table, path)
            written.append(path)
    return written


def _age_days(elements: ElementSets, rows: IntArray, time_ns: IntArray) -> FloatArray:
    """Return the ages (n,) of the sets ``rows`` at the instants ``time_ns``, days."""
    return np.round((time_ns - elements.epoch_time_ns[rows]) / DAY_NS, 3)


def check_output(out: Path) -> None:
    """Raise ClickException unless ``out`` can be written: better before a long search than after it."""
    if out.suffix not in _OUTPUTS:
        raise click.ClickException(f"{out}: can be written as {' or '.join(sorted(_OUTPUTS))}")
    if not out.absolute().parent.is_dir():
        raise click.ClickException(f"{out}: there is no directory {out.parent}")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _terms(rows: pa.Table, start_ns: int, end_ns: int) -> Terms:
    """When each set is in force; of equal epochs the higher source, set number and record counts."""
    numbers = [rows.column(name).to_numpy() for name in ("norad_id", "epoch_time_ns")]
    rank = [
        np.array([source_priority(name) for name in rows.column("originator").to_pylist()]),
        pc.fill_null(rows.column("element_set_number"), 0).to_numpy(),
        rows.column("record_number").to_numpy(),
    ]
    return terms_in_force(numbers[0], numbers[1], rank, start_ns, end_ns)


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            write_csv(table.to_pylist(), file, table.column_names)


def age_warning(norad_id: IntArray, epoch_ns: IntArray, from_ns: IntArray, until_ns: IntArray) -> str | None:
    """Warn of sets that are used more than a week from their epochs, between ``from_ns`` and ``until_ns`` (n,).

    None: none is.
    """
    if not len(norad_id):
        return None
    days = np.maximum(np.abs(from_ns - epoch_ns), np.abs(until_ns - epoch_ns)) / DAY_NS
    old = days > OLD_DAYS
    if not old.any():
        return None
    objects, every = len(np.unique(norad_id[old])), len(np.unique(norad_id))
    oldest = int(np.argmax(days))
    which = f"{norad_id[oldest]} is {days[oldest]:,.1f} days from its epoch"
    return (
        f"warning: the element sets of {objects:,} of {every:,} objects are more than {OLD_DAYS:g} days from their "
        f"epoch in the span (that of {which}): they may be tens of kilometres off, and approaches and passes missing"
    )
