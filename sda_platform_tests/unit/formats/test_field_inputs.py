"""Inputs from practice (`data/field`), and their siblings: each is read as its sender means it, by every way in."""

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest

from sda_platform.cli.analysis.pc import risk_of_file
from sda_platform.cli.data.convert import convert_file
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.conversion import ConversionError, converted
from sda_platform.formats.cutting import count_records, split_records, split_stream
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.reading import read_records
from sda_platform.formats.registry import known_format
from sda_platform.formats.text import as_text
from sda_platform.formats.tle import line_checksum
from sda_platform.formats.units import converted as in_unit
from sda_platform.landing.partner_files import identify

FIELD = Path(__file__).parents[2] / "data" / "field"
MESSAGES = Path(__file__).parents[2] / "data" / "messages"
CDM_XML = (FIELD / "022-xml-ndm-prefix-cdm.xml").read_bytes()
CDM_KVN = (FIELD / "057-cdm-kilometres-relabelled.cdm").read_bytes()
TDM = (FIELD / "066-tdm-epoch-digits.tdm").read_bytes()
OMM_KVN = (FIELD / "024-lower-case-omm-kvn.kvn").read_bytes()
TWO_LINES = as_text((FIELD / "015-bom-2le.tle").read_bytes())


def read(data: bytes, name: str) -> list[object]:
    """What the records hold; fails where one cannot be read."""
    values, errors = read_records(list(split_records(data, name)), name, known_format(name).zone)
    assert errors == {}
    return values


def lines_with(first: dict[int, str], second: dict[int, str]) -> bytes:
    """The two lines of 25544 with other columns from those positions on, with their checksums."""
    lines = []
    for line, changes in zip(TWO_LINES.decode().splitlines(), (first, second), strict=True):
        text = line
        for column, value in changes.items():
            text = text[:column] + value + text[column + len(value) :]
        lines.append(f"{text[:68]}{line_checksum(text)}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("first", "second", "column", "value"),
    [
        ({}, {26: "    583"}, "eccentricity", 0.0000583),
        ({}, {26: "      5"}, "eccentricity", 5e-7),
        ({53: "    98-4"}, {}, "bstar_per_earth_radius", 9.8e-8),
        ({53: "-   98-4"}, {}, "bstar_per_earth_radius", -9.8e-8),
        ({53: "        "}, {}, "bstar_per_earth_radius", 0.0),
        ({44: "     1-3"}, {}, "mean_motion_ddot_rev_per_day3", 1e-8),
        ({33: "-.   12345"}, {}, "mean_motion_dot_rev_per_day2", -1.2345e-4),
        ({18: "24  1.50000000"}, {}, "epoch_time_ns", 1_704_110_400_000_000_000),
        ({18: " 4306.18519676"}, {}, "epoch_time_ns", 1_099_283_201_000_064_000),
        ({9: "98 67A  "}, {}, "international_designator", "1998-067A"),
        ({2: "  694"}, {2: "  694"}, "norad_id", 694),
        ({}, {8: "  1.6390"}, "inclination_deg", 1.639),
        ({}, {63: "   12"}, "revolution_at_epoch", 12),
    ],
)
def test_blanks_before_the_digits_of_a_field_are_zeros_field_001(
    first: dict[int, str], second: dict[int, str], column: str, value: object
) -> None:
    (row,) = decode_element_sets(lines_with(first, second), segment_format="tle").to_pylist()
    assert row["error"] is None
    assert row[column] == value


def test_the_field_input_with_blanks_has_the_eccentricity_of_python_sgp4_field_001() -> None:
    data = (FIELD / "001-tle-blank-padded-ecc.tle").read_bytes()
    assert decode_element_sets(data, segment_format="tle")["eccentricity"].to_pylist() == [5.83e-05]


