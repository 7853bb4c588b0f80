"""The keywords of orbit messages: parameter messages (OPM), mean elements (OMM), ephemerides (OEM).

Source: CCSDS 502.0-B-3, tables 3-1 to 3-4, 4-1 to 4-3 and 5-2 to 5-3, and the NDM XML schema for the names of sections.
"""

from dataclasses import dataclass
from typing import Final

from sda_platform.formats.keywords import Keyword, keywords

EARTH: Final = ("EARTH", "399")
"""The names of the centre of an orbit about the Earth; the other is its number at NAIF."""
HEADER: Final = keywords("CLASSIFICATION CREATION_DATE@ ORIGINATOR MESSAGE_ID")
_OBJECT: Final = "OBJECT_NAME! OBJECT_ID CENTER_NAME! REF_FRAME! REF_FRAME_EPOCH@ TIME_SYSTEM! "
_AXES: Final = ("X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT")
COVARIANCE_TERMS: Final = tuple(f"C{_AXES[i]}_{_AXES[j]}" for i in range(6) for j in range(i + 1))
"""The 21 terms of the lower triangle, row by row."""
_COVARIANCE_UNITS: Final = [
    ("km**2", "km**2/s", "km**2/s**2")[(i > 2) + (j > 2)] for i in range(6) for j in range(i + 1)
]
_COVARIANCE: Final = "COV_REF_FRAME " + " ".join(
    f"{term}!#:{unit}" for term, unit in zip(COVARIANCE_TERMS, _COVARIANCE_UNITS, strict=True)
)
_SPACECRAFT: Final = keywords("MASS#:kg SOLAR_RAD_AREA#:m**2 SOLAR_RAD_COEFF# DRAG_AREA#:m**2 DRAG_COEFF#")
STATE: Final = keywords("EPOCH!@ X!#:km Y!#:km Z!#:km X_DOT!#:km/s Y_DOT!#:km/s Z_DOT!#:km/s")
ACCELERATION: Final = keywords("X_DDOT#:km/s**2 Y_DDOT#:km/s**2 Z_DDOT#:km/s**2")


@dataclass(frozen=True, slots=True)
class MessageSection:
    """A section of a message's data: its XML element and keywords; one that ``repeats`` begins with its first one."""

    name: str
    keywords: tuple[Keyword, ...]
    is_required: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """What a message of one kind may hold, in this order."""

    kind: str
    version: str
    metadata: tuple[Keyword, ...]
    data: tuple[MessageSection, ...]

    @property
    def sections(self) -> tuple[MessageSection, ...]:
        """Header, metadata, and the sections of the data."""
        return (MessageSection("header", HEADER, True), MessageSection("metadata", self.metadata, True), *self.data)


USER_SECTION: Final = MessageSection("userDefinedParameters", keywords("USER_DEFINED"))

OPM: Final = Layout(
    "opm",
    "3.0",
    keywords(_OBJECT),
    (
        MessageSection("stateVector", STATE, is_required=True),
        MessageSection(
            "keplerianElements",
            keywords(
                "SEMI_MAJOR_AXIS!#:km ECCENTRICITY!# INCLINATION!#:deg RA_OF_ASC_NODE!#:deg ARG_OF_PERICENTER!#:deg "
                "TRUE_ANOMALY#:deg MEAN_ANOMALY#:deg GM!#:km**3/s**2"
            ),
        ),
        MessageSection("spacecraftParameters", _SPACECRAFT),
        MessageSection("covarianceMatrix", keywords(_COVARIANCE)),
        MessageSection(
            "maneuverParameters",
            keywords(
                "MAN_EPOCH_IGNITION!@ MAN_DURATION!#:s MAN_DELTA_MASS!#:kg MAN_REF_FRAME! MAN_DV_1!#:km/s "
                "MAN_DV_2!#:km/s MAN_DV_3!#:km/s"
            ),
            repeats=True,
        ),
        USER_SECTION,
    ),
)
OMM: Final = Layout(
    "omm",
    "3.0",
    keywords(_OBJECT + "MEAN_ELEMENT_THEORY!"),
    (
        MessageSection(
            "meanElements",
            keywords(
                "EPOCH!@ SEMI_MAJOR_AXIS#:km MEAN_MOTION#:rev/day ECCENTRICITY!# INCLINATION!#:deg "
                "RA_OF_ASC_NODE!#:deg ARG_OF_PERICENTER!#:deg MEAN_ANOMALY!#:deg GM#:km**3/s**2"
            ),
            is_required=True,
        ),
        MessageSection("spacecraftParameters", _SPACECRAFT),
        MessageSection(
            "tleParameters",
            keywords(
                "EPHEMERIS_TYPE CLASSIFICATION_TYPE NORAD_CAT_ID ELEMENT_SET_NO REV_AT_EPOCH BSTAR#:1/ER "
                "BTERM#:m**2/kg MEAN_MOTION_DOT#:rev/day**2 MEAN_MOTION_DDOT#:rev/day**3 AGOM#:m**2/kg"
            ),
        ),
        MessageSection("covarianceMatrix", keywords(_COVARIANCE)),
        USER_SECTION,
    ),
)
OEM_METADATA: Final = keywords(
    _OBJECT + "START_TIME!@ USEABLE_START_TIME@ USEABLE_STOP_TIME@ STOP_TIME!@ INTERPOLATION INTERPOLATION_DEGREE#"
)
OEM_COVARIANCE: Final = keywords("EPOCH!@ " + _COVARIANCE)
