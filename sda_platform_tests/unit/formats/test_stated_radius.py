"""The radius that a message states in words: read with its unit, of whom it is, or left alone where there is none."""

import json
import re
from pathlib import Path

import pytest

from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.cdm_json import encode_cdm_json, read_cdm_json
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.errors import RecordError
from sda_platform.formats.records import RawRecord
from sda_platform.formats.stated_radius import hard_body_radius

KVN = (Path(__file__).parents[2] / "data" / "cdm" / "leo_debris.kvn").read_text()
BEFORE = {number: re.compile(rf"^(OBJECT\b.*OBJECT{number})", re.MULTILINE) for number in (1, 2)}


@pytest.mark.parametrize(
    ("comment", "radius_m"),
    [
        ("HBR = 0.015 km", 15.0),
        ("HBR = 15000 mm", 15.0),
        ("HBR = 1500 [cm]", 15.0),
        ("HBR=15m", 15.0),
        ("HBR = 50 ft", 15.24),
        ("HBR = 15.0, Pc method Foster-1992", 15.0),
        ("HBR (m): 15", 15.0),
        ("HBR(km) = 0.015", 15.0),
        ("CombinedHBR=15[m]", 15.0),
        ("Combined hard body radius is 15 m, by the operator", 15.0),
        ("hard-body_radius = 1.5D1 metres", 15.0),
        ("HBR = HBR = 15 [m]", 15.0),
        ("HBR = UNKNOWN", None),
        ("HBR is not known", None),
        ("HBR = 15,5 m", None),
        ("HBRX = 15", None),
    ],
)
def test_a_radius_is_read_with_its_unit(comment: str, radius_m: float | None) -> None:
    found = hard_body_radius([comment], "the message")
    assert (found.radius_m if found else None) == (None if radius_m is None else pytest.approx(radius_m))


@pytest.mark.parametrize("comment", ["HBR = 15 [furlong]", "HBR = 0.01 nmi", "HBR = 0 m", "HBR = -5", "HBR = 1e9"])
def test_a_radius_that_cannot_be_one_is_refused(comment: str) -> None:
    with pytest.raises(RecordError, match=r"HBR is in|hard-body radius is"):
        hard_body_radius([comment], "the message")


def with_comments(first: str | None, second: str | None) -> bytes:
    """The message with comments directly before its objects, where the standard has those of their metadata."""
    text = KVN
    for number, comment in ((1, first), (2, second)):
        if comment:
            text, count = BEFORE[number].subn(rf"COMMENT {comment}\n\1", text)
            assert count == 1
    return text.encode()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("HBR = 7 [m]", None, (7.0, None, None)),
        (None, "HBR = 15 [m]", (None, None, 15.0)),
        ("HBR = 0.1 [m]", "HBR = 15 [m]", (None, 0.1, 15.0)),
        ("HBR = 0.1 [m]", "Combined HBR = 15 [m]", (15.0, 0.1, None)),
        ("Combined HBR = 15 [m]", "HBR = 3 [m]", (15.0, None, 3.0)),
    ],
)
def test_a_radius_before_an_object_is_of_that_object(
    first: str | None, second: str | None, expected: tuple[float | None, ...]
) -> None:
    message = read_cdm(with_comments(first, second))
    for again in (message, read_cdm(encode_cdm(message, "kvn")), read_cdm(encode_cdm(message, "xml"))):
        radii = [each.hard_body_radius_m for each in again.objects]
        assert (again.hard_body_radius_m, *radii) == expected


def test_in_xml_a_comment_in_the_metadata_of_an_object_is_its_own() -> None:
    text = encode_cdm(read_cdm(KVN.encode()), "xml").decode()
    first = text.replace("<metadata>", "<metadata><COMMENT>HBR = 0.1 [m]</COMMENT>", 1)
    message = read_cdm(first.encode())
    assert (message.hard_body_radius_m, message.objects[0].hard_body_radius_m) == (None, 0.1)


@pytest.mark.parametrize("value", ["HBR = 11 [m]", "11 [m]", 11.0])
def test_a_comment_of_json_states_the_radius_of_the_encounter(value: object) -> None:
    row = json.loads(encode_cdm_json([read_cdm(KVN.encode())]))[0]
    message = read_cdm_json(RawRecord(0, None, json.dumps({**row, "COMMENT_HBR": value}).encode()))
    assert message.hard_body_radius_m == 11.0  # type: ignore[union-attr]


def test_an_orbit_about_another_centre_is_refused() -> None:
    with pytest.raises(RecordError, match="ORBIT_CENTER is 'MOON', must be EARTH"):
        read_cdm(re.sub(r"^ORBIT_CENTER.*$", "ORBIT_CENTER = MOON", KVN, count=1, flags=re.MULTILINE).encode())


def test_an_area_in_square_centimetres_is_one() -> None:
    text = re.sub(r"^AREA_PC.*$", "AREA_PC = 1000000.0 [cm**2]", KVN, count=1, flags=re.MULTILINE)
    assert read_cdm(text.encode()).objects[0].area_pc_m2 == pytest.approx(100.0)
