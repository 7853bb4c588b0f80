"""Why a state of an assessment rests on its source, and how it errs: findings in `risk_flags`, with the object's
number, and as text."""

from collections.abc import Mapping
from typing import Any, Final

NEWER_WITHOUT_COVARIANCE: Final = "newer_ephemeris_without_covariance"
EARLIER_DEPARTS: Final = "earlier_ephemeris_departs"
LESS_CERTAIN: Final = "ephemeris_less_certain_than_track"
BEFORE_MANOEUVRE: Final = "ephemeris_before_manoeuvre"
LEAVES_TRACK: Final = "ephemeris_leaves_track"
CHOICES: Final[Mapping[str, str]] = {
    NEWER_WITHOUT_COVARIANCE: "a newer ephemeris states no covariance and the same path, so the one with a covariance "
    "counts",
    EARLIER_DEPARTS: "the newest ephemeris states no covariance, and another path than the one with a covariance",
    LESS_CERTAIN: "its track has a smaller covariance than its ephemeris",
    BEFORE_MANOEUVRE: "it has manoeuvred since its ephemeris was created",
    LEAVES_TRACK: "its ephemeris agrees with its track now and leaves it later, as a planned manoeuvre does",
}
"""The findings about a choice, for people."""


def flags_in(risk_flags: str | None) -> list[str]:
    """Return the names in a value of `risk_flags`."""
    return risk_flags.split(",") if risk_flags else []


def why_state(assessment: Mapping[str, Any], number: int) -> str:
    """Say in words why the state of object ``number`` (1, 2) rests on its source; empty: there was no other choice."""
    flags = flags_in(assessment.get("risk_flags"))
    return "; ".join(text for name, text in CHOICES.items() if f"{name}_{number}" in flags)


def error_distribution(assessment: Mapping[str, Any], number: int) -> str:
    """Say in words how the errors of the state of object ``number`` (1, 2) are distributed; empty: as a Gaussian."""
    # Assessments of earlier versions have no such column.
    degrees = assessment.get(f"degrees_of_freedom_{number}")
    return f"long tails: Student's t, {degrees:.1f} degrees of freedom" if degrees else ""
