"""Element sets: the published samples and verification file, round trips, errors per record, any bytes."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.foreign_text import is_plain
from sda_platform.formats.conversion import converted
from sda_platform.formats.cutting import split_records
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import ELEMENT_SCHEMA, decode_element_sets
from sda_platform.formats.errors import ERROR_KINDS
from sda_platform.formats.instants import format_epoch, parse_epoch_ns
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.formats.tle import decode_alpha_5, line_checksum
from sda_platform.simulation.reference import reference_catalogue

CSV_HEADER = (
    "OBJECT_NAME,OBJECT_ID,EPOCH,MEAN_MOTION,ECCENTRICITY,INCLINATION,RA_OF_ASC_NODE,ARG_OF_PERICENTER,"
    "MEAN_ANOMALY,EPHEMERIS_TYPE,CLASSIFICATION_TYPE,NORAD_CAT_ID,ELEMENT_SET_NO,REV_AT_EPOCH,BSTAR,"
    "MEAN_MOTION_DOT,MEAN_MOTION_DDOT"
)
VANGUARD_CSV = (
    "VANGUARD 1,1958-002B,2020-10-13T04:52:48.472320,10.84869164,.1845686,34.2443,225.5254,162.2516,205.2356,"
    "0,U,5,999,21814,-.22483E-4,-1.6E-7,0"
)
VANGUARD = ElementSet(
    norad_id=5,
    object_name="VANGUARD 1",
    international_designator="1958-002B",
    epoch_time_ns=1_602_564_768_472_320_000,
    mean_motion_rev_per_day=10.84869164,
    eccentricity=0.1845686,
    inclination_deg=34.2443,
    raan_deg=225.5254,
    arg_of_pericenter_deg=162.2516,
    mean_anomaly_deg=205.2356,
    bstar_per_earth_radius=-0.22483e-4,
    mean_motion_dot_rev_per_day2=-1.6e-7,
    mean_motion_ddot_rev_per_day3=0.0,
    element_set_number=999,
    revolution_at_epoch=21814,
)
# The first case of the SGP4 verification set (Vallado et al., AIAA 2006-6753).
TLE = (
    "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753\n"
    "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667"
)


def elements_of(row: dict[str, object]) -> ElementSet:
    return ElementSet(**{name: row[name] for name in ELEMENT_SCHEMA.names[4:]})  # type: ignore[arg-type]


def decode_csv(*lines: str) -> list[dict[str, object]]:
    data = "\r\n".join([CSV_HEADER, *lines]).encode()
    rows: list[dict[str, object]] = decode_element_sets(data, segment_format="omm-csv").to_pylist()
    return rows


def test_celestrak_csv_line_reads_exactly() -> None:
    (row,) = decode_csv(VANGUARD_CSV)
    assert row["error"] is None
    assert row["payload"] == VANGUARD_CSV.encode()
    assert elements_of(row) == VANGUARD


@pytest.mark.parametrize("as_text", [False, True])
def test_json_reads_numbers_and_numbers_as_text_alike(as_text: bool) -> None:
    values: dict[str, object] = dict(zip(CSV_HEADER.split(","), VANGUARD_CSV.split(","), strict=True))
    if not as_text:
        texts = ("OBJECT_NAME", "OBJECT_ID", "EPOCH", "CLASSIFICATION_TYPE")
        numbers = {key: float(str(value)) for key, value in values.items() if key not in texts}
        integers = {key: int(numbers[key]) for key in ("NORAD_CAT_ID", "ELEMENT_SET_NO", "EPHEMERIS_TYPE")}
        values = {**values, **numbers, **integers}
    data = json.dumps([{**values, "ORIGINATOR": "18 SPCS", "REF_FRAME": "TEME"}]).encode()
    (row,) = decode_element_sets(data, segment_format="omm-json").to_pylist()
    assert row["error"] is None
    assert elements_of(row) == replace(VANGUARD, originator="18 SPCS")


def test_tle_reads_exactly() -> None:
    (row,) = decode_element_sets(f"0 VANGUARD 1\n{TLE}".encode(), segment_format="tle").to_pylist()
    assert row["error"] is None
    assert elements_of(row) == ElementSet(
        norad_id=5,
        object_name="VANGUARD 1",
        international_designator="1958-002B",
        epoch_time_ns=962_131_819_733_568_000,
        mean_motion_rev_per_day=10.82419157,
        eccentricity=0.1859667,
        inclination_deg=34.2682,
        raan_deg=348.7242,
        arg_of_pericenter_deg=331.7664,
        mean_anomaly_deg=19.3264,
        bstar_per_earth_radius=0.28098e-4,
        mean_motion_dot_rev_per_day2=2.3e-7,
        mean_motion_ddot_rev_per_day3=0.0,
        element_set_number=475,
        revolution_at_epoch=41366,
    )


@pytest.mark.parametrize(
    ("field", "number"),
    [("00005", 5), ("99999", 99_999), ("A0000", 100_000), ("Z9999", 339_999), ("   25", 25)],
)
def test_alpha_5_catalogue_numbers(field: str, number: int) -> None:
    assert decode_alpha_5(field) == number


def with_checksum(line: str) -> str:
    return line[:68] + str(line_checksum(line))


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (TLE.replace("  4753", "  4754"), "bad_checksum"),
        (TLE.replace(" 34.2682", " 34.2683"), "bad_checksum"),
        (TLE[:-1], "bad_length"),
        (TLE.split("\n")[0], "torn_record"),
        ("\n".join(with_checksum(line.replace("00005", "I0005")) for line in TLE.split("\n")), "bad_field"),
        (
            "\n".join(with_checksum(line.replace("00179.", "00479.")) for line in TLE.split("\n")),
            "out_of_range",
        ),
        (TLE.replace("2 00005", "2 00006").replace("413667", "413668"), "bad_field"),
        (
            "\n".join(with_checksum(line.replace("34.2682", "3x.2682")) for line in TLE.split("\n")),
            "bad_field",
        ),
    ],
)
def test_unusable_tle_is_an_error_of_its_kind(lines: str, kind: str) -> None:
    table = decode_element_sets(lines.encode(), segment_format="tle")
    assert table["error_kind"].to_pylist() == [kind], table["error"].to_pylist()


@pytest.mark.parametrize(
    ("old", "new", "kind", "keyword"),
    [
        ("10.84869164", "", "missing_field", "MEAN_MOTION"),
        ("10.84869164", "fast", "bad_field", "MEAN_MOTION"),
        ("10.84869164", "1_0", "bad_field", "MEAN_MOTION"),
        ("10.84869164", "0", "out_of_range", "mean_motion"),
        (".1845686", "1.0", "out_of_range", "eccentricity"),
        ("34.2443", "nan", "out_of_range", "INCLINATION"),
        ("34.2443", "180.1", "out_of_range", "inclination_deg"),
        (",5,", ",-5,", "out_of_range", "norad_id"),
        (",5,", ",5.5,", "bad_field", "NORAD_CAT_ID"),
        ("2020-10-13T", "2020-13-13T", "bad_field", "EPOCH"),
        ("2020-10-13T", "1820-10-13T", "out_of_range", "epoch_time_ns"),
        (",0,U", ",4,U", "out_of_range", "EPHEMERIS_TYPE"),
        (",999,", ",999", "bad_length", "fields"),
        ("VANGUARD 1", '"VANGUARD', "bad_length", "fields"),
    ],
)
def test_one_unusable_csv_line_is_one_error_row_and_its_neighbours_stay(
    old: str, new: str, kind: str, keyword: str
) -> None:
    before, broken, after = decode_csv(VANGUARD_CSV, VANGUARD_CSV.replace(old, new, 1), VANGUARD_CSV)
    assert elements_of(before) == elements_of(after) == VANGUARD
    assert broken["error_kind"] == kind
    assert keyword in str(broken["error"])
    assert broken["norad_id"] is None


def test_a_frame_sgp4_does_not_work_in_is_refused() -> None:
    values = dict(zip(CSV_HEADER.split(","), VANGUARD_CSV.split(","), strict=True)) | {"REF_FRAME": "ICRF"}
    (row,) = decode_element_sets(json.dumps(values).encode(), segment_format="omm-json").to_pylist()
    assert (row["error_kind"], "REF_FRAME" in row["error"]) == ("out_of_range", True)


names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), min_size=1).filter(
    lambda text: text == text.strip() and is_plain(text)
)
element_sets = st.builds(
    ElementSet,
    norad_id=st.integers(1, 999_999_999),
    object_name=st.none() | names,
    international_designator=st.just("2024-001ZZZ"),
    epoch_time_ns=st.integers(-386_380_800_000_000_000 // 1000, 4_102_444_800_000_000).map(lambda us: us * 1000),
    mean_motion_rev_per_day=st.floats(0.01, 18),
    eccentricity=st.floats(0, 0.99),
    inclination_deg=st.floats(0, 180),
    raan_deg=st.floats(0, 360),
    arg_of_pericenter_deg=st.floats(0, 360),
    mean_anomaly_deg=st.floats(0, 360),
    bstar_per_earth_radius=st.floats(-1, 1),
    mean_motion_dot_rev_per_day2=st.floats(-1, 1),
    mean_motion_ddot_rev_per_day3=st.floats(-1, 1),
    element_set_number=st.integers(0, 9999),
    originator=st.none() | st.just("18 SDS"),
    classification=st.sampled_from("UCS"),
    revolution_at_epoch=st.integers(0, 999_999),
    decay_time_ns=st.none() | st.integers(0, 4 * 10**18),
)


@given(st.lists(element_sets, max_size=5))
def test_element_sets_survive_omm_csv_to_the_last_digit(sets: list[ElementSet]) -> None:
    rows = decode_element_sets(encode_omm_csv(sets), segment_format="omm-csv").to_pylist()
    assert [row["error"] for row in rows] == [None] * len(sets)
    assert [elements_of(row) for row in rows] == sets


@given(st.integers(-(10**18), 4 * 10**18))
def test_epochs_keep_every_nanosecond(time_ns: int) -> None:
    assert parse_epoch_ns(format_epoch(time_ns)) == time_ns


@pytest.mark.parametrize("segment_format", ["omm-json", "omm-kvn", "omm-xml"])
def test_real_element_sets_are_the_same_rows_in_every_format(segment_format: str) -> None:
    """Among them names with brackets, which are no units: STARLINK-11072 [DTC]."""
    lines = reference_catalogue().splitlines()
    names = [line for line in lines[1:] if b"[" in line][:20]
    sets = b"\n".join([lines[0], *lines[1::300], *names]) + b"\n"
    assert names
    written = converted(sets, "omm-csv", segment_format)
    rows = decode_element_sets(written.data, segment_format=segment_format)
    assert written.refused == ()
    expected = decode_element_sets(sets, segment_format="omm-csv")
    told = ["payload", "originator"]  # a message has an originator, a line of this file has none
    assert rows.drop(told) == expected.drop(told)


@pytest.mark.parametrize("segment_format", ["omm-csv", "omm-json", "tle", "sgml"])
@given(data=st.data())
def test_any_bytes_give_one_row_a_record_and_never_an_exception(segment_format: str, data: st.DataObject) -> None:
    noise = st.binary(max_size=120) | st.text(max_size=120).map(str.encode)
    damaged = st.tuples(st.sampled_from([VANGUARD_CSV, TLE, '[{"EPOCH": 1}]']), st.integers(0, 60), noise).map(
        lambda parts: parts[0].encode()[: parts[1]] + parts[2] + parts[0].encode()[parts[1] :]
    )
    header = st.sampled_from([CSV_HEADER.encode() + b"\n", b""])
    segment = data.draw(header) + b"\n".join(data.draw(st.lists(noise | damaged, max_size=4)))
    table = decode_element_sets(segment, segment_format=segment_format)
    assert table.schema == ELEMENT_SCHEMA
    assert table.num_rows == len(list(split_records(segment, segment_format)))
    for row in table.to_pylist():
        assert (row["error_kind"] is None) == (row["norad_id"] is not None) == (row["error"] is None)
        assert row["error_kind"] in (None, *ERROR_KINDS)
