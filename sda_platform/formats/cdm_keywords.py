"""The keywords of a conjunction data message: their order, their units, and the XML element that holds them.

Source: CCSDS 508.0-B-1, tables 3-1 to 3-4, and the NDM XML schema, which adds the areas for drag and radiation
pressure. Reading and writing are in `cdm`.
"""

from typing import Final

from sda_platform.formats.keywords import Keyword, keywords

STATE: Final = ("X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT")
_AXES: Final = ("R", "T", "N", "RDOT", "TDOT", "NDOT")
COVARIANCE: Final = tuple((f"C{_AXES[i]}_{_AXES[j]}", i, j) for i in range(6) for j in range(i + 1))
"""The 21 terms of the lower triangle with their row and column."""

HEADER: Final = keywords("CREATION_DATE ORIGINATOR MESSAGE_FOR MESSAGE_ID")
_RELATIVE_STATE: Final = keywords(
    "RELATIVE_POSITION_R:m RELATIVE_POSITION_T:m RELATIVE_POSITION_N:m "
    "RELATIVE_VELOCITY_R:m/s RELATIVE_VELOCITY_T:m/s RELATIVE_VELOCITY_N:m/s"
)
RELATIVE: Final[tuple[tuple[str, tuple[Keyword, ...]], ...]] = (
    ("", keywords("TCA MISS_DISTANCE:m RELATIVE_SPEED:m/s")),
    ("relativeStateVector", _RELATIVE_STATE),
    (
        "",
        keywords(
            "START_SCREEN_PERIOD STOP_SCREEN_PERIOD SCREEN_VOLUME_FRAME SCREEN_VOLUME_SHAPE SCREEN_VOLUME_X:m "
            "SCREEN_VOLUME_Y:m SCREEN_VOLUME_Z:m SCREEN_ENTRY_TIME SCREEN_EXIT_TIME COLLISION_PROBABILITY "
            "COLLISION_PROBABILITY_METHOD"
        ),
    ),
)
METADATA: Final = keywords(
    "OBJECT OBJECT_DESIGNATOR CATALOG_NAME OBJECT_NAME INTERNATIONAL_DESIGNATOR OBJECT_TYPE OPERATOR_CONTACT_POSITION "
    "OPERATOR_ORGANIZATION OPERATOR_PHONE OPERATOR_EMAIL EPHEMERIS_NAME COVARIANCE_METHOD MANEUVERABLE ORBIT_CENTER "
    "REF_FRAME GRAVITY_MODEL ATMOSPHERIC_MODEL N_BODY_PERTURBATIONS SOLAR_RAD_PRESSURE EARTH_TIDES INTRACK_THRUST"
)
_ORBIT_DETERMINATION: Final = keywords(
    "TIME_LASTOB_START TIME_LASTOB_END RECOMMENDED_OD_SPAN:d ACTUAL_OD_SPAN:d OBS_AVAILABLE OBS_USED TRACKS_AVAILABLE "
    "TRACKS_USED RESIDUALS_ACCEPTED:% WEIGHTED_RMS"
)
_ADDITIONAL: Final = keywords(
    "AREA_PC:m**2 AREA_DRG:m**2 AREA_SRP:m**2 MASS:kg "
    "CD_AREA_OVER_MASS:m**2/kg CR_AREA_OVER_MASS:m**2/kg THRUST_ACCELERATION:m/s**2 SEDR:W/kg"
)
_STATE_UNITS: Final = ("km",) * 3 + ("km/s",) * 3
_FORCES: Final = keywords(
    "CDRG_R:m**3/kg CDRG_T:m**3/kg CDRG_N:m**3/kg CDRG_RDOT:m**3/(kg*s) CDRG_TDOT:m**3/(kg*s) CDRG_NDOT:m**3/(kg*s) "
    "CDRG_DRG:m**4/kg**2 CSRP_R:m**3/kg CSRP_T:m**3/kg CSRP_N:m**3/kg CSRP_RDOT:m**3/(kg*s) CSRP_TDOT:m**3/(kg*s) "
    "CSRP_NDOT:m**3/(kg*s) CSRP_DRG:m**4/kg**2 CSRP_SRP:m**4/kg**2 CTHR_R:m**2/s**2 CTHR_T:m**2/s**2 CTHR_N:m**2/s**2 "
    "CTHR_RDOT:m**2/s**3 CTHR_TDOT:m**2/s**3 CTHR_NDOT:m**2/s**3 CTHR_DRG:m**3/(kg*s**2) CTHR_SRP:m**3/(kg*s**2) "
    "CTHR_THR:m**2/s**4"
)
_MOTION: Final = tuple(Keyword(name, ("m**2", "m**2/s", "m**2/s**2")[(i > 2) + (j > 2)]) for name, i, j in COVARIANCE)
DATA: Final[tuple[tuple[str, tuple[Keyword, ...]], ...]] = (
    ("odParameters", _ORBIT_DETERMINATION),
    ("additionalParameters", _ADDITIONAL),
    ("stateVector", tuple(map(Keyword, STATE, _STATE_UNITS))),
    ("covarianceMatrix", (*_MOTION, *_FORCES)),
)
# HBR is no keyword of the first issue, but some write it as one instead of in a comment.
OF_MESSAGE: Final = frozenset(k.name for k in (*HEADER, *(k for _, group in RELATIVE for k in group))) | {"HBR"}
OF_OBJECT: Final = frozenset(k.name for k in (*METADATA, *(k for _, group in DATA for k in group))) | {"HBR"}
UNITS: Final = {
    k.name: k.unit for k in (*(k for _, group in RELATIVE for k in group), *(k for _, group in DATA for k in group))
}
"""The unit that the standard gives each keyword; "" for none."""
