"""An orbit parameter message (OPM) as an ephemeris of one state."""

import numpy as np

from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS, STATE
from sda_platform.formats.parameter_messages import ParameterMessage


def as_ephemeris(message: ParameterMessage) -> EphemerisSegment:
    """Return the state of the message and, where it has one, its covariance. Manoeuvres are not applied."""
    state, covariance = message.section("stateVector"), message.section("covarianceMatrix")
    time_ns = np.array([parse_epoch_ns(state["EPOCH"])], np.int64)
    terms = [float(covariance[name]) for name in COVARIANCE_TERMS] if covariance else []
    return EphemerisSegment(
        message.version,
        message.entries("header"),
        (*message.entries("metadata"), *(KeywordEntry(name, state["EPOCH"]) for name in ("START_TIME", "STOP_TIME"))),
        (),
        time_ns,
        np.array([[float(state[keyword.name]) for keyword in STATE[1:]]]),
        time_ns if covariance else time_ns[:0],
        np.array(terms, np.float64).reshape(-1, len(COVARIANCE_TERMS)),
        (covariance.get("COV_REF_FRAME", ""),) if covariance else (),
    )
