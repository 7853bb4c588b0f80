"""`sda passes`: when the objects of a file or of the lake's catalogue pass over a site."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.screen_catalogue import ScreeningInputError, read_elements
from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.lake.lake import Lake
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.passes import PassWindows, find_passes, site_sensor


@dataclass(frozen=True)
class ObserverSite:
    """A place on the ground (WGS84), and the least elevation at which it observes."""

    latitude_deg: float
    longitude_deg: float
    altitude_m: float
    min_elevation_deg: float


def passes_over(
    site: ObserverSite, start_ns: int, hours: float, source: Path | Lake, objects: tuple[int, ...] = ()
) -> list[dict[str, Any]]:
    """Passes of the objects of a file of element sets, or of a lake (all, if none is named), by acquisition time.

    Each has norad_id, aos_utc, tca_utc, los_utc (ISO 8601) and max_elevation_deg.

    Raises ScreeningInputError where there are no element sets.
    """
    end_ns = start_ns + round(hours * 3600 * NANOSECONDS_PER_SECOND)
    propagator = _propagator(source, start_ns)
    if objects:
        propagator = propagator.take(np.flatnonzero(np.isin(propagator.elements.norad_id, objects)))
    place = site_sensor(site.latitude_deg, site.longitude_deg, site.altitude_m, site.min_elevation_deg)
    found = find_passes(propagator, [place], start_ns, end_ns)
    return _rows(found.take(np.argsort(found.aos_ns, kind="stable")), propagator)


def _propagator(source: Path | Lake, start_ns: int) -> Propagator:
    if isinstance(source, Lake):
        version = source.log(ORBITAL_CATALOG).head().version
        if version < 0:
            raise ScreeningInputError("the lake has no catalogue yet: land element sets, or name a file with --catalog")
        return catalogue_at(source, version).propagator
    # Of several sets of one object the one in force at the start counts.
    return Propagator(read_elements(source, start_ns, start_ns + 1).elements)


def _rows(found: PassWindows, propagator: Propagator) -> list[dict[str, Any]]:
    ids = propagator.elements.norad_id[found.index].tolist()
    elevation_deg = np.degrees(found.max_elevation_rad).tolist()
    instants = zip(found.aos_ns.tolist(), found.tca_ns.tolist(), found.los_ns.tolist(), strict=True)
    return [
        {
            "norad_id": norad_id,
            "aos_utc": iso(aos),
            "tca_utc": iso(tca),
            "los_utc": iso(los),
            "max_elevation_deg": round(elevation, 3),
        }
        for norad_id, (aos, tca, los), elevation in zip(ids, instants, elevation_deg, strict=True)
    ]