def test_a_day_366_of_a_common_year_is_refused() -> None:
    for year, kinds in (("23", ["out_of_range"]), ("24", [None])):
        rows = decode_element_sets(lines_with({18: f"{year}366.50000000"}, {}), segment_format="tle")
        assert rows["error_kind"].to_pylist() == kinds


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "UTF-8 with a mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "UTF-16 LE with a mark": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "UTF-16 BE with a mark": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
    "UTF-32 LE with a mark": lambda text: codecs.BOM_UTF32_LE + text.encode("utf-32-le"),
    "UTF-16 LE": lambda text: text.encode("utf-16-le"),
    "UTF-16 BE": lambda text: text.encode("utf-16-be"),
    "CR LF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "mark and CR": lambda text: codecs.BOM_UTF8 + text.replace("\n", "\r").encode(),
}
TEXTS = {
    "tle": TWO_LINES,
    "omm-kvn": OMM_KVN,
    "omm-csv": (FIELD / "026-tle-one-number-too-large.csv").read_bytes(),
    "omm-json": b'[{"EPOCH":"2024-11-01T04:26:41","NORAD_CAT_ID":25544,"MEAN_MOTION":15.5,"ECCENTRICITY":0.1,\n'
    b'"INCLINATION":51.6,"RA_OF_ASC_NODE":1,"ARG_OF_PERICENTER":2,"MEAN_ANOMALY":3,"BSTAR":0}]\n',
    "oem-kvn": (FIELD / "052-oem-covariance-tnw.oem").read_bytes(),
    "tdm-kvn": TDM,
    "cdm-kvn": CDM_KVN,
    "cdm-xml": CDM_XML,
    "edits-jsonl": b"",
}


@pytest.mark.parametrize("name", [name for name in TEXTS if TEXTS[name]])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_text_is_read_alike_in_every_encoding_field_015(name: str, encoding: str) -> None:
    data = ENCODINGS[encoding](TEXTS[name].decode())
    expected = [record.payload for record in split_records(TEXTS[name], name)]
    assert [record.payload for record in split_records(data, name)] == expected
    assert count_records(data, name) == len(expected)
    segments = list(split_stream([data[:7], data[7:]], name, max(len(payload) for payload in expected) + 2_000))
    assert [record.payload for each in segments for record in split_records(each, name)] == expected
    assert len(read(data, name)) == len(expected)


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "UTF-16", "utf-8"])
def test_the_declared_encoding_of_xml_is_the_one_that_counts(tmp_path: Path, encoding: str) -> None:
    text = CDM_XML.decode().replace('encoding="UTF-8"', f'encoding="{encoding}"').replace("TESTOPS", "CAFÉ")
    path = tmp_path / "in.xml"
    path.write_bytes(text.encode(encoding))
    (record,) = split_records(path.read_bytes(), "cdm-xml")
    assert "CAFÉ".encode() in record.payload
    assert risk_of_file(path, 5.0).miss_km == pytest.approx(0.15)
    assert "CAFÉ".encode() in convert_file(path, "kvn").data


@pytest.mark.parametrize("name", ["rot13", "zip", "no-such", "utf-7", "idna"])
def test_a_declared_encoding_that_is_none_leaves_the_bytes_to_the_reader(name: str) -> None:
    data = CDM_XML.replace(b"UTF-8", name.encode())
    assert as_text(data) == data


@pytest.mark.parametrize("prefix", ["ndm", "ns0", "a.b-c"])
@pytest.mark.parametrize("kind", ["cdm", "oem", "opm", "omm", "tdm"])
def test_a_prefix_of_a_namespace_changes_nothing_in_any_message_field_022(kind: str, prefix: str) -> None:
    """On the root alone, and on every element (505.0-B-3, 4.3.5 and 4.3.11), in one message and in two."""
    source = {
        "oem": "052-oem-covariance-tnw.oem",
        "omm": "024-lower-case-omm-kvn.kvn",
        "tdm": "066-tdm-epoch-digits.tdm",
    }
    plain = (
        (MESSAGES / "ccsds" / "opm_g3.kvn").read_bytes() if kind == "opm" else (FIELD / source[kind]).read_bytes()
        if kind in source else CDM_KVN
    )  # fmt: skip
    xml = converted(plain, f"{kind}-kvn", f"{kind}-xml").data
    body = xml[xml.index(b"?>") + 2 :]
    declared = f' xmlns:{prefix}="urn:ccsds:schema:ndmxml"'.encode()
    root = f"{prefix}:{kind}".encode()
    on_root = body.replace(f"<{kind} ".encode(), b"<" + root + declared + b" ").replace(
        f"</{kind}>".encode(), b"</" + root + b">"
    )
    everywhere = b"<".join([b"", *(_with_prefix(part, prefix.encode()) for part in body.split(b"<")[1:])]).replace(
        root + b" ", root + declared + b" ", 1
    )
    around = f"<{prefix}:ndm{declared.decode()}>".encode()
    both = around + everywhere.replace(declared, b"") * 2 + f"</{prefix}:ndm>".encode()
    for data, count in ((on_root, 1), (everywhere, 1), (both, 2)):
        assert len(read(data, f"{kind}-xml")) == count
        assert converted(data, f"{kind}-xml", f"{kind}-kvn").records == count
        cut = list(split_stream([data], f"{kind}-xml", len(data) - 1))
        assert sum(len(list(split_records(each, f"{kind}-xml"))) for each in cut) >= count
    assert converted(everywhere, f"{kind}-xml", f"{kind}-kvn").data == converted(xml, f"{kind}-xml", f"{kind}-kvn").data


