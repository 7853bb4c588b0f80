"""The classes of Space-Track's API: their fields, in its order, each with its type and where its value comes from.

`gp` has the set in force of each object, `gp_history` every set. `satcat` has what is known of each object, `decay` the
decays and every prediction of one, `tip` every prediction, `cdm_public` the conjunction alerts. Names of element sets
are those that the writer of OMMs uses. FILE, which grows with each publication, is the commit sequence: of `gp` that of
the catalogue, of `gp_history` that of the sets. Fields that only their publisher can fill (GP_ID, COMMENTCODE) are not
there; the exclusion volumes of `cdm_public` are empty.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sda_platform.formats.element_set import MARKINGS
from sda_platform.formats.instants import format_epoch
from sda_platform.orbits.dynamics.gravity import GM_KM3_S2
from sda_platform.orbits.elements import WGS72_RADIUS_KM
from sda_platform.serving.query import DAY, INSTANT, NUMBER, TEXT, WHOLE, QueryField
from sda_platform.serving.satellites import CataloguedObject
from sda_platform.serving.view import View
from sda_platform.units import DAY_MIN, DAY_S

_NUMBERS: Final = (
    "MEAN_MOTION", "ECCENTRICITY", "INCLINATION", "RA_OF_ASC_NODE", "ARG_OF_PERICENTER", "MEAN_ANOMALY", "BSTAR",
    "MEAN_MOTION_DOT", "MEAN_MOTION_DDOT",
)  # fmt: skip
_M_OF_KM: Final = 1000.0


def fields(*named: tuple[str, str, Callable[[Any], Any]]) -> dict[str, QueryField]:
    """Make fields of names, types and what finds a value; instants and days are written as such."""
    writers = {INSTANT: format_epoch, DAY: lambda ns: format_epoch(ns)[:10], NUMBER: repr}
    return {name: QueryField(name, kind, value, writers.get(kind, str)) for name, kind, value in named}


def _of_set(name: str) -> Callable[[CataloguedObject], Any]:
    return lambda each: each.omm.get(name)


def _of_record(name: str) -> Callable[[CataloguedObject], Any]:
    return lambda each: getattr(each.record, name) if each.record else None


def _fact(name: str) -> Callable[[CataloguedObject], Any]:
    return lambda each: each.facts.get(name)


def _axis_km(each: CataloguedObject) -> float | None:
    motion = each.record.mean_motion_rev_per_day if each.record else 0.0
    return math.cbrt(GM_KM3_S2 * (DAY_S / (2 * math.pi * motion)) ** 2) if motion > 0 else None


def _height_km(sign: int) -> Callable[[CataloguedObject], float | None]:
    """Return the height of the apoapsis (+1) or periapsis (-1) above the equator."""

    def height(each: CataloguedObject) -> float | None:
        axis_km = _axis_km(each)
        if axis_km is None or each.record is None:
            return None
        return round(axis_km * (1 + sign * each.record.eccentricity) - WGS72_RADIUS_KM, 3)

    return height


def _rounded(value: Callable[[CataloguedObject], float | None]) -> Callable[[CataloguedObject], float | None]:
    return lambda each: None if (found := value(each)) is None else round(found, 3)


def _period_min(each: CataloguedObject) -> float | None:
    motion = each.record.mean_motion_rev_per_day if each.record else 0.0
    return round(DAY_MIN / motion, 3) if motion > 0 else None


def _decay_day_ns(each: CataloguedObject) -> int | None:
    # A decay of which the day is known is stored as the end of it.
    return None if each.decay_ns is None else each.decay_ns - 1


def _line(number: int) -> Callable[[CataloguedObject], str | None]:
    return lambda each: each.lines[number] if each.lines else None


def _launch(part: slice) -> Callable[[CataloguedObject], int | None]:
    """Return the year or the number of the launch, by the designator: 1998-067A."""

    def found(each: CataloguedObject) -> int | None:
        text = (each.designator or "")[part]
        return int(text) if text.isascii() and text.isdigit() else None

    return found


_DESIGNATOR: Final = lambda each: each.designator  # noqa: E731 (a value among others)
_NAME: Final = lambda each: each.name  # noqa: E731
_GP: Final = fields(
    ("CCSDS_OMM_VERS", TEXT, lambda _: "3.0"),
    ("COMMENT", TEXT, lambda _: None),
    ("CREATION_DATE", INSTANT, _of_record("received_time_ns")),
    ("ORIGINATOR", TEXT, _of_set("ORIGINATOR")),
    ("OBJECT_NAME", TEXT, _NAME),
    ("OBJECT_ID", TEXT, _DESIGNATOR),
    *((name, TEXT, _of_set(name)) for name in ("CENTER_NAME", "REF_FRAME", "TIME_SYSTEM", "MEAN_ELEMENT_THEORY")),
    ("EPOCH", INSTANT, _of_record("epoch_time_ns")),
    *((name, NUMBER, _of_set(name)) for name in _NUMBERS[:6]),
    ("EPHEMERIS_TYPE", WHOLE, _of_set("EPHEMERIS_TYPE")),
    ("CLASSIFICATION_TYPE", TEXT, _of_set("CLASSIFICATION_TYPE")),
    ("NORAD_CAT_ID", WHOLE, lambda each: each.norad_id),
    ("ELEMENT_SET_NO", WHOLE, _of_set("ELEMENT_SET_NO")),
    ("REV_AT_EPOCH", WHOLE, _of_set("REV_AT_EPOCH")),
    *((name, NUMBER, _of_set(name)) for name in _NUMBERS[6:]),
    ("SEMIMAJOR_AXIS", NUMBER, _rounded(_axis_km)),
    ("PERIOD", NUMBER, _period_min),
    ("APOAPSIS", NUMBER, _height_km(1)),
    ("PERIAPSIS", NUMBER, _height_km(-1)),
    ("OBJECT_TYPE", TEXT, lambda each: each.kind),
    ("RCS_SIZE", TEXT, _fact("rcs_size")),
    ("COUNTRY_CODE", TEXT, _fact("owner")),
    ("LAUNCH_DATE", DAY, _fact("launch_time_ns")),
    ("SITE", TEXT, _fact("launch_site")),
    ("DECAY_DATE", DAY, _decay_day_ns),
    ("OPS_STATUS_CODE", TEXT, _fact("operational_status")),
    *((name, TEXT, _of_set(name)) for name in MARKINGS),
    ("FILE", WHOLE, lambda each: (each.record.commit_sequence or None) if each.record else None),
    ("TLE_LINE0", TEXT, _line(0)),
    ("TLE_LINE1", TEXT, _line(1)),
    ("TLE_LINE2", TEXT, _line(2)),
)
_SATCAT: Final = fields(
    ("INTLDES", TEXT, _DESIGNATOR),
    ("NORAD_CAT_ID", WHOLE, lambda each: each.norad_id),
    ("OBJECT_TYPE", TEXT, lambda each: each.kind),
    ("SATNAME", TEXT, _NAME),
    ("COUNTRY", TEXT, _fact("owner")),
    ("LAUNCH", DAY, _fact("launch_time_ns")),
    ("SITE", TEXT, _fact("launch_site")),
    ("DECAY", DAY, _decay_day_ns),
    ("PERIOD", NUMBER, _period_min),
    ("INCLINATION", NUMBER, _of_set("INCLINATION")),
    ("APOGEE", NUMBER, _height_km(1)),
    ("PERIGEE", NUMBER, _height_km(-1)),
    ("RCSVALUE", NUMBER, _fact("rcs_m2")),
    ("RCS_SIZE", TEXT, _fact("rcs_size")),
    ("OPS_STATUS_CODE", TEXT, _fact("operational_status")),
    ("LAUNCH_YEAR", WHOLE, _launch(slice(0, 4))),
    ("LAUNCH_NUM", WHOLE, _launch(slice(5, 8))),
    ("LAUNCH_PIECE", TEXT, lambda each: (each.designator or "")[8:] or None),
    ("CURRENT", TEXT, lambda _: "Y"),
    ("OBJECT_NAME", TEXT, _NAME),
    ("OBJECT_ID", TEXT, _DESIGNATOR),
    ("OBJECT_NUMBER", WHOLE, lambda each: each.norad_id),
)
PREDICTION, HISTORICAL = "Prediction", "Historical"


def _message(each: CataloguedObject) -> str:
    return HISTORICAL if each.decay_ns is not None else PREDICTION


def decay_epoch_ns(each: CataloguedObject) -> int | None:
    """When an object decayed, or is predicted to."""
    predicted: int | None = each.facts.get("predicted_decay_time_ns")
    return predicted if each.decay_ns is None else each.decay_ns


_DECAY: Final = fields(
    ("NORAD_CAT_ID", WHOLE, lambda each: each.norad_id),
    ("OBJECT_NUMBER", WHOLE, lambda each: each.norad_id),
    ("OBJECT_NAME", TEXT, _NAME),
    ("INTLDES", TEXT, _DESIGNATOR),
    ("OBJECT_ID", TEXT, _DESIGNATOR),
    ("RCS", NUMBER, _fact("rcs_m2")),
    ("RCS_SIZE", TEXT, _fact("rcs_size")),
    ("COUNTRY", TEXT, _fact("owner")),
    ("MSG_EPOCH", INSTANT, _fact("received_time_ns")),
    ("DECAY_EPOCH", INSTANT, decay_epoch_ns),
    ("MSG_TYPE", TEXT, _message),
)


_TIP: Final = fields(
    ("NORAD_CAT_ID", WHOLE, lambda each: each.norad_id),
    ("MSG_EPOCH", INSTANT, _fact("received_time_ns")),
    ("INSERT_EPOCH", INSTANT, _fact("received_time_ns")),
    ("DECAY_EPOCH", INSTANT, _fact("predicted_decay_time_ns")),
    ("WINDOW", NUMBER, _fact("prediction_window_min")),
    ("LAT", NUMBER, _fact("reentry_latitude_deg")),
    ("LON", NUMBER, _fact("reentry_longitude_deg")),
    ("INCL", NUMBER, _of_set("INCLINATION")),
    ("OBJECT_NUMBER", WHOLE, lambda each: each.norad_id),
    ("OBJECT_NAME", TEXT, _NAME),
)


def with_objects(alert: Mapping[str, Any], view: View) -> dict[str, Any]:
    """Return an alert with the types and sizes of its objects, as they are known now."""
    found = dict(alert)
    for number in (1, 2):
        norad_id = alert[f"norad_id_{number}"]
        each = CataloguedObject(norad_id, view.get(norad_id), view.satellites.of(norad_id))
        found |= {f"object_type_{number}": each.kind, f"rcs_size_{number}": each.facts.get("rcs_size")}
    return found


def _of_alert(name: str, scale: float = 1.0) -> Callable[[Mapping[str, Any]], Any]:
    return lambda row: None if (value := row.get(name)) is None else value if scale == 1.0 else value * scale


def _side(number: int) -> tuple[tuple[str, str, Callable[[Mapping[str, Any]], Any]], ...]:
    return (
        (f"SAT_{number}_ID", WHOLE, _of_alert(f"norad_id_{number}")),
        (f"SAT_{number}_NAME", TEXT, _of_alert(f"object_name_{number}")),
        (f"SAT{number}_OBJECT_TYPE", TEXT, _of_alert(f"object_type_{number}")),
        (f"SAT{number}_RCS", TEXT, _of_alert(f"rcs_size_{number}")),
        (f"SAT_{number}_EXCL_VOL", TEXT, lambda _: None),
    )


_CDM: Final = fields(
    ("CDM_ID", TEXT, _of_alert("event_id")),
    ("CREATED", INSTANT, _of_alert("as_of_ns")),
    ("EMERGENCY_REPORTABLE", TEXT, lambda row: "Y" if row.get("risk") == "red" else "N"),
    ("TCA", INSTANT, _of_alert("tca_time_ns")),
    ("MIN_RNG", NUMBER, _of_alert("miss_distance_km", _M_OF_KM)),
    ("PC", NUMBER, _of_alert("collision_probability")),
    ("CLASSIFICATION_TYPE", TEXT, _of_alert("classification")),
    ("DATA_MODE", TEXT, _of_alert("data_mode")),
    *_side(1),
    *_side(2),
)
CLASSES: Final[Mapping[str, Sequence[QueryField]]] = {
    "gp": tuple(_GP.values()),
    "gp_history": tuple(_GP.values()),
    "satcat": tuple(_SATCAT.values()),
    "decay": tuple(_DECAY.values()),
    "tip": tuple(_TIP.values()),
    "cdm_public": tuple(_CDM.values()),
}
