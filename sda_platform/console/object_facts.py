"""What pages say of an object: its orbit and age, size and owner, its operator in the fleet, and space weather."""

from collections.abc import Iterable, Mapping
from typing import Any

from sda_platform.catalog.held_lookup import newer_held_sets, why_held
from sda_platform.catalog.lookup import satellite
from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.clock import iso_to_second, utc
from sda_platform.foreign_text import Html
from sda_platform.formats.fleet import ProtectedObject
from sda_platform.formats.space_weather import SpaceWeatherError
from sda_platform.html_elements import element, joined, table
from sda_platform.lake.lake import Lake
from sda_platform.settings import Settings
from sda_platform.units import DAY_MIN

_SATELLITE = {
    "object_type": "type", "owner": "owner", "status": "status", "launch": "launched", "decay": "decayed",
    "size": "size by radar", "rcs_m2": "radar cross section, m²",
}  # fmt: skip


def orbit_facts(lake: Lake, found: Mapping[str, Any]) -> dict[str, str]:
    """Describe the set in force, a row of `catalog.lookup.one_object`, and what the satellite catalogue states."""
    stated, held = satellite(lake, found["norad_id"]), newer_held_sets(lake, [found["norad_id"]])
    return {
        "international designator": found["international_designator"] or "",
        "orbit": f"{found['regime']}, {found['perigee_km']:.1f} × {found['apogee_km']:.1f} km",
        "inclination": f"{found['inclination_deg']:.4f}°",
        "period": f"{DAY_MIN / found['mean_motion_rev_per_day']:.2f} min",
        "element set": f"epoch {iso_to_second(found['epoch_time_ns'])}, {found['age_days']:.2f} days old",
        "by": found["originator"] or "not stated",
        **({"newer sets, held": "; ".join(map(why_held, held))} if held else {}),
        **{_SATELLITE.get(name, name.replace("_", " ")): value for name, value in stated.items()},
    }


def space_weather_table(settings: Settings, now_ns: int, until_ns: int) -> Html:
    """Make the table of the space weather that density rests on, of each day up to ``until_ns``."""
    try:
        weather = SpaceWeatherResource.of(settings).near(now_ns)
    except SpaceWeatherError as error:
        return element("p", str(error), role="alert")
    first, last = (utc(time_ns).date().isoformat() for time_ns in (now_ns, until_ns))
    days = {day: known for day, known in (weather.days or {}).items() if first <= day <= last}
    rows = (
        (day, *(_shown(known.get(name)) for name in ("f107", "f107_mean")), _shown(max(_ap(known), default=None)))
        for day, known in days.items()
    )
    header = ("day", "F10.7", "81-day mean", "largest Ap")
    note = element("p", f"{weather.stated()}. ", element("code", "SDA_SPACE_WEATHER"), " names its file.")
    return joined(note, table("Space weather", header, rows) if days else None)


def _ap(day: Mapping[str, float]) -> list[float]:
    return [value for name, value in day.items() if name.startswith("ap")]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def fleet_facts(members: Iterable[ProtectedObject], norad_id: int, *, with_contact: bool = False) -> dict[str, str]:
    """Describe a satellite of the fleet; of other objects nothing is known here."""
    for member in members:
        if member.norad_id == norad_id:
            answers = {True: "yes", False: "no", None: ""}
            facts = {
                "operator": member.operator,
                "manoeuvrable": answers[member.manoeuvrable],
                "contact": member.contact if with_contact else "",
                "mass": f"{member.mass_kg:g} kg" if member.mass_kg else "",
                "radius by the fleet file": f"{member.radius_m:g} m" if member.radius_m else "",
            }
            return {name: value for name, value in facts.items() if value}
    return {}
