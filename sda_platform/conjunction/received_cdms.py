"""What a conjunction data message means for risk: both states in one frame, the radius, the best probability."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.clock import iso
from sda_platform.formats.cdm import EARTH_FIXED_FRAME, Cdm, CdmObject
from sda_platform.formats.errors import RecordError
from sda_platform.formats.stated_tails import stated_degrees
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.earth_orientation import in_gcrf
from sda_platform.orbits.earth_parameters import UnknownOrientation
from sda_platform.orbits.element_errors import element_tails
from sda_platform.orbits.frames import itrf_to_teme, velocity_itrf_to_teme
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.degenerate import without_default
from sda_platform.orbits.risk.levels import risk_level
from sda_platform.orbits.risk.object_kinds import HARD_BODY_RADIUS_M, object_type
from sda_platform.orbits.risk.validity import Encounters, is_indefinite
from sda_platform.orbits.screening.encounter import relative_states

# Fraction of the stated miss distance: above rounding errors and below real errors.
_MISS_TOLERANCE, _MISS_TOLERANCE_KM = 0.01, 0.01
_NEAREST_KM, _FARTHEST_KM, _FASTEST_KM_S = 1e3, 1e7, 1e2
DISAGREES: Final = "states_disagree_with_miss_distance"
DEFAULT_COVARIANCE: Final = "default_covariance"


@dataclasses.dataclass(frozen=True)
class MessageRisk:
    """The risk that follows from a message. A number that cannot be computed is None.

    ``pc`` is the best probability available and ``method`` its method. ``valid_2d`` is None if the message lacks the
    data for the validity test; ``risk`` then follows the largest Pc of all methods. ``tca_offset_s`` is the closest
    approach of the message's states minus its stated TCA.
    """

    pc: float | None
    method: str
    pc_2d: float | None
    valid_2d: bool | None
    flags: list[str]
    risk: str
    standard_error: float | None
    max_pc: float | None
    max_pc_sigma_scale: float | None
    mahalanobis_distance: float | None
    miss_km: float
    relative_speed_km_s: float
    hard_body_radius_m: float
    hard_body_radius_source: str
    tca_utc: str
    tca_offset_s: float | None
    object_1: str
    object_2: str
    pc_in_message: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the risk of a message as a dictionary for JSON."""
        return dataclasses.asdict(self)


def message_risk(message: Cdm, hard_body_radius_m: float | None = None) -> MessageRisk:
    """Assess a message; ``hard_body_radius_m`` (combined) overrides the message's own value.

    Raises RecordError if a state is no orbit or the two states cannot be transformed into one frame.
    """
    radius_m, radius_source = (
        _radius(message) if hard_body_radius_m is None else (hard_body_radius_m, "option, combined radius")
    )
    passes = _passes(message, radius_m)
    best = best_probabilities(passes)
    plane = best.two_dimensional
    dr_km, dv_km_s = passes.dr_km[0], passes.dv_km_s[0]
    speed2 = float(dv_km_s @ dv_km_s)
    offset_s = -float(dr_km @ dv_km_s) / speed2 if speed2 else None
    miss_km = float(np.linalg.norm(dr_km + dv_km_s * (offset_s or 0.0)))
    relative = relative_states(passes.r1_km, passes.v1_km_s, passes.r2_km, passes.v2_km_s)
    stated_km = message.miss_distance_m / 1000
    flags = list(best.flags[0])
    if abs(stated_km - miss_km) > _MISS_TOLERANCE_KM + _MISS_TOLERANCE * stated_km:
        flags.append(DISAGREES)
    methods = (each.fields.get("COVARIANCE_METHOD", "").upper() for each in message.objects)
    flags += [f"{DEFAULT_COVARIANCE}_{number}" for number, method in enumerate(methods, 1) if method == "DEFAULT"]
    return MessageRisk(
        pc=_known(best.probability[0]),
        method=best.method[0],
        pc_2d=_known(plane.probability[0]),
        valid_2d=best.valid_2d[0],
        flags=flags,
        risk=_level(message, float(best.probability_for_risk[0]), flags),
        standard_error=_known(best.standard_error[0]),
        max_pc=_known(plane.maximum_probability[0]),
        max_pc_sigma_scale=_known(plane.maximum_sigma_scale[0]),
        mahalanobis_distance=_known(plane.mahalanobis_distance[0]),
        miss_km=miss_km,
        relative_speed_km_s=float(relative.relative_speed_km_s[0]),
        hard_body_radius_m=radius_m,
        hard_body_radius_source=radius_source,
        tca_utc=iso(message.tca_time_ns),
        tca_offset_s=offset_s,
        object_1=_name(message.objects[0]),
        object_2=_name(message.objects[1]),
        pc_in_message=_number(message.fields.get("COLLISION_PROBABILITY")),
    )


