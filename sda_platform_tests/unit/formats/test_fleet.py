"""The fleet list: the shipped one is sound, a broken one states where."""

from pathlib import Path

import pytest

from sda_platform.formats.fleet import ProtectedObject, protected_fleet
from sda_platform.formats.listings import ListingError
from sda_platform_tests.support.scenes import catalogue

HEADER = "norad_id,name,operator\n"


def test_the_shipped_fleet_flies_in_the_shipped_catalogue() -> None:
    fleet = protected_fleet()
    assert 40 <= len(fleet) <= 50
    assert fleet[1] == ProtectedObject(25544, "ISS (ZARYA)", "NASA / international partners")
    assert {member.norad_id for member in fleet} <= set(catalogue().elements.norad_id.tolist())


def test_a_fleet_of_one_s_own_is_read_in_file_order(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(HEADER + "799500124,LATE COMER,Us\n\n5,VANGUARD 1,\n", encoding="utf-8")
    assert protected_fleet(path) == (
        ProtectedObject(799500124, "LATE COMER", "Us"),
        ProtectedObject(5, "VANGUARD 1", ""),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "header is ''"),
        ("id,name\n1,A\n", "header is 'id,name'"),
        (HEADER, "lists nothing"),
        (HEADER + "25544,ISS\n", "line 2: 2 fields, expected 3"),
        (HEADER + "25544,ISS,NASA\nT0001,X,Y\n", "line 3: norad_id is 'T0001', must be a positive integer"),
        (HEADER + "0,X,Y\n", "line 2: norad_id is '0'"),
        (HEADER + "7,,Y\n", "line 2: satellite 7 has no name"),
        (HEADER + "7,A,Y\n7,B,Y\n", "line 3: norad_id 7 occurs twice"),
        (HEADER + '7,"A,Y\n', "cannot be read"),
    ],
)
def test_a_malformed_fleet_file_is_refused_with_place_and_reason(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "broken.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ListingError) as caught:
        protected_fleet(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_fleet_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ListingError, match=r"absent\.csv"):
        protected_fleet(tmp_path / "absent.csv")
