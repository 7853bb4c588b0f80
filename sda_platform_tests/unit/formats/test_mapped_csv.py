"""A sensor's own CSV, read by a mapping: each unit and form of time, the same physics as our formats, refusals."""

from ast import literal_eval
from copy import deepcopy
from math import pi
from typing import Any

import pytest
from pydantic import ValidationError

from sda_platform.formats.column_mapping import ColumnMapping
from sda_platform.formats.conversion import converted
from sda_platform.formats.cutting import (
    can_be_packed,
    count_records,
    pack_segment,
    segment_header,
    split_records,
    split_stream,
)
from sda_platform.formats.mapped_csv import mapping_line, misfit
from sda_platform.formats.optical import OBSERVER, OpticalRecord, encode_optical_record
from sda_platform.formats.segments import describe_segment
from sda_platform.ingest.decoding import decode
from sda_platform_tests.support.sample_inputs import MAPPED, MAPPING, NOW_NS, SAMPLES

BASE_NS = 1_730_419_200_000_000_000  # 2024-11-01T00:00:00 UTC
TELESCOPE: dict[str, Any] = {
    "mapping": "teide.toml",
    "sensor": "teide",
    "object": {"column": "id"},
    "frame": "ICRF",
    "time": {"column": "t", "format": "iso"},
    "fields": {"right_ascension": {"column": "ra", "unit": "deg"}, "declination": {"column": "dec", "unit": "deg"}},
}
RADAR_TDM = b"""CCSDS_TDM_VERS = 2.0
CREATION_DATE = 2024-11-01T00:10:00
ORIGINATOR = TENERIFE
META_START
TIME_SYSTEM = UTC
PARTICIPANT_1 = RADAR-31
PARTICIPANT_2 = object A
MODE = SEQUENTIAL
PATH = 1,2,1
TIMETAG_REF = RECEIVE
RANGE_UNITS = km
ANGLE_TYPE = AZEL
META_STOP
DATA_START
RANGE = 2024-11-01T00:00:00.250 1204.3005
DOPPLER_INSTANTANEOUS = 2024-11-01T00:00:00.250 -2.15025
ANGLE_1 = 2024-11-01T00:00:00.250 71.6197243913529
ANGLE_2 = 2024-11-01T00:00:00.250 38.5
DATA_STOP
"""


def rows(data: bytes, name: str = "mapped-csv") -> list[dict[str, Any]]:
    """The observations that a segment becomes, without what is of the segment."""
    feed = "optical" if name == "optical-jsonl" else "tracking"
    meta = describe_segment(data, feed=feed, segment_format=name, sealed_time_ns=NOW_NS, sealed_wall_time_ns=NOW_NS)
    found: list[dict[str, Any]] = decode([(data, meta)]).drop_columns(["payload", "segment"]).to_pylist()
    return found


def read(mapping: dict[str, Any], csv: str | bytes) -> list[dict[str, Any]]:
    return rows(mapping_line(ColumnMapping.model_validate(mapping)) + (csv.encode() if isinstance(csv, str) else csv))


def changed(mapping: dict[str, Any], **options: Any) -> dict[str, Any]:
    made = deepcopy(mapping)
    for path, value in options.items():
        *within, last = path.split("__")
        place = made
        for name in within:
            place = place[name]
        place[last] = value
    return made


def test_a_line_is_the_observation_of_the_same_numbers_in_a_tracking_data_message() -> None:
    mine, theirs = read(MAPPING, MAPPED)[0], rows(RADAR_TDM, "tdm-kvn")[0]
    assert mine["azimuth_rad"] == pytest.approx(1.25, abs=1e-15)
    assert (mine["range_sigma_m"], theirs["range_sigma_m"]) == (15.0, None)
    assert mine["sensor_time_ns"] == BASE_NS + 250_000_000 - round(1_204_300.5 / 299_792_458.0 * 1e9)
    own = {"observation_id", "range_sigma_m", "azimuth_rad"}
    assert {name: mine[name] for name in mine if name not in own} == {
        name: theirs[name] for name in theirs if name not in own
    }
    assert theirs["azimuth_rad"] == pytest.approx(1.25, abs=1e-14)