def _level(message: Cdm, probability: float, flags: Sequence[str]) -> str:
    """Return the level of a probability; no message is green whose states or covariances cannot be those of the
    encounter.
    """
    level = str(risk_level(probability))
    position = np.stack([each.covariance_rtn[:3, :3] for each in message.objects])
    is_wrong = DISAGREES in flags or is_indefinite(position).any()
    return "unknown" if level == "green" and is_wrong else level


def _passes(message: Cdm, radius_m: float) -> Encounters:
    inertial = _in_their_frame if len({each.frame for each in message.objects}) == 1 else _in_gcrf
    sides = []
    for each in message.objects:
        r, v = (part[None] for part in inertial(each, message.tca_time_ns))
        _require_an_orbit(each, r[0], v[0])
        sides.append((r, v, rtn_to_teme(without_default(each.covariance_rtn)[None], r, v)))
    degrees = [np.array([stated_degrees(each.comments)]) for each in message.objects]
    tails = element_tails(degrees[0], *sides[0][:2]), element_tails(degrees[1], *sides[1][:2])
    return Encounters(*sides[0], *sides[1], np.array([radius_m / 1000]), tails=tails)


def _in_their_frame(each: CdmObject, time_ns: int) -> tuple[FloatArray, FloatArray]:
    """Return the state as it is, at rest among the stars: which way both are turned together changes nothing."""
    r, v = each.position_km, each.velocity_km_s
    if each.frame == EARTH_FIXED_FRAME:
        return itrf_to_teme(r, time_ns), velocity_itrf_to_teme(r, v, time_ns)
    return r, v


def _in_gcrf(each: CdmObject, time_ns: int) -> tuple[FloatArray, FloatArray]:
    try:
        return in_gcrf(each.frame, each.position_km, each.velocity_km_s, time_ns)
    except UnknownOrientation as error:
        reason = f"REF_FRAME is {each.frame}, that of the other object another, and {error}"
        raise RecordError("out_of_range", f"{each.fields.get('OBJECT', 'an object')}: {reason}") from None


def _require_an_orbit(each: CdmObject, r_km: FloatArray, v_km_s: FloatArray) -> None:
    """Raise RecordError for what no object about the Earth can be: numbers that would only fail further on."""
    name = each.fields.get("OBJECT", "an object")
    distance_km, speed_km_s = float(np.linalg.norm(r_km)), float(np.linalg.norm(v_km_s))
    if not (_NEAREST_KM < distance_km < _FARTHEST_KM and speed_km_s < _FASTEST_KM_S and np.cross(r_km, v_km_s).any()):
        reason = f"{distance_km:.6g} km from the Earth's centre at {speed_km_s:.6g} km/s is no orbit"
        raise RecordError("out_of_range", f"{name}: {reason}")
    if np.abs(each.covariance_rtn).max() > _FARTHEST_KM**2:
        raise RecordError("out_of_range", f"{name}: its covariance has sigmas of more than {_FARTHEST_KM:g} km")


def _radius(message: Cdm) -> tuple[float, str]:
    """Return the combined radius and where it comes from: the message's combined radius, else the sum of the objects'
    own.
    """
    if message.hard_body_radius_m is not None:
        return message.hard_body_radius_m, "message, combined radius"
    radii, sources = zip(*map(_radius_of_object, message.objects), strict=True)
    return sum(radii), "; ".join(f"object {number}: {source}" for number, source in enumerate(sources, 1))


def _radius_of_object(each: CdmObject) -> tuple[float, str]:
    """An object's hard-body radius, else its exclusion volume's, else that of its area, else what its kind suggests."""
    if each.hard_body_radius_m is not None:
        return each.hard_body_radius_m, "message"
    if each.exclusion_volume_radius_m is not None:
        return each.exclusion_volume_radius_m, "exclusion volume radius of the message"
    if each.area_pc_m2 is not None:
        return float(np.sqrt(each.area_pc_m2 / np.pi)), f"disc of the message's AREA_PC, {each.area_pc_m2:g} m²"
    kind = _kind(each)
    return HARD_BODY_RADIUS_M[kind], f"{HARD_BODY_RADIUS_M[kind]:g} m assumed for {kind}"


def _kind(each: CdmObject) -> str:
    stated = each.fields.get("OBJECT_TYPE", "").lower().replace("_", " ")  # equivalent by 508.0-B-1
    return stated if stated in HARD_BODY_RADIUS_M else object_type(each.fields.get("OBJECT_NAME"))


def _name(each: CdmObject) -> str:
    name = each.fields.get("OBJECT_NAME") or "unknown"
    designator = each.fields.get("OBJECT_DESIGNATOR")
    return f"{name} ({designator})" if designator else name


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(text: str | None) -> float | None:
    try:
        return _known(float(text)) if text else None
    except ValueError:
        return None