def _with_prefix(part: bytes, prefix: bytes) -> bytes:
    return b"/" + prefix + b":" + part[1:] if part.startswith(b"/") else prefix + b":" + part


def test_convert_and_pc_read_the_field_input_alike_field_022() -> None:
    path = FIELD / "022-xml-ndm-prefix-cdm.xml"
    assert convert_file(path, "kvn").records == 1
    assert risk_of_file(path, 5.0).object_1 == "SAT A (40001)"


@pytest.mark.parametrize("word", ["earth", "Earth", "EARTH"])
def test_values_of_an_omm_are_upper_or_lower_case_field_024(word: str) -> None:
    for old, new in ((b"earth", word.encode()), (b"SGP4", b"sgp4"), (b"utc", b"UTC"), (b"= teme", b"= Teme")):
        rows = decode_element_sets(OMM_KVN.replace(b"earth", word.encode()).replace(old, new), segment_format="omm-kvn")
        assert rows["norad_id"].to_pylist() == [25544]
    refused = decode_element_sets(OMM_KVN.replace(b"earth", b"mars"), segment_format="omm-kvn")
    assert refused["error_kind"].to_pylist() == ["out_of_range"]


def test_one_set_that_does_not_fit_does_not_spoil_a_file_of_two_lines_field_026() -> None:
    path = FIELD / "026-tle-one-number-too-large.csv"
    with pytest.raises(ConversionError, match=r"record 1, line 3.*799501299.*--skip-bad converts the other 1"):
        convert_file(path, "tle")
    done = convert_file(path, "tle", skip_bad=True)
    assert (done.records, len(done.refused), b"25544" in done.data) == (1, 1, True)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("designator", "1998-067A", "1998-067ABCDE"),
        ("derivative", ".33085E-3", "1.5"),
        ("name", "ISS (ZARYA)", "# ISS"),
    ],
)
def test_other_sets_that_do_not_fit_are_left_out_alone_field_026(name: str, old: str, new: str) -> None:
    del name
    header, first, second = (FIELD / "026-tle-one-number-too-large.csv").read_text().splitlines()
    data = "\n".join([header, first, second.replace("799501299", "25545").replace(old, new)]).encode()
    done = converted(data, "omm-csv", "tle")
    assert (done.records, len(done.refused)) == (1, 1)


@pytest.mark.parametrize(("short", "full"), [(s, f"omm-{s}") for s in ("csv", "json", "kvn", "xml")] + [("tle", "tle")])
def test_formats_of_element_sets_have_short_names_field_027(short: str, full: str) -> None:
    for path in (FIELD / "027-convert-tle-to-csv.tle", FIELD / "024-lower-case-omm-kvn.kvn"):
        assert convert_file(path, short).data == convert_file(path, full).data