def test_a_direction_is_the_one_of_a_telescopes_record_in_its_frame() -> None:
    mapping = changed(
        TELESCOPE, frame="TEME", fields__angle_sigma={"value": 2.0, "unit": "arcsec"},
        clock_quality="ntp_synced", aberration="annual",
    )  # fmt: skip
    mine = read(mapping, "t,id,ra,dec\n2024-11-01T00:00:00,a1,57.29577951308232,-28.64788975654116\n")[0]
    own = OpticalRecord("a1", BASE_NS, 1.0, -0.5, 2.0, "teide", angle_frame="TEME", angle_aberration="annual")
    theirs = rows(encode_optical_record(own) + b"\n", "optical-jsonl")[0]
    for name in ("right_ascension_rad", "declination_rad", "angle_sigma_rad"):
        assert mine.pop(name) == pytest.approx(theirs.pop(name), rel=1e-14), name
    assert mine.pop("observation_id") != theirs.pop("observation_id")
    assert mine == theirs


def test_a_telescope_in_orbit_states_where_it_was_as_in_its_record__41() -> None:
    place_km, speed_km_s = (6871.0, -12.5, 301.25), (0.25, 7.5, -1.125)
    fields = {
        **{f"fields__observer_{axis}": {"column": axis, "unit": "km"} for axis in "xyz"},
        **{f"fields__observer_v{axis}": {"column": f"v{axis}", "unit": "km/s"} for axis in "xyz"},
        "fields__observer_sigma": {"value": 15, "unit": "m"},
        "fields__angle_sigma": {"value": 2.0, "unit": "arcsec"},
    }
    mapping = changed(TELESCOPE, sensor="orbit-51985", frame="TEME", clock_quality="ntp_synced", **fields)
    state = ",".join(map(str, (*place_km, *speed_km_s)))
    csv = f"t,id,ra,dec,x,y,z,vx,vy,vz\n2024-11-01T00:00:00,a1,57.29577951308232,-28.64788975654116,{state}\n"
    data = mapping_line(ColumnMapping.model_validate(mapping)) + csv.encode()
    mine, again = rows(data)[0], rows(converted(data, "mapped-csv", "tdm-xml").data, "tdm-xml")[0]
    observer: dict[str, Any] = dict(zip(OBSERVER, [*(1000 * n for n in (*place_km, *speed_km_s)), 15.0], strict=True))
    own = OpticalRecord("a1", BASE_NS, 1.0, -0.5, 2.0, "orbit-51985", angle_frame="TEME", **observer)
    theirs = rows(encode_optical_record(own) + b"\n", "optical-jsonl")[0]
    assert (mine["error"], mine["source_id"], again) == (None, "optical-orbit-51985", mine)
    numbers = {name for name, value in theirs.items() if isinstance(value, float)}
    assert numbers > {"x_m", "vz_m_s", "position_sigma_m"}
    assert {name: mine[name] for name in numbers} == pytest.approx({name: theirs[name] for name in numbers}, rel=1e-14)
    (low,) = read(mapping, csv.replace("6871.0", "71.0"))
    assert "geocentric_distance_m is" in low["error"]
    turned = read(changed(mapping, frame="EME2000"), csv)[0]
    assert 1e3 < abs(turned["y_m"] - mine["y_m"]) < 1e5
    for path in ("fields__observer_vz", "fields__angle_sigma"):
        less = deepcopy(mapping)
        del less["fields"][path.removeprefix("fields__")]
        with pytest.raises(ValidationError, match="a telescope in orbit has observer_x, observer_y"):
            ColumnMapping.model_validate(less)


def test_conversion_to_a_message_and_back_keeps_every_column() -> None:
    mapping = changed(
        MAPPING, clock_quality="ntp_synced", refraction="included", fields__clock_age={"value": 30.0, "unit": "s"}
    )
    data = mapping_line(ColumnMapping.model_validate(mapping)) + MAPPED
    before = rows(data)
    assert (before[0]["clock_age_s"], before[0]["angle_refraction"]) == (30.0, "included")
    for target in ("tdm-kvn", "tdm-xml"):
        done = converted(data, "mapped-csv", target)
        assert (done.records, rows(done.data, target)) == (2, before)


RAD = pi / 180
QUANTITIES = [
    ("range", "1204.3005", "km", "range_m", 1_204_300.5),
    ("range", "1204300.5", "m", "range_m", 1_204_300.5),
    ("range_rate", "-2.15025", "km/s", "range_rate_m_s", -2150.25),
    ("range_rate", "-215025", "cm/s", "range_rate_m_s", -2150.25),
    ("range_sigma", "0.015", "km", "range_sigma_m", 15.0),
    ("range_rate_sigma", "200", "mm/s", "range_rate_sigma_m_s", 0.2),
    ("azimuth", "143.2", "deg", "azimuth_rad", 2.499311488855880),
    ("azimuth", "1.25", "rad", "azimuth_rad", 1.25),
    ("elevation", "671.95", "mrad", "elevation_rad", 0.67195),
    ("elevation", "2310", "arcmin", "elevation_rad", 38.5 * RAD),
    ("elevation", "138600", "arcsec", "elevation_rad", 38.5 * RAD),
    ("elevation", "138600000", "mas", "elevation_rad", 38.5 * RAD),
    ("azimuth", "9:32:48.0", "hms", "azimuth_rad", 143.2 * RAD),
    ("azimuth", "9h32m48.0s", "hms", "azimuth_rad", 143.2 * RAD),
    ("azimuth", "9.5466666666666667", "hours", "azimuth_rad", 143.2 * RAD),
    ("elevation", "38 30 00", "dms", "elevation_rad", 38.5 * RAD),
    ("elevation", "-0:30:00.0", "dms", "elevation_rad", -0.5 * RAD),
    ("elevation", "+38d30'00\"", "dms", "elevation_rad", 38.5 * RAD),
    ("clock_age", "2", "min", "clock_age_s", 120.0),
]


