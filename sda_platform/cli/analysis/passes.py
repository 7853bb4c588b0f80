"""`sda passes`: when the objects of a file or of the lake's catalogue pass over a site."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.analysis.screen_catalogue import age_warning, read_elements
from sda_platform.clock import iso
from sda_platform.lake.lake import Lake
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.orbits.sensing.passes import PassWindows, find_passes, site_sensor
from sda_platform.units import DAY_NS, HOUR_NS


@dataclass(frozen=True)
class ObserverSite:
    """A place on the ground (WGS84), and the least elevation at which it observes."""

    latitude_deg: float
    longitude_deg: float
    altitude_m: float
    min_elevation_deg: float


@dataclass(frozen=True)
class FoundPasses:
    """The passes by acquisition time, and for each set that is not usable to the end of the search why it is not.

    ``old`` warns of sets far from their epoch.
    """

    passes: list[dict[str, Any]]
    ends: list[str]
    old: str | None = None


def passes_over(
    site: ObserverSite, start_ns: int, hours: float, source: Path | Lake, objects: tuple[int, ...] = ()
) -> FoundPasses:
    """Passes of the objects of a file of element sets, or of a lake (all, if none is named).

    Each has norad_id, aos_utc, tca_utc, los_utc (ISO 8601), max_elevation_deg, elements_epoch_utc and
    elements_age_days at acquisition.

    Raises ClickException where there are no element sets, or none of an object that is named.
    """
    end_ns = start_ns + round(hours * HOUR_NS)
    propagator, terms = _sets_in_force(source, start_ns, end_ns)
    if objects:
        unknown = sorted(set(objects) - set(propagator.elements.norad_id.tolist()))
        if unknown:
            raise click.ClickException(f"no element set of {', '.join(map(str, unknown))}")
        chosen = np.flatnonzero(np.isin(propagator.elements.norad_id, objects))
        propagator, terms = propagator.take(chosen), None if terms is None else terms.take(chosen)
    place = site_sensor(site.latitude_deg, site.longitude_deg, site.altitude_m, site.min_elevation_deg)
    found = find_passes(propagator, [place], start_ns, end_ns, terms=terms)
    rows = _rows(found.take(np.argsort(found.aos_ns, kind="stable")), propagator)
    elements = propagator.elements
    first = np.full(len(elements), start_ns) if terms is None else np.maximum(terms.from_ns, start_ns)
    last = np.full(len(elements), end_ns) if terms is None else np.minimum(terms.until_ns, end_ns)
    old = age_warning(elements.norad_id, elements.epoch_time_ns, first, last)
    return FoundPasses(rows, list(_ends(propagator, terms, start_ns, end_ns)), old)


def _sets_in_force(source: Path | Lake, start_ns: int, end_ns: int) -> tuple[Propagator, Terms | None]:
    if isinstance(source, Lake):
        version = source.log(ORBITAL_CATALOG).head().version
        if version < 0:
            raise click.ClickException("the lake has no catalogue yet: land element sets, or name a file (--catalog)")
        return catalogue_at(source, version).propagator, None
    file = read_elements(source, start_ns, end_ns)
    return Propagator(file.elements), file.terms.clipped(start_ns, end_ns)


def _ends(propagator: Propagator, terms: Terms | None, start_ns: int, end_ns: int) -> Iterator[str]:
    """A line for each set that is not usable to the end of its time."""
    from_ns, until_ns, code = propagator.usable_parts(start_ns, end_ns)
    first = np.full(len(code), start_ns) if terms is None else terms.from_ns
    last = np.full(len(code), end_ns) if terms is None else terms.until_ns
    for row in np.flatnonzero((code > 0) & ((from_ns > first) | (until_ns < last))).tolist():
        norad_id, epoch = propagator.elements.norad_id[row], iso(int(propagator.elements.epoch_time_ns[row]))
        reason = SGP4_ERRORS.get(int(code[row]), "unknown")
        if until_ns[row] <= max(from_ns[row], first[row]):
            when = "is usable at no time of the search"
        elif until_ns[row] < last[row]:
            when = f"is usable until {iso(int(until_ns[row]))}, no pass is listed after it"
        else:
            when = f"is usable from {iso(int(from_ns[row]))}, no pass is listed before it"
        yield f"{norad_id}: its set of {epoch} {when}: {reason}"


def _rows(found: PassWindows, propagator: Propagator) -> list[dict[str, Any]]:
    ids = propagator.elements.norad_id[found.index].tolist()
    epochs_ns = propagator.elements.epoch_time_ns[found.index].tolist()
    elevation_deg = np.degrees(found.max_elevation_rad).tolist()
    instants = zip(found.aos_ns.tolist(), found.tca_ns.tolist(), found.los_ns.tolist(), strict=True)
    return [
        {
            "norad_id": norad_id,
            "aos_utc": iso(aos),
            "tca_utc": iso(tca),
            "los_utc": iso(los),
            "max_elevation_deg": round(elevation, 3),
            "elements_epoch_utc": iso(epoch),
            "elements_age_days": round((aos - epoch) / DAY_NS, 3),
        }
        for norad_id, (aos, tca, los), elevation, epoch in zip(ids, instants, elevation_deg, epochs_ns, strict=True)
    ]
