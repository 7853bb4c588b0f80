"""Which object a table of positions is of: what its text states, or its file's name in one of the documented forms."""

import zipfile
from pathlib import Path

import pytest

from sda_platform.catalog.ephemeris_decoding import decoder
from sda_platform.clock import MissionClock
from sda_platform.formats.cutting import split_records
from sda_platform.formats.reading import read_records
from sda_platform.formats.tabulated_paths import name_line
from sda_platform.landing.lander import Lander
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.sample_inputs import MEME, NOW_NS, sp3_of_jason, stk_of_jason
from sda_platform_tests.support.segments import described

STK = stk_of_jason(3).replace("# OBJECT_ID = 33105\n", "")
SP3 = sp3_of_jason(3).replace("/* OBJECT L27 = 33105\n", "")


def objects_of(text: str, segment_format: str, name: str = "") -> tuple[list[str], list[str]]:
    """The objects of a file's records, and why others have none."""
    data = (name_line(name) if name else b"") + text.encode()
    values, errors = read_records(list(split_records(data, segment_format)), segment_format, "ephemerides")
    found = [value for value in values if value is not None]
    assert all(each.is_by_file_name == bool(name) for each in found)
    return [each.value("OBJECT_ID") for each in found], [error.text for error in errors.values()]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("25544.e", "25544"),
        ("sat_NORAD-25544_20260911.e", "25544"),
        ("norad_799501299.e", "799501299"),
        ("ISS_1998-067A_2026.e", "1998-067A"),
        ("MEME_44713_STARLINK-1007_2540142_Operational.txt", "44713"),
        # A year, a date, a version, an operator's own number: none of them is an object.
        ("2024.e", None),
        ("20240501.e", None),
        ("240501.e", None),
        ("eph_0501.e", None),
        ("sat_2024_05_01.e", None),
        ("starlink-1007.txt", None),
        ("GEO-12345-v100.e", None),
        ("44713_2024_X.txt", None),
        ("1998-067A_1998-067B.e", None),
        ("old_MEME_44713_X.txt", None),
    ],
)
def test_a_file_name_says_the_object_in_its_documented_forms_only__41(name: str, number: str | None) -> None:
    for text, segment_format in ((STK, "stk-ephemeris"), (SP3, "sp3")):
        found, errors = objects_of(text, segment_format, name)
        assert found == ([number] if number else [])
        assert number or "name it like 25544.e, orbit_norad-25544.e" in errors[0]


def test_a_number_of_a_file_name_is_one_of_the_catalogue__41() -> None:
    decode = decoder(lambda _: (), {25544}.__contains__)
    for name, is_used in (("25544.e", True), ("24122.e", False)):
        data = name_line(name) + STK.encode()
        (row,) = decode(data, described(data, "ephemerides", segment_format="stk-ephemeris")).to_pylist()
        assert (row["error"] is None) == is_used
        assert is_used or "the name of the file says object 24122, which the catalogue does not have" in row["error"]
    stated = stk_of_jason(3).encode()
    (row,) = decode(stated, described(stated, "ephemerides", segment_format="stk-ephemeris")).to_pylist()
    assert row["error"] is None, "the file states it"


def test_two_satellites_of_a_file_are_never_one_object__41() -> None:
    own = ("PL27", "VL27")
    lines = SP3.split("\n")
    both = "\n".join(x for line in lines for x in ([line, line.replace("L27", "L28")] if line[:4] in own else [line]))
    found, errors = objects_of(both, "sp3", "norad-25544.sp3")
    assert (found, len(errors)) == ([], 2)
    found, errors = objects_of(f"# OBJECT_ID = 25544\n{both}", "sp3")
    assert (found, len(errors)) == ([], 2)
    stated = both.replace("%c", "/* OBJECT L27 = 33105\n/* OBJECT L28 = 33105\n%c", 1)
    found, errors = objects_of(stated, "sp3")
    assert found == []
    assert "satellites L27 and L28 are both stated to be 33105" in errors[0]
    found, errors = objects_of(stated.replace("L28 = 33105", "L28 = 33106"), "sp3")
    assert (found, errors) == (["33105", "33106"], [])


@pytest.mark.parametrize("outer", ["MEME_44714_STARLINK-1008_2.zip", "25544.zip", "history.zip"])
def test_each_file_of_a_zip_file_is_judged_by_its_own_name__41(outer: str, tmp_path: Path) -> None:
    path, root = tmp_path / outer, str(tmp_path / "landing")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MEME_44713_STARLINK-1007_1.txt", MEME)
        archive.writestr("a/MEME_44714_STARLINK-1008_1.txt", "\ufeff" + MEME.replace("\n", "\r\n"))
        archive.writestr("z.txt", MEME)
    landed = Lander(root, MissionClock.starting_at(NOW_NS, rate=0.0), bounds=PartnerBounds()).land(path)
    zone = LandingZone(root, "ephemerides")
    loaded = [zone.read(each).data for each in zone.pending()]
    values, errors = read_records(list(split_records(loaded[0], "meme-ephemeris")), "meme-ephemeris", "ephemerides")
    assert (landed.records, len(loaded)) == (3, 1)
    assert [value and value.value("OBJECT_ID") for value in values] == ["44713", "44714", None]
    assert "its name 'z.txt' does not say it" in errors[2].text


def test_one_file_in_a_zip_file_has_its_object_by_its_own_name__41(tmp_path: Path) -> None:
    path, root = tmp_path / "one.zip", str(tmp_path / "landing")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("25544.e", STK)
    Lander(root, MissionClock.starting_at(NOW_NS, rate=0.0), bounds=PartnerBounds()).land(path)
    zone = LandingZone(root, "ephemerides")
    (segment,) = zone.pending()
    data = zone.read(segment).data
    ((value,), _) = read_records(list(split_records(data, "stk-ephemeris")), "stk-ephemeris", "ephemerides")
    assert value.value("OBJECT_ID") == "25544"


def test_many_lines_of_comments_cost_a_time_in_proportion__41() -> None:
    """Each might begin a file: 40,000 of them would take a minute, were each run looked at whole from each line."""
    for segment_format in ("stk-ephemeris", "meme-ephemeris", "sp3"):
        assert len(list(split_records(b"# comment\n" * 40_000, segment_format))) == 1