@pytest.mark.parametrize(("quantity", "text", "unit", "column", "expected"), QUANTITIES)
def test_a_quantity_in_its_unit_becomes_the_column_of_the_observation(
    quantity: str, text: str, unit: str, column: str, expected: float
) -> None:
    mapping = changed(MAPPING, **{f"fields__{quantity}": {"column": "own", "unit": unit}})
    quoted = text.replace('"', '""')
    (row,) = read(mapping, f'UT;Target;Rng;Rdot;Az;El;own\n2024-11-01T00:00:00;A;1e6;-1;1;38.5;"{quoted}"\n')
    assert row["error"] is None
    assert row[column] == pytest.approx(expected, rel=1e-14)


# 2024-11-01T06:00:00.25 UTC; TAI is 37 s ahead, GPS 18 s, TT 69.184 s.
AT_NS = BASE_NS + 21_600_250_000_000
TIMES = [
    ("iso", "2024-11-01T06:00:00.25", "UTC"),
    ("iso", "2024-11-01 06:00:00.250000Z", "UTC"),
    ("iso", "2024-306T06:00:00.25", "UTC"),
    ("iso", "2024-11-01T08:00:00.25+02:00", "UTC"),
    ("iso", "2024-11-01T06:00:37.25", "TAI"),
    ("iso", "2024-11-01T06:00:18.25", "GPS"),
    ("iso", "2024-11-01T06:01:09.434", "TT"),
    ("unix_s", "1730440800.25", "UTC"),
    ("unix_s", "1.73044080025e9", "UTC"),
    ("unix_ms", "1730440800250", "UTC"),
    ("unix_us", "1730440800250000", "UTC"),
    ("unix_ns", "1730440800250000000", "UTC"),
    ("mjd", "60615.2500028935185185", "UTC"),
    ("jd", "2460615.7500028935185185", "UTC"),
    ("year_day", "2024-306.2500028935185185", "UTC"),
    ("year_day", "2024 306.2500028935185185", "UTC"),
    ("year_day", "2024306.2500028935185185", "UTC"),
    ("year_day", "24306.2500028935185185", "UTC"),
    ("%d.%m.%Y %H:%M:%S.%f", "01.11.2024 06:00:00.250", "UTC"),
]


@pytest.mark.parametrize(("form", "text", "system"), TIMES)
def test_a_time_in_its_form_and_system_is_the_instant(form: str, text: str, system: str) -> None:
    time = {"column": "t", "format": form, "system": system}
    (row,) = read(changed(TELESCOPE, time=time), f"t,id,ra,dec\n{text},a,10,20\n")
    assert row["error"] is None
    assert row["sensor_time_ns"] == AT_NS


@pytest.mark.parametrize(("refers_to", "light_times"), [("receive", -1), ("object", 0), ("transmit", 1)])
def test_a_radars_time_is_that_at_the_object(refers_to: str, light_times: int) -> None:
    mapping = changed(MAPPING, time__refers_to=refers_to)
    assert read(mapping, MAPPED)[0]["sensor_time_ns"] == (
        BASE_NS + 250_000_000 + light_times * round(1_204_300.5 / 299_792_458.0 * 1e9)
    )


