"""Satellite catalogues and decay messages of CelesTrak and Space-Track give one record, whatever the names."""

import json
from typing import Any

import pytest

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.cutting import split_records
from sda_platform.formats.reading import read_records
from sda_platform.formats.registry import FORMATS
from sda_platform.formats.satcat import SatelliteRecord
from sda_platform.landing.contents import recognised_format
from sda_platform.units import DAY_NS
from sda_platform_tests.support.sample_inputs import SAMPLES

CELESTRAK, SPACE_TRACK = SAMPLES["satcat-csv"], SAMPLES["satcat-json"]
DECAYS = b"""[{"NORAD_CAT_ID":"4917","OBJECT_NUMBER":"4917","OBJECT_NAME":"THORAD AGENA D DEB","INTLDES":"1970-025FP",
"OBJECT_ID":"1970-025FP","RCS":"0","RCS_SIZE":"SMALL","COUNTRY":"US","MSG_EPOCH":"2018-02-07 16:37:02",
"DECAY_EPOCH":"2019-03-23 0:00:00","SOURCE":"60day_msg","MSG_TYPE":"Prediction","PRECEDENCE":"4"},
{"NORAD_CAT_ID":"4917","DECAY_EPOCH":"2019-03-21 5:01:00","SOURCE":"decay_msg","MSG_TYPE":"Historical"}]"""


def records(data: bytes, name: str) -> tuple[list[SatelliteRecord], list[str]]:
    """The records of a file, and what is wrong with others."""
    values, errors = read_records(list(split_records(data, name)), name, "satellites")
    return [v for n, v in enumerate(values) if n not in errors], [each.text for each in errors.values()]


def ns(text: str) -> int:
    return parse_iso_ns(f"{text}T00:00:00Z")


def test_celestraks_catalogue_is_read() -> None:
    found, errors = records(CELESTRAK, "satcat-csv")
    assert (errors, found) == (
        [],
        [
            SatelliteRecord(
                25544, "ISS (ZARYA)", "1998-067A", "PAYLOAD", "+", "ISS", ns("1998-11-20"), "TYMSC", None, None, 399.05,
                "LARGE",
            ),
            SatelliteRecord(
                1, "SL-1 R/B", "1957-001A", "ROCKET BODY", "D", "CIS", ns("1957-10-04"), "TYMSC", ns("1957-12-02"),
                None, 20.42, "LARGE",
            ),
            SatelliteRecord(270001, "STRANGE, ONE", "2026-001C", "UNKNOWN", owner="TBD"),
        ],
    )  # fmt: skip


def test_space_tracks_catalogue_and_decay_messages_are_read() -> None:
    (iss,), _ = records(SPACE_TRACK, "satcat-json")
    assert iss == SatelliteRecord(
        25544, "ISS (ZARYA)", "1998-067A", "PAYLOAD", None, "ISS", ns("1998-11-20"), "TTMTR", None, None, None, "LARGE"
    )
    (predicted, decayed), _ = records(DECAYS, "satcat-json")
    assert (predicted.decay_time_ns, predicted.predicted_decay_time_ns) == (None, ns("2019-03-23") + DAY_NS)
    assert decayed.decay_time_ns == parse_iso_ns("2019-03-21T05:01:00Z")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"NORAD_CAT_ID": "", "OBJECT_NUMBER": None}, "NORAD_CAT_ID is missing"),
        ({"NORAD_CAT_ID": "0"}, "must be at least 1"),
        ({"OBJECT_TYPE": "BIRD"}, "must be one of PAYLOAD ROCKET BODY DEBRIS UNKNOWN TBA"),
        ({"LAUNCH": "1998-13-20"}, "LAUNCH is '1998-13-20T00:00:00'"),
        ({"DECAY": 3}, "DECAY is 3, must be text"),
        ({"RCSVALUE": "-1"}, "must be square metres"),
        ({"RCSVALUE": [1]}, "must be a number"),
    ],
)
def test_a_record_that_cannot_be_used_is_refused_by_its_field(change: dict[str, Any], reason: str) -> None:
    (row,) = json.loads(SPACE_TRACK)
    _, (error,) = records(json.dumps([{**row, **change}]).encode(), "satcat-json")
    assert reason in error


def test_a_tracking_and_impact_prediction_is_no_decay__44() -> None:
    """It has no MSG_TYPE: taken for a decay, the object would leave the catalogue before it re-enters."""
    stated = {"NORAD_CAT_ID": "48000", "MSG_EPOCH": "2024-11-01 06:00:00", "DECAY_EPOCH": "2024-11-03 07:21:00",
              "WINDOW": "180", "REV": "12", "DIRECTION": "ascending", "LAT": "-12.5", "LON": "230.1", "INCL": "53.1",
              "HIGH_INTEREST": "N"}  # fmt: skip
    (found,), errors = records(json.dumps([stated]).encode(), "satcat-json")
    assert errors == []
    assert (found.decay_time_ns, found.predicted_decay_time_ns) == (None, parse_iso_ns("2024-11-03T07:21:00Z"))
    places = (found.prediction_window_min, found.reentry_latitude_deg, found.reentry_longitude_deg)
    assert places == (180.0, -12.5, 230.1)
    for field, value in (("WINDOW", "-1"), ("LAT", "91"), ("LON", "north")):
        _, (error,) = records(json.dumps([{**stated, field: value}]).encode(), "satcat-json")
        assert error.startswith(f"{field} is")


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("satcat.csv", CELESTRAK, "satcat-csv"),
        ("satcat.json", SPACE_TRACK, "satcat-json"),
        ("decay.json", DECAYS, "satcat-json"),
        ("gp.json", b'[{"OBJECT_TYPE": "PAYLOAD", "MEAN_MOTION": "15.5"}]', "omm-json"),
    ],
)
def test_a_file_is_recognised_by_its_beginning(name: str, data: bytes, expected: str) -> None:
    candidates = [each for each in FORMATS if f".{name.rpartition('.')[2]}" in each.suffixes]
    found = recognised_format(data, candidates)
    assert found is not None and found.name == expected
