"""Orbit ephemeris messages (CCSDS 502.0-B-3, OEM) in XML: one segment with its header, as a record."""

from xml.etree.ElementTree import Element

from sda_platform.formats.ephemeris import Covariance, EphemerisParts, EphemerisSegment, EphemerisState, assembled
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.keywords import checked_section, shown, values_of
from sda_platform.formats.ndm import COMMENT, leaves, one_line, place_of, the_segment, version_entry
from sda_platform.formats.orbit_keywords import ACCELERATION, COVARIANCE_TERMS, OEM_COVARIANCE, STATE
from sda_platform.formats.records import RawRecord


def read_oem_xml(record: RawRecord) -> EphemerisSegment:
    """Return the ephemeris of one record. Raises RecordError with the line, the keyword and the reason."""
    message, header, metadata, data = the_segment(record.payload, "oem", record.line_of)
    parts = EphemerisParts([*version_entry(message), *leaves(header)], leaves(metadata))
    for element in data:
        if element.tag == "stateVector":
            parts.states.append(_state(element))
        elif element.tag == "covarianceMatrix":
            parts.comments.extend(entry.value for entry in leaves(element) if entry.keyword == COMMENT)
            parts.covariances.append(_covariance(element))
        elif element.tag == COMMENT:
            parts.comments.append(one_line(element.text or ""))
        else:
            raise RecordError("bad_field", f"{place_of(element)}: <{shown(element.tag)}> is no part of an ephemeris")
    return assembled(parts)


def _state(element: Element) -> EphemerisState:
    values = values_of(checked_section(leaves(element), (*STATE, *ACCELERATION), "stateVector"))
    names = [keyword.name for keyword in (*STATE[1:], *ACCELERATION) if keyword.name in values]
    if len(names) not in (6, 9):
        raise RecordError("missing_field", f"{place_of(element)}: an acceleration has three components")
    return EphemerisState(place_of(element), parse_epoch_ns(values["EPOCH"]), [float(values[name]) for name in names])


def _covariance(element: Element) -> Covariance:
    values = values_of(checked_section(leaves(element), OEM_COVARIANCE, "covarianceMatrix"))
    terms = [float(values[term]) for term in COVARIANCE_TERMS]
    return Covariance(parse_epoch_ns(values["EPOCH"]), values.get("COV_REF_FRAME", ""), terms)
