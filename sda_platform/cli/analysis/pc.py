"""`sda pc`: read one conjunction data message and print its collision probability and risk level."""

from collections.abc import Iterator
from pathlib import Path

import click

from sda_platform.conjunction.received_cdms import MessageRisk, message_risk
from sda_platform.conjunction.tables import MESSAGES_FEED
from sda_platform.formats.cdm import Cdm, read_cdm
from sda_platform.formats.cutting import split_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.reading import error_text, read_records
from sda_platform.landing.contents import UnreadableContent, read_chunks
from sda_platform.landing.partner_files import PartnerFileError, identify

_MEANING = {
    "low_relative_speed": "the relative speed is not well known",
    "extended_encounter": "the encounter is long",
    "curved_motion": "the orbits bend within the uncertainty",
    "indefinite_covariance": "a position covariance had negative eigenvalues, which were clipped",
    "indefinite_velocity_covariance": "a covariance has negative eigenvalues with its velocities, which were clipped",
    "persistent_encounter": "the objects keep together: a new meeting within half a revolution about TCA is counted",
    "unresolved_encounter": "where the uncertain orbits meet could not be found, so that nothing is better than 2D",
    "covariance_missing": "a position covariance is zero, singular or a default (1,000 km and more): the level follows "
    "the largest Pc over all that the object may have",
    "velocity_covariance_missing": "a velocity covariance is zero or singular: 2D cannot be validated",
    "work_budget_exhausted": "the longer computation was ended at its limit of evaluations",
    "unusable_input": "a state, radius or covariance is not finite or too large to compute with",
    "diluted": "the uncertainty is so large that more of it lowers Pc; see the maximum",
    **{f"default_covariance_{n}": f"the covariance of object {n} is a default, no result of tracking" for n in (1, 2)},
    "states_disagree_with_miss_distance": "the distance of the states is not the stated miss distance",
}

_VERDICTS = {True: "valid", False: "does not hold here, so it does not count", None: "validity unknown"}
"""What a 2D Pc is worth, by its validity."""


def risk_of_file(path: Path, hard_body_radius_m: float | None) -> MessageRisk:
    """Read and assess a CDM (KVN, XML, JSON), as `sda convert` reads it, compressed or not. Raises ClickException."""
    try:
        return message_risk(_message(path), hard_body_radius_m)
    except (OSError, RecordError, UnreadableContent) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.ClickException(f"{path}: {reason}") from None


def _message(path: Path) -> Cdm:
    """Return the one message of a file; a file of another name or content is read as KVN or XML."""
    try:
        name = identify(path, feed=MESSAGES_FEED).format
    except PartnerFileError:
        return read_cdm(path.read_bytes())
    records = list(split_records(b"".join(read_chunks(path, name, lambda _position: None)), name))
    if len(records) != 1:
        raise RecordError("bad_length", f"holds {len(records)} messages, must be one")
    values, errors = read_records(records, name, MESSAGES_FEED)
    if errors:
        raise RecordError(errors[0].kind, error_text(records[0], errors[0]) or "")
    if not isinstance(values[0], Cdm):
        raise RecordError("missing_field", "has no states and covariances (cdm_public), so no Pc follows from it")
    return values[0]


def risk_lines(risk: MessageRisk) -> Iterator[str]:
    """Yield the answer for people, line by line."""
    yield f"{risk.object_1} and {risk.object_2}, TCA {risk.tca_utc}"
    sigmas = _shown(risk.mahalanobis_distance)
    yield f"  miss {risk.miss_km:,.3f} km at {risk.relative_speed_km_s:.6g} km/s, {sigmas} sigmas"
    yield f"  hard-body radius {risk.hard_body_radius_m:g} m ({risk.hard_body_radius_source})"
    error = f" ± {risk.standard_error:.1g}" if risk.standard_error is not None else ""
    yield f"  Pc {_shown(risk.pc)}{error} by {risk.method}: {risk.risk}"
    verdict = _VERDICTS[risk.valid_2d]
    scaled = f" with sigmas times {_shown(risk.max_pc_sigma_scale)}" if risk.max_pc_sigma_scale is not None else ""
    most = f"at most {_shown(risk.max_pc)}{scaled}"
    yield f"  2D Pc {_shown(risk.pc_2d)}, {verdict}; {most}"
    if risk.pc_in_message is not None:
        yield f"  Pc stated in the message: {_shown(risk.pc_in_message)}"
    for flag in risk.flags:
        yield f"  {flag}: {_MEANING[flag]}"


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"