def test_without_a_header_columns_are_numbers_and_blanks_may_separate_them() -> None:
    mapping = changed(
        TELESCOPE, header=False, files="teide-*", separator="whitespace", skip_lines=2, comment="%", sensor="teide",
        object="unknown", time={"column": [1, 2], "format": "year_day"}, missing=("-",),
        fields={
            "right_ascension": {"column": 3, "unit": "hours"}, "declination": {"column": 4, "unit": "deg"},
            "angle_sigma": {"column": 5, "unit": "arcsec"},
        },
    )  # fmt: skip
    text = "Teide 1\n\n% seeing 2\n2024 306.25  0.5 20 1.5\n\n2024 306.24 0.6 21 -\n"
    first, second = read(mapping, text)
    assert (first["error"], first["sensor_time_ns"]) == (None, BASE_NS + 21_600_000_000_000)
    assert (second["error"], second["angle_sigma_rad"]) == (None, None)
    assert first["angle_sigma_rad"] == pytest.approx(1.5 * pi / 648_000, rel=1e-14)
    data = mapping_line(ColumnMapping.model_validate(mapping)) + text.encode()
    assert [record.line for record in split_records(data, "mapped-csv")] == [4, 6]


def test_decimal_commas_are_numbers_and_points_beside_them_are_refused() -> None:
    mapping = changed(MAPPING, decimal=",")
    line = "2024-11-01T00:00:00,250;A;1204300,5;-2150,25;1,25;38,5"
    first, second = read(mapping, f"UT;Target;Rng;Rdot;Az;El\n{line}\n{line.replace('1204300,5', '1.204.300,5')}\n")
    assert (first["range_m"], first["range_rate_m_s"]) == (1_204_300.5, -2150.25)
    assert "column 'Rng' is '1.204.300,5': its decimals need a comma" in second["error"]


LINE = "2024-11-01T00:00:00;A;1204300.5;-2150.25;1.25;38.5"
BAD_LINES = {
    "a word": ("1204300.5", "far", "bad_field", "line 2: mapping tenerife.toml: column 'Rng' is 'far', must be a numb"),
    "nothing": ("1204300.5", "", "bad_field", "line 2: mapping tenerife.toml: column 'Rng' is '', must be a number"),
    "no number": ("1.25", "nan", "out_of_range", "column 'Az' is 'nan', must be finite"),
    "no time": ("2024-11-01T00:00:00", "noon", "bad_field", "column 'UT': EPOCH is 'noon', must be like 2024"),
    "no object": (";A;", ";;", "missing_field", "column 'Target' is empty, object is needed"),
    "too few": (";38.5", "", "bad_length", "the line has 5 values, the header 6 columns"),
    "too many": (";38.5", ";38.5;1", "bad_length", "the line has 7 values, the header 6 columns"),
    "a limit": ("38.5", "98.5", "out_of_range", "elevation_rad is 1.719"),
    "a quote": (";A;", ';"A;', "bad_field", "a quote without its end"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_names_mapping_column_and_line_and_harms_no_other(case: str) -> None:
    old, new, kind, text = BAD_LINES[case]
    bad, good = read(MAPPING, f"UT;Target;Rng;Rdot;Az;El\n{LINE.replace(old, new)}\n{LINE}\n")
    assert (bad["error_kind"], text in bad["error"]) == (kind, True), bad["error"]
    assert good["error"] is None


BAD_MAPPINGS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown unit": ({"fields__range": {"column": "r", "unit": "furlong"}}, "fields.range: unit is 'furlong'"),
    "a unit of something else": ({"fields__range": {"column": "r", "unit": "deg"}}, "fields.range: unit is 'deg'"),
    "no unit": ({"fields__range": {"column": "r"}}, "fields.range: unit is ''"),
    "neither column nor value": ({"fields__range": {"unit": "km"}}, "give either a column or a value"),
    "an unknown quantity": ({"fields__brightness": {"column": "m", "unit": "mag"}}, "fields.brightness"),
    "no elevation": ({"fields": {"range": {"column": "r", "unit": "km"}}}, "fields lacks azimuth, elevation"),
    "an unknown form of time": ({"time": {"column": "t", "format": "stardate"}}, "format is 'stardate'"),
    "an unknown system of time": ({"time": {"column": "t", "format": "iso", "system": "UT1"}}, "time.system"),
    "an unknown option": ({"seperator": ","}, "seperator"),
    "a separator of three": ({"separator": "abc"}, "must be one character or 'whitespace'"),
    "names without a header": ({"header": False, "files": "a*"}, "the file has no header"),
    "a frame of a radar": ({"frame": "ICRF"}, "not of a radar"),
    "noise that is not used": ({"fields__angle_sigma": {"value": 1, "unit": "deg"}}, "angle_sigma is not used"),
    "words for noise": ({"fields__range_sigma": {"value": "some", "unit": "m"}}, "must be a number"),
    "a pattern with a part twice": ({"time": {"column": "t", "format": "%Y%Y"}}, "format is '%Y%Y'"),
    "a pattern that ends in its sign": ({"time": {"column": "t", "format": "%d %"}}, "format is '%d %'"),
    "a time of many columns": ({"time": {"column": ["t"] * 9, "format": "iso"}}, "at most 8 items"),
    "many words for nothing": ({"missing": ["-"] * 101}, "at most 100 items"),
    "a long word": ({"missing": ["-" * 201]}, "at most 200 characters"),
    "a long name": ({"object": {"column": "c" * 201}}, "at most 200 characters"),
    "an unknown quality": ({"clock_quality": "good"}, "clock_quality is 'good', must be one of"),
}


@pytest.mark.parametrize("case", BAD_MAPPINGS)
def test_a_bad_mapping_is_refused_with_the_option_and_the_reason(case: str) -> None:
    options, text = BAD_MAPPINGS[case]
    with pytest.raises(ValidationError) as found:
        ColumnMapping.model_validate(changed(MAPPING, **options))
    shown = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found.value.errors())
    assert text in shown


