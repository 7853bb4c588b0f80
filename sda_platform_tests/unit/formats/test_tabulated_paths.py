"""Ephemerides that are tables (STK, MEME, CPF, SP3): frames, times and units by independent values, and refusals."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode, decoder
from sda_platform.catalog.orbits import designated
from sda_platform.clock import MissionClock
from sda_platform.formats.conversion import ConversionError, converted
from sda_platform.formats.cutting import split_records
from sda_platform.formats.designators import navigation_number
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.reading import read_records
from sda_platform.formats.tabulated_paths import derivatives
from sda_platform.landing.contents import read_chunks
from sda_platform.landing.lander import Lander
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.landing.zone import LandingZone
from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.ephemerides import covariances_from_lower
from sda_platform_tests.support import skyfield_frames
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.sample_inputs import CPF, MEME, NOW_NS, SAMPLES, jason_rows, sp3_of_jason, stk_of_jason
from sda_platform_tests.support.segments import described
from sda_platform_tests.support.small_catalogue import committed, sets_of

EARTH_RAD_S = 7.292115146706979e-5


def read(data: bytes, name: str) -> tuple[list[EphemerisSegment], list[str]]:
    values, errors = read_records(list(split_records(data, name)), name, "ephemerides")
    return [value for value in values if value is not None], [error.text for error in errors.values()]


def row_of(data: bytes, name: str) -> dict[str, Any]:
    (row,) = decode(data, described(data, "ephemerides", segment_format=name)).to_pylist()
    assert row["error"] is None, row["error"]
    return dict(row)


def teme_of_itrf(r: np.ndarray, v: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """By Skyfield."""
    turn = skyfield_frames.itrf_to_gcrf(time_ns)
    r_gcrf, v_gcrf = (np.einsum("nij,nj->ni", turn, part) for part in (r, v))
    v_gcrf = v_gcrf + EARTH_RAD_S * np.cross(skyfield_frames.pole_gcrf(time_ns), r_gcrf)
    return skyfield_frames.teme_of_gcrf(np.hstack([r_gcrf, v_gcrf]), time_ns)


@pytest.mark.parametrize("name", ["stk-ephemeris", "sp3"])
def test_the_precise_orbit_of_jason_2_is_where_skyfield_has_it(name: str) -> None:
    """2008: TAI - UTC was 33 s, and GPS time is 19 s behind TAI."""
    row = row_of(SAMPLES[name], name)
    truth = np.array(jason_rows(5))
    time_ns = np.array([round((tai_s - 33) * 1e9) for tai_s in truth[:, 0]])
    assert row["state_time_ns"] == time_ns.tolist()
    found = np.array(row["state"]).reshape(-1, 6)
    expected = teme_of_itrf(truth[:, 1:4], truth[:, 4:], time_ns)
    assert np.abs(found[:, :3] - expected[:, :3]).max() < 1e-4
    assert np.abs(found[:, 3:] - expected[:, 3:]).max() < 1e-7
    assert (row["norad_id"], row["covariance_source"]) == (33105, "default")


def test_without_velocities_they_follow_from_the_positions() -> None:
    with_them, without = (
        np.array(row_of(sp3_of_jason(60, with_velocities=each).encode(), "sp3")["state"]).reshape(-1, 6)
        for each in (True, False)
    )
    assert np.abs(with_them[4:-4, 3:] - without[4:-4, 3:]).max() < 3e-7, "0.3 mm/s"
    assert np.abs(with_them[:, 3:] - without[:, 3:]).max() < 2e-5, "at the ends"


def test_derivatives_are_exact_for_polynomials() -> None:
    times_ns = np.array([0, 1, 2, 4, 7, 8, 9, 11, 15, 16], np.int64) * 10**9
    x = times_ns / 1e9
    np.testing.assert_allclose(derivatives(times_ns, np.stack([x**3, 2 * x], 1))[:, 0], 3 * x**2, rtol=1e-9, atol=1e-9)


def test_a_prediction_for_laser_ranging_is_where_skyfield_has_it() -> None:
    row = row_of(CPF, "cpf")
    assert (row["norad_id"], row["object_name"], row["originator"]) == (22195, "lageos2", "SGF")
    time_ns, found = np.array(row["state_time_ns"]), np.array(row["state"]).reshape(-1, 6)
    words = [line.split() for line in CPF.decode().splitlines() if line.startswith("10")]
    positions = np.array([[float(each) / 1000 for each in line[5:]] for line in words])
    assert time_ns[1] - time_ns[0] == 300 * 10**9
    expected = teme_of_itrf(positions, np.zeros_like(positions), time_ns)
    assert np.abs(found[:, :3] - expected[:, :3]).max() < 1e-4
    # Its own motion: what interpolation through the inertial positions gives.
    moved = derivatives(time_ns, expected[:, :3])
    assert np.abs(found[5:-5, 3:] - moved[5:-5]).max() < 1e-6


def test_an_operators_file_has_its_object_by_its_name_and_its_covariance_in_the_axes_of_the_orbit(
    tmp_path: Path,
) -> None:
    path = tmp_path / "MEME_44713_STARLINK-1007_2540142_Operational_1473126162_UNCLASSIFIED.txt"
    path.write_text(MEME)
    root = str(tmp_path / "landing")
    landed = Lander(root, MissionClock.starting_at(NOW_NS, rate=0.0)).land(path)
    assert (landed.zone, landed.records) == ("ephemerides", 1)
    zone = LandingZone(root, "ephemerides")
    (segment,) = zone.pending()
    loaded = zone.read(segment)
    assert loaded.meta is not None
    row = row_of(loaded.data, loaded.meta.format)
    assert (row["norad_id"], row["object_name"], row["reference_frame"]) == (44713, "STARLINK-1007", "EME2000")
    assert row["covariance_source"] == "message"
    states, terms = np.array(row["state"]).reshape(-1, 6), covariances_from_lower(row["covariance"])
    rtn = teme_to_rtn(terms, states[:, :3], states[:, 3:])
    assert rtn[0, 0, 0] == pytest.approx(4.6343390768e-07, rel=1e-6)
    assert rtn[0, 1, 0] == pytest.approx(-3.7963809271e-07, rel=1e-6)
    assert rtn[0, 5, 5] == pytest.approx(5.4287251909e-12, rel=1e-6)
    assert row["state_time_ns"][0] == parse_epoch_ns("2026-09-11T01:42:42"), "day 254 of 2026"


def test_units_and_covariances_of_stk() -> None:
    text = stk_of_jason(3)
    head, rest = text.split("EphemerisTimePosVel")
    data = rest.split("END")[0]
    rows = [line.split() for line in data.split("\n") if line]
    kilometres = "\n".join(" ".join([row[0], *(str(float(word) / 1000) for word in row[1:])]) for row in rows)
    terms = " ".join("4.0e-4" if n in (0, 2, 5) else "0" for n in range(21))
    tables = f"EphemerisTimePosVel\n{kilometres}\nCovarianceTimePosVel\n0.0 {terms}\n"
    whole = f"{head}DistanceUnit Kilometers\n{tables}END Ephemeris\n"
    (metres,), _ = read(text.encode(), "stk-ephemeris")
    (found,), errors = read(whole.encode(), "stk-ephemeris")
    assert errors == []
    np.testing.assert_allclose(found.states, metres.states, rtol=1e-12)
    assert found.covariances[0, 0] == 4.0e-4
    (in_metres,), _ = read(text.replace("END", f"CovarianceTimePosVel\n0.0 {terms}\nEND").encode(), "stk-ephemeris")
    assert in_metres.covariances[0, 0] == pytest.approx(4.0e-10)


MALFORMED: dict[str, list[tuple[str, str, str | None]]] = {
    "stk-ephemeris": [
        ("CoordinateSystem Fixed\n", "", "CoordinateSystem is missing"),
        ("CoordinateSystem Fixed", "CoordinateSystem B1950", "must be ICRF, J2000, Fixed"),
        ("CentralBody Earth", "CentralBody Moon", "CentralBody is 'Moon', must be Earth"),
        ("ScenarioEpoch", "ScenarioEpoch 31 Foo", "ScenarioEpoch is '31 Foo"),
        ("END Ephemeris", "", "the file ends before END Ephemeris"),
        ("0.000 4", "0.000 x4", "line 9: X is 'x4"),
        ("# OBJECT_ID = 33105\n", "", "the file does not state its object"),
        ("CentralBody", "DistanceUnit Miles\nCentralBody", "DistanceUnit is 'Miles'"),
        ("120.000", "-120.000", "the epoch is not after"),
    ],
    "meme-ephemeris": [
        ("UVW\n", "", "the frame of the covariances is missing"),
        ("UVW", "XYZ", "is no frame of covariances"),
        ("2026254014342.000", "2026966014342.000", "must be yyyydddhhmmss"),
        ("2026254014242", "2026254994242", "must be yyyydddhhmmss"),
        ("# OBJECT_ID = 25544\n", "", "the file does not state its object"),
        ("1264.3254891872 ", "", "6 values, a line has 7"),
    ],
    "cpf": [
        ("22195 2016", "0 2016", None),
        ("0 0 0\nH9", "7 0 0\nH9", "the reference frame is '7'"),
        ("\n99", "", "before its record 99"),
        ("H2 ", "H3 ", "the record H2 is missing"),
        ("57431      0.0", "57431  99999.0", "are no instant"),
    ],
    "sp3": [
        (" GPS ccc", " TDB ccc", "the time system is 'TDB', must be one of GPS"),
        ("/* OBJECT L27 = 33105\n", "", "satellite L27 has no catalogue number; state it by a comment"),
        ("EOF", "", "the file ends before its EOF"),
        ("4568.999996", "4568.9x9996", "X is"),
        ("*  2008", "*  2o08", "year is '2o08'"),
    ],
}


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"), [(name, *case) for name, cases in MALFORMED.items() for case in cases]
)
def test_what_is_malformed_is_refused_with_the_reason(name: str, old: str, new: str, reason: str | None) -> None:
    text = SAMPLES[name].decode()
    assert old in text
    found, errors = read(text.replace(old, new, 1).encode(), name)
    if reason is None:
        assert found[0].value("OBJECT_ID") == "92070B", "by its COSPAR id"
    else:
        assert (found, reason in errors[0]) == ([], True), errors


def sp3_of_two(second: str) -> bytes:
    """A file of Jason-2 and of another satellite in the same places."""
    text = sp3_of_jason(3).replace("+    1   L27", f"+    2   L27{second}")
    own = ("PL27", "VL27")
    other = "\n".join(line.replace("L27", second) if line[:4] in own else line for line in text.split("\n"))
    lines = []
    for one, two in zip(text.split("\n"), other.split("\n"), strict=True):
        lines += [one] if one == two else [one, two]
    return "\n".join(lines).encode()


def test_each_satellite_of_a_file_is_a_record_and_one_without_a_number_harms_no_other() -> None:
    data = sp3_of_two("L05")
    found, errors = read(data, "sp3")
    assert (len(list(split_records(data, "sp3"))), [each.value("OBJECT_ID") for each in found]) == (2, ["33105"])
    assert "satellite L05 has no catalogue number" in errors[0]


def test_a_navigation_satellite_is_the_object_whose_name_states_its_number__41(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", reads_unverified=False)
    sets = sets_of([25544, 43477, 48274])
    names = ["GPS BIIF-2  (PRN 01)", "GSAT0101 (PRN E11)", "GPS BIIR-4  (PRN 20)"]
    committed(lake, [{**each, "object_name": name} for each, name in zip(sets, names, strict=True)])
    numbers = designated(lake)
    decode_all = decoder(lambda designator: numbers.get(designator, ()))

    def norad_id(satellite: str) -> tuple[int | None, str]:
        data = sp3_of_two(satellite)
        row = decode_all(data, described(data, "ephemerides", segment_format="sp3")).to_pylist()[1]
        return row["norad_id"], row["error"] or ""

    by_name = {name: each["norad_id"] for each, name in zip(sets, names, strict=True)}
    assert norad_id("G01") == (by_name[names[0]], "")
    assert norad_id("E11") == (by_name[names[1]], "")
    number, reason = norad_id("G07")
    assert number is None
    assert "the satellite is G07, the designator of no object of the catalogue" in reason
    assert "/* OBJECT G07 = 12345" in reason


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("GPS BIIF-2  (PRN 01)", "G01"), ("gps biii-1 (prn 4)", "G04"), ("GSAT0101 (PRN E11)", "E11"),
        ("BEIDOU-3 M1 (C19)", "C19"), ("QZS-2 (QZSS/PRN 184)", "J02"), ("QZS-1R (QZSS/PRN 196)", "J04"),
        ("NAVSTAR 66 (USA 232)", None), ("COSMOS 2456 (730)", None), ("INMARSAT 4-F3 (EGNOS/PRN 126)", None),
        ("", None),
    ],
)  # fmt: skip
def test_names_of_the_catalogue_state_numbers_of_navigation_satellites(name: str, number: str | None) -> None:
    assert navigation_number(name) == number


@pytest.mark.parametrize("name", ["stk-ephemeris", "meme-ephemeris", "cpf", "sp3"])
def test_they_become_an_oem_with_the_same_numbers_and_are_only_read(name: str) -> None:
    (before,), _ = read(SAMPLES[name], name)
    after, _ = read(converted(SAMPLES[name], name, "oem-kvn").data, "oem-kvn")
    np.testing.assert_array_equal(after[0].states, before.states)
    np.testing.assert_array_equal(after[0].utc_ns(after[0].time_ns), before.utc_ns(before.time_ns))
    np.testing.assert_array_equal(after[0].covariances, before.covariances)
    with pytest.raises(ConversionError, match="is only read"):
        converted(SAMPLES["oem-kvn"], "oem-kvn", name)


def test_a_zipped_history_is_read_as_one_file_and_its_expansion_is_bounded(tmp_path: Path) -> None:
    clock = MissionClock.starting_at(NOW_NS, rate=0.0)
    path = tmp_path / "history.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tle2.txt", SAMPLES["tle"].rstrip())
        archive.writestr("tle1.txt", SAMPLES["tle"])
    landed = Lander(str(tmp_path / "landing"), clock, bounds=PartnerBounds()).land(path)
    assert (landed.zone, landed.records) == ("elements", 4)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tle.txt", SAMPLES["tle"] + b" " * 40_000_000)
    with pytest.raises(PartnerFileError, match="expands to more than"):
        Lander(str(tmp_path / "landing"), clock, bounds=PartnerBounds()).land(bomb)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "it has 0 files"),
        ({"a.txt": b"x", "b.csv": b"y"}, "its files have several endings: .csv, .txt"),
        (None, "cannot be read"),
    ],
)
def test_a_zip_file_that_is_none_or_mixed_is_refused(
    tmp_path: Path, members: dict[str, bytes] | None, reason: str
) -> None:
    path = tmp_path / "a.zip"
    if members is None:
        path.write_bytes(b"PK\x03\x04 torn")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
    with pytest.raises(PartnerFileError, match=reason):
        Lander(str(tmp_path / "landing"), MissionClock.starting_at(NOW_NS, rate=0.0)).land(path)


def test_a_torn_member_of_a_zip_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", SAMPLES["tle"])
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(Exception, match="CRC"):
        b"".join(read_chunks(path, "tle", lambda _: None))