@pytest.mark.parametrize("target", ["omm-xml", "omm-kvn", "omm-json", "omm-csv"])
def test_an_object_without_a_designator_states_unknown_and_has_none_when_read_again_field_031(target: str) -> None:
    data = (FIELD / "031-omm-xml-without-object-id.tle").read_bytes()
    written = converted(data, "tle", target).data
    assert b"UNKNOWN" in written
    (row,) = decode_element_sets(written, segment_format=target).to_pylist()
    assert (row["norad_id"], row["international_designator"]) == (270387, None)


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_a_conversion_of_a_cdm_keeps_every_length_and_area_field_057(encoding: str) -> None:
    kilometres = {
        "MISS_DISTANCE = 0.15 [km]": "MISS_DISTANCE = 0.15 [km]\nRELATIVE_POSITION_R = 0.1 [km]",
        "RELATIVE_SPEED = 10671.6 [m/s]": "RELATIVE_SPEED = 10.6716 [km/s]",
        "REF_FRAME = EME2000": "REF_FRAME = EME2000\nAREA_PC = 0.0000125 [km**2]\nMASS = 500000 [g]\n"
        "AREA_DRG = 3 [ft**2]",
    }
    text = CDM_KVN.decode()
    for old, new in kilometres.items():
        text = text.replace(old, new)
    text = text.replace("X = 7000.0 [km]", "X = 7000000 [m]", 1).replace("CR_R = 100 [m**2]", "CR_R = 1e-4 [km**2]")
    before = read_cdm(text.encode())
    after = read_cdm(converted(text.encode(), "cdm-kvn", f"cdm-{encoding}").data)
    for each in (before, after):
        assert each.miss_distance_m == pytest.approx(150)
        assert [float(each.fields[name]) for name in ("MISS_DISTANCE", "RELATIVE_SPEED")] == pytest.approx(
            [150, 10671.6]
        )
        assert float(each.fields["RELATIVE_POSITION_R"]) == pytest.approx(100)
        assert [part.area_pc_m2 for part in each.objects] == pytest.approx([12.5, 12.5])
        assert float(each.objects[0].fields["MASS"]) == pytest.approx(500)
        assert "AREA_DRG = 3 [ft**2]" in each.objects[0].comments
        assert each.objects[0].position_km.tolist() == [7000, 0, 0]
        assert each.objects[0].covariance_rtn[0, 0] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "expected"),
    [
        ("0.15", "km", "m", "150"),
        ("12.5", "m**2", "m**2", "12.5"),
        ("2", "km**2/s", "m**2/s", "2000000"),
        ("1", "m**3/(kg*s)", "m**3/(kg*s)", "1"),
        ("36", "km/h", "m/s", "10"),
        ("3", "ft", "m", None),
        ("3", "kg", "m", None),
        ("x", "km", "m", None),
    ],
)
def test_units_are_converted_within_their_dimension(value: str, unit: str, wanted: str, expected: str | None) -> None:
    assert in_unit(value, unit, wanted) == expected


@pytest.mark.parametrize("digits", ["00:00:00", "00:00:00.000", "00:00:00.000Z", "00:00:00.0+00:00"])
@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_epochs_of_tracking_data_are_compared_as_times_field_066(digits: str, encoding: str) -> None:
    for other in (f"2024-05-03T{digits}", f"2024-124T{digits.partition('+')[0]}"):
        data = TDM.replace(b"2024-05-03T00:00:00.000", other.encode())
        if encoding == "xml":
            whole = converted(TDM, "tdm-kvn", "tdm-xml").data.decode()
            at = whole.rindex("<EPOCH>") + 7
            data = (whole[:at] + other + whole[whole.index("</EPOCH>", at) :]).encode()
        (found,) = read(data, f"tdm-{encoding}")
        assert found.numbers() == {"ANGLE_1": 123.456, "ANGLE_2": -12.5}  # type: ignore[attr-defined]


def test_the_formats_of_the_field_inputs_are_recognised() -> None:
    found = {path.name[:3]: identify(path).format for path in FIELD.iterdir() if path.suffix != ".md"}
    assert found["015"] == "tle"
    assert found["022"] == "cdm-xml"
    assert found["053"] == "oem-kvn"


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2016-12-31T23:59:60", "2017-01-01T00:00:00"),
        ("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.5"),
        ("2016-366T23:59:60", "2017-01-01T00:00:00"),
        ("2024-366T00:00:00", "2024-12-31T00:00:00"),
        ("2024-05-03T02:00:00.25+02:00", "2024-05-03T00:00:00.25"),
        ("2024-05-02T19:30:00-0430", "2024-05-03T00:00:00"),
        ("2024-05-03t00:00:00z", "2024-05-03T00:00:00"),
        ("2024-05-03T00:00:00.", "2024-05-03T00:00:00"),
        ("2024-05-03 00:00:00", "2024-05-03T00:00:00"),
    ],
)
def test_instants_in_other_notations(text: str, same_as: str) -> None:
    assert parse_epoch_ns(text) == parse_epoch_ns(same_as)


@pytest.mark.parametrize(
    "text",
    ["2023-366T00:00:00", "2024-000T00:00:00", "2024-367T00:00:00", "2024-05-03T12:00:60", "2024-12-31T23:59:60",
     "2024-05-03T23:60:00", "2024-02-30T00:00:00", "2024-05-03T00:00:00+99:00", "2024-05-03T24:00:00.5", "soon"],
)  # fmt: skip
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(RecordError, match="EPOCH is"):
        parse_epoch_ns(text)