@pytest.mark.parametrize("form", ["mjd", "unix_ns", "year_day", "iso", "%Y"])
def test_a_time_of_many_digits_is_refused_before_it_is_computed(form: str) -> None:
    """Of 400,000 digits, which compress to a kilobyte, one time took five seconds."""
    mapping = changed(MAPPING, time={"column": "UT", "format": form})
    (row,) = read(mapping, f"UT;Target;Rng;Rdot;Az;El\n{LINE.replace('2024-11-01T00:00:00', '9' * 400_000)}\n")
    assert (row["error_kind"], len(row["error"]) < 300) == ("bad_field", True)


def test_a_mapping_may_name_columns_in_any_script() -> None:
    """Of the letters from 128 to 255 alone, the line that lands was no JSON, so that every record was refused."""
    names = {"Rng": "Größe", "Az": "Ázimut", "El": "高度", "Target": "🛰"}
    header, mapping = "UT;Target;Rng;Rdot;Az;El", deepcopy(MAPPING)
    text = str(mapping)
    for old, new in names.items():
        header, text = header.replace(old, new), text.replace(f"'{old}'", f"'{new}'")
    (row,), (plain,) = (
        read(literal_eval(text), f"{header}\n{LINE}\n"),
        read(MAPPING, f"UT;Target;Rng;Rdot;Az;El\n{LINE}\n"),
    )
    assert (row["error"], row["range_m"], row["elevation_rad"]) == (None, plain["range_m"], plain["elevation_rad"])


def test_a_mapping_that_costs_more_than_its_lines_is_refused_once() -> None:
    """Of a mapping that came with a partner's file, each record was to join a column 100,000 times."""
    first, _, rest = SAMPLES["mapped-csv"].partition(b"\n")
    many = first.replace(b'"column":"UT"', b'"column":[' + b",".join([b'"UT"'] * 100_000) + b"]")
    assert many != first
    found = rows(many + b"\n" + rest)
    assert all("the mapping of the columns has" in row["error"] and len(row["error"]) < 300 for row in found)


def test_records_of_a_stream_and_of_a_rejected_few_need_no_other_file() -> None:
    data = SAMPLES["mapped-csv"] + MAPPED.partition(b"\n")[2] * 50
    whole = rows(data)
    pieces = list(split_stream(iter([data[:1000], data[1000:]]), "mapped-csv", 2_000))
    assert len(pieces) > 3
    found = [row for piece in pieces for row in rows(piece)]
    assert [row["observation_id"] for row in found] == [row["observation_id"] for row in whole]
    payloads = [record.payload for record in split_records(data, "mapped-csv")][3:5]
    header = segment_header(data, "mapped-csv")
    assert all(can_be_packed(payload, "mapped-csv", header=header) for payload in payloads)
    again = rows(pack_segment(payloads, [0, 0], "mapped-csv", header=header))
    assert [row["observation_id"] for row in again] == [row["observation_id"] for row in whole[3:5]]


def test_a_segment_without_its_mapping_is_one_refused_record() -> None:
    for data in (MAPPED, b"# mapping: {}\n" + MAPPED, b"# mapping: [1]\na\n"):
        (row,) = rows(data)
        assert (count_records(data, "mapped-csv"), row["error_kind"] is not None) == (1, True)


def test_a_file_is_a_mappings_by_its_name_and_its_columns() -> None:
    mapping = ColumnMapping.model_validate(changed(MAPPING, files="radar-*.csv"))
    assert misfit(mapping, "radar-1.csv", MAPPED) is None
    assert misfit(mapping, "night.csv", MAPPED) == "it is for files named radar-*.csv"
    assert misfit(mapping, "radar-1.csv", MAPPED.replace(b"Rng", b"R")) == "column 'Rng' is not in the header"
    assert misfit(mapping, "radar-1.csv", b"") == "column 'UT' is not in the header"
