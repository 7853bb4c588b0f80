"""Every format of the platform, declared once: landing, decoding, conversion and docs derive from this list."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from sda_platform.formats.cdm import read_cdm_record
from sda_platform.formats.cdm_json import BEGINS as CDM_JSON
from sda_platform.formats.cdm_json import encode_cdm_json, read_cdm_json
from sda_platform.formats.cdm_writing import encode_cdms
from sda_platform.formats.format import Content, Format, ObservationFormat, RecordFormat
from sda_platform.formats.framing.container import CONTAINER
from sda_platform.formats.framing.json_array import JSON_ARRAY
from sda_platform.formats.framing.lines import CSV, LINE_SETS, LINES
from sda_platform.formats.framing.mapped_lines import MAPPED_LINES
from sda_platform.formats.framing.mapped_lines import PREFIX as MAPPING
from sda_platform.formats.framing.messages import KVN, xml_elements
from sda_platform.formats.framing.segments import (
    kvn_observations,
    kvn_segments,
    one_record,
    xml_observations,
    xml_segments,
)
from sda_platform.formats.isl import decode_isl_frames
from sda_platform.formats.mapped_csv import read_mapped_csv
from sda_platform.formats.oem_kvn import read_oem_kvn
from sda_platform.formats.oem_writing import write_oem_kvn, write_oem_xml
from sda_platform.formats.oem_xml import read_oem_xml
from sda_platform.formats.omm import (
    encode_omm,
    encode_omm_csv,
    encode_omm_json,
    read_omm,
    read_omm_csv,
    read_omm_json,
)
from sda_platform.formats.optical_columns import decode_optical_records
from sda_platform.formats.orbit_keywords import OPM
from sda_platform.formats.own_formats import OWN_FORMATS
from sda_platform.formats.parameter_messages import read_parameters, write_parameters
from sda_platform.formats.radar import decode_radar_frames
from sda_platform.formats.records import Framing, RawRecord
from sda_platform.formats.satcat import SATCAT_FORMATS
from sda_platform.formats.tabulated_formats import TABULATED_FORMATS
from sda_platform.formats.tdm_reading import read_tdm_kvn, read_tdm_xml
from sda_platform.formats.tdm_writing import write_tdm_kvn, write_tdm_xml
from sda_platform.formats.telemetry import TELEMETRY_FORMAT
from sda_platform.formats.tle import read_tle
from sda_platform.formats.tle_writing import encode_tles


def _message(
    kind: str,
    title: str,
    content: Content,
    zone: str,
    *,
    kvn: tuple[Framing, Callable[[RawRecord], Any], Callable[[Sequence[Any]], bytes]],
    xml: tuple[Framing, Callable[[RawRecord], Any], Callable[[Sequence[Any]], bytes]],
) -> tuple[Format, Format]:
    """A navigation data message in its two encodings, each with framing, reader and writer."""
    version, element = kind.upper().encode(), kind.encode()
    return (
        RecordFormat(
            name=f"{kind}-kvn",
            title=f"{title}, KVN",
            content=content,
            zone=zone,
            suffixes=(".kvn", f".{kind}", ".txt"),
            framing=kvn[0],
            begins=re.compile(rb"^[ \t]*CCSDS_%b_VERS[ \t]*=" % version, re.MULTILINE),
            read=kvn[1],
            write=kvn[2],
        ),
        RecordFormat(
            name=f"{kind}-xml",
            title=f"{title}, XML",
            content=content,
            zone=zone,
            suffixes=(".xml", f".{kind}"),
            framing=xml[0],
            begins=re.compile(rb"<(?:\w+:)?%b[\s>]" % element),
            read=xml[1],
            write=xml[2],
        ),
    )


MAPPED_CSV: Final = "mapped-csv"
FORMATS: Final[tuple[Format, ...]] = (
    ObservationFormat(
        name="radar-frames",
        title="Radar frames, 60 bytes each, in a container",
        content="observation",
        zone="radar",
        suffixes=(".radar",),
        framing=CONTAINER,
        source_kind="radar",
        decode=decode_radar_frames,
    ),
    ObservationFormat(
        name="isl-frames",
        title="Beacons of inter-satellite links, 80 bytes each, in a container",
        content="observation",
        zone="isl",
        suffixes=(".isl",),
        framing=CONTAINER,
        source_kind="isl",
        decode=decode_isl_frames,
    ),
    Format(
        name=TELEMETRY_FORMAT,
        title="Telemetry frames of satellites, 24-byte header and payload, in a container",
        content="telemetry",
        zone="telemetry",
        suffixes=(".telemetry",),
        framing=CONTAINER,
    ),
    ObservationFormat(
        name="optical-jsonl",
        title="Records of telescopes, JSON, one a line",
        content="observation",
        zone="optical",
        suffixes=(".jsonl", ".ndjson"),
        framing=LINES,
        row_column="obs_id",
        source_kind="optical",
        decode=decode_optical_records,
    ),
    RecordFormat(
        name="omm-csv",
        title="Orbit mean-elements message (OMM), CSV",
        content="element set",
        zone="elements",
        suffixes=(".csv",),
        framing=CSV,
        # Its header. No blank before it is given back, so that the line is looked at once.
        begins=re.compile(rb"\A\s*+(?=[^\n]*\bNORAD_CAT_ID\b)(?=[^\n]*\bMEAN_MOTION\b)"),
        read=read_omm_csv,
        write=encode_omm_csv,
    ),
    RecordFormat(
        name="omm-json",
        title="Orbit mean-elements message (OMM), JSON",
        content="element set",
        zone="elements",
        suffixes=(".json",),
        framing=JSON_ARRAY,
        begins=re.compile(rb'"MEAN_MOTION"\s*:|\A\s*\[\s*\]\s*\Z'),
        row_column="NORAD_CAT_ID",
        read=read_omm_json,
        write=encode_omm_json,
    ),
    *_message(
        "omm",
        "Orbit mean-elements message (OMM)",
        "element set",
        "elements",
        kvn=(KVN, partial(read_omm, encoding="kvn"), partial(encode_omm, encoding="kvn")),
        xml=(xml_elements("omm"), partial(read_omm, encoding="xml"), partial(encode_omm, encoding="xml")),
    ),
    RecordFormat(
        name="tle",
        title="Two- and three-line element sets (TLE), Alpha-5",
        content="element set",
        zone="elements",
        suffixes=(".tle", ".2le", ".3le", ".txt"),
        framing=LINE_SETS,
        begins=re.compile(rb"^1 [^\n]{60,}\n\s*2 ", re.MULTILINE),
        read=read_tle,
        write=encode_tles,
    ),
    RecordFormat(
        name="cdm-json",
        title="Conjunction data message (CDM), JSON of Space-Track (cdm, cdm_public)",
        content="conjunction",
        zone="messages",
        suffixes=(".json",),
        framing=JSON_ARRAY,
        begins=CDM_JSON,
        read=read_cdm_json,
        write=encode_cdm_json,
    ),
    *SATCAT_FORMATS,
    *OWN_FORMATS,
    *_message(
        "oem",
        "Orbit ephemeris message (OEM)",
        "ephemeris",
        "ephemerides",
        kvn=(kvn_segments(one_record), read_oem_kvn, write_oem_kvn),
        xml=(xml_segments("oem", one_record), read_oem_xml, write_oem_xml),
    ),
    *TABULATED_FORMATS,
    *_message(
        "opm",
        "Orbit parameter message (OPM)",
        "orbit parameters",
        "ephemerides",
        kvn=(KVN, partial(read_parameters, layout=OPM, encoding="kvn"), partial(write_parameters, encoding="kvn")),
        xml=(
            xml_elements("opm"),
            partial(read_parameters, layout=OPM, encoding="xml"),
            partial(write_parameters, encoding="xml"),
        ),
    ),
    *_message(
        "tdm",
        "Tracking data message (TDM)",
        "tracking data",
        "tracking",
        kvn=(kvn_segments(kvn_observations), read_tdm_kvn, write_tdm_kvn),
        xml=(xml_segments("tdm", xml_observations), read_tdm_xml, write_tdm_xml),
    ),
    RecordFormat(
        name=MAPPED_CSV,
        title="A sensor's own columns, read by a mapping",
        content="tracking data",
        zone="tracking",
        suffixes=(".csv", ".tsv", ".dat", ".txt"),
        framing=MAPPED_LINES,
        begins=re.compile(rb"\A\s*%b" % MAPPING),
        read=read_mapped_csv,
    ),
    *_message(
        "cdm",
        "Conjunction data message (CDM)",
        "conjunction",
        "messages",
        kvn=(KVN, read_cdm_record, partial(encode_cdms, encoding="kvn")),
        xml=(xml_elements("cdm"), read_cdm_record, partial(encode_cdms, encoding="xml")),
    ),
)
_BY_NAME: Final = {each.name: each for each in FORMATS}
ZONES: Final = {
    zone: tuple(f.name for f in FORMATS if f.zone == zone) for zone in dict.fromkeys(f.zone for f in FORMATS)
}
"""The landing zones, and the names of the formats that each may carry."""
OWN_ZONES: Final = tuple(each.zone for each in OWN_FORMATS)
"""Zones of what the platform, its sites and its people state: it commands stations, and decides."""
PARTNER_ZONES: Final = tuple(zone for zone in ZONES if zone not in OWN_ZONES)
"""The zones that files of partners reach, unless the configuration of their source names others."""


class UnknownFormat(ValueError):
    """No format has this name."""


def format_named(name: str) -> Format | None:
    """Return the format of this name, if there is one."""
    return _BY_NAME.get(name)


def known_format(name: str) -> Format:
    """Return the format of this name. Raises UnknownFormat."""
    if name not in _BY_NAME:
        raise UnknownFormat(f"there is no format {name!r}; the formats are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
