"""What an ephemeris states of its frame, its span and its length is used as stated, or refused with the line."""

import re
from typing import Any

import erfa
import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode
from sda_platform.formats.conversion import converted
from sda_platform_tests.support import skyfield_frames
from sda_platform_tests.support.sample_inputs import MEME, SAMPLES, sp3_of_jason, stk_of_jason
from sda_platform_tests.support.segments import described

OEM = SAMPLES["oem-kvn"].decode()


def row_of(text: str, segment_format: str = "oem-kvn") -> dict[str, Any]:
    data = text.encode()
    (row,) = decode(data, described(data, "ephemerides", segment_format=segment_format)).to_pylist()
    return dict(row)


@pytest.mark.parametrize("segment_format", ["oem-kvn", "stk-ephemeris"])
def test_a_frame_of_an_epoch_has_the_axes_of_that_epoch__41(segment_format: str) -> None:
    """True of J2000.0 and true of date in 2024 differ by 41 km. By ERFA and Skyfield."""
    if segment_format == "oem-kvn":
        text = OEM[: OEM.index("COVARIANCE_START")]
        text = text.replace("REF_FRAME = EME2000", "REF_FRAME = TOD\nREF_FRAME_EPOCH = 2000-01-01T12:00:00")
    else:
        text = stk_of_jason(5).replace("CoordinateSystem Fixed", "CoordinateSystem TrueOfEpoch")
        text = text.replace("CentralBody", "CoordinateSystemEpoch 1 Jan 2000 12:00:00.0\nCentralBody")
    plain = row_of(
        text.replace("= TOD\nREF_FRAME_EPOCH = 2000-01-01T12:00:00", "= TEME")
        .replace("CoordinateSystem TrueOfEpoch", "CoordinateSystem TEMEOfDate")
        .replace("CoordinateSystemEpoch 1 Jan 2000 12:00:00.0\n", ""),
        segment_format,
    )
    row = row_of(text, segment_format)
    assert (row["error"], plain["error"]) == (None, None)
    given, found = (np.array(each["state"]).reshape(-1, 6) for each in (plain, row))
    turn = erfa.pnm06a(2451545.0, 64.184 / 86_400).T
    expected = np.hstack([given[:, :3] @ turn.T, given[:, 3:] @ turn.T])
    expected = skyfield_frames.teme_of_gcrf(expected, np.array(row["state_time_ns"]))
    assert np.abs(found[:, :3] - expected[:, :3]).max() < 1e-3
    assert np.abs(found[:, 3:] - expected[:, 3:]).max() < 1e-6


def test_a_covariance_in_a_frame_of_an_epoch_turns_with_it__41() -> None:
    """Its length along the radius stays, whatever the axes."""
    block = "COVARIANCE_START\nEPOCH = 2024-05-03T00:00:00\n" + "\n".join(
        " ".join(["0"] * row + [str(row + 1)]) for row in range(6)
    )
    text = f"{OEM[: OEM.index('COVARIANCE_START')]}{block}\nCOVARIANCE_STOP\n"
    text = text.replace("REF_FRAME = EME2000", "REF_FRAME = TEME\nREF_FRAME_EPOCH = 1990-01-01T00:00:00")
    row = row_of(text)
    assert row["error"] is None
    lower = np.zeros((6, 6))
    lower[np.tril_indices(6)] = row["covariance"]
    covariance, radius = lower + np.tril(lower, -1).T, np.array(row["state"])[:3] / 7000
    assert radius @ covariance[:3, :3] @ radius == pytest.approx(1.0, rel=1e-9)
    other = row_of(
        text.replace(
            "COVARIANCE_START\n", "COVARIANCE_START\nEPOCH = 2024-05-03T00:00:00\nCOV_REF_FRAME = TOD\n"
        ).replace("COV_REF_FRAME = TOD\nEPOCH = 2024-05-03T00:00:00\n", "COV_REF_FRAME = TOD\n")
    )
    assert "COV_REF_FRAME is TOD, of an epoch that is not stated" in str(other["error"])


@pytest.mark.parametrize(
    ("segment_format", "old", "new", "reason"),
    [
        (
            "oem-kvn",
            "REF_FRAME = EME2000",
            "REF_FRAME = ITRF\nREF_FRAME_EPOCH = 2024-05-03T00:00:00",
            "line 10: REF_FRAME_EPOCH is '2024-05-03T00:00:00', but REF_FRAME ITRF has an epoch of its own",
        ),
        ("oem-kvn", "REF_FRAME = EME2000", "REF_FRAME = MOD", "line 9: REF_FRAME is 'MOD', must be one of"),
        ("oem-kvn", "TIME_SYSTEM = UTC", "TIME_SYSTEM = TDB", "line 10: TIME_SYSTEM is 'TDB', only"),
        ("oem-kvn", "TIME_SYSTEM = UTC", "TIME_SYSTEM = LOCAL", "line 10: TIME_SYSTEM is 'LOCAL', must be one of"),
        ("oem-kvn", "CENTER_NAME = EARTH", "CENTER_NAME = MOON", "line 8: CENTER_NAME is 'MOON', must be EARTH"),
        ("oem-kvn", "OBJECT_ID = 25544", "OBJECT_ID = SAT", "line 7: OBJECT_ID is 'SAT', must be a catalogue number"),
        (
            "oem-kvn",
            "\nSTOP_TIME",
            "\nUSEABLE_START_TIME = 2024-05-03T00:40:00\nUSEABLE_STOP_TIME = 2024-05-03T00:20:00\nSTOP_TIME",
            "line 13: it is usable from 2024-05-03T00:40:00.000Z to 2024-05-03T00:20:00.000Z",
        ),
        ("oem-kvn", "\nSTOP_TIME", "\nUSEABLE_START_TIME = 2024-06-03T00:00:00\nSTOP_TIME", "they share no second"),
        (
            "oem-kvn",
            "STOP_TIME = 2024-05-03T01",
            "STOP_TIME = 2024-05-03T09",
            "but its last state is of 2024-05-03T01:00:00.000Z: it is not whole",
        ),
        (
            "meme-ephemeris",
            "ephemeris_stop:2026-09-11",
            "ephemeris_stop:2026-09-14",
            "it states to end at 2026-09-14T01:43:42",
        ),
        (
            "stk-ephemeris",
            "Points 3",
            "Points 20",
            "line 4: NumberOfEphemerisPoints is '20', but the file has 3: it is not whole",
        ),
        (
            "stk-ephemeris",
            "CentralBody",
            "TimeScale TAI\nCentralBody",
            "line 6: TimeScale is no keyword or table that is read",
        ),
        (
            "stk-ephemeris",
            "CentralBody",
            "BEGIN SegmentBoundaryTimes\n0.0\n120.0\n240.0\nEND SegmentBoundaryTimes\nCentralBody",
            "line 8: a segment ends here, as at a manoeuvre, and a file is read as one segment: make one file of each",
        ),
        (
            "stk-ephemeris",
            "END",
            "CovarianceTimePos\n0 1 0 4 0 0 9\nEND",
            "CovarianceTimePos has no errors of the velocities",
        ),
        (
            "stk-ephemeris",
            "Fixed",
            "Fixed\nCoordinateSystemEpoch 1 Jan 2000 12:00:00.0",
            "the CoordinateSystem Fixed is of no epoch",
        ),
        ("stk-ephemeris", "Fixed", "TrueOfEpoch", "CoordinateSystemEpoch is missing"),
        ("sp3", "       3 ORBIT", "      96 ORBIT", "line 1: the header states 96 epochs, the file has 3"),
        ("sp3", " ITRF ", " GCRF ", "line 1: the coordinate system is 'GCRF', must be an Earth-fixed one"),
        ("sp3", " ITRF ", " J2000", "the coordinate system is 'J2000'"),
        ("sp3", " ITRF ", "   ECI", "the coordinate system is"),
        ("sp3", " GPS ccc", " TDB ccc", "the time system is 'TDB', must be one of GPS"),
    ],
)
def test_what_cannot_be_used_as_stated_is_refused_with_its_line__41(
    segment_format: str, old: str, new: str, reason: str
) -> None:
    samples = {"oem-kvn": OEM, "stk-ephemeris": stk_of_jason(3), "sp3": sp3_of_jason(3)}
    text = samples.get(segment_format, "# OBJECT_ID = 25544\n" + MEME)
    assert old in text
    assert row_of(text, segment_format)["error"] is None
    assert reason in str(row_of(text.replace(old, new, 1), segment_format)["error"])


def test_boundaries_of_segments_at_the_ends_are_none__41() -> None:
    text = stk_of_jason(3).replace(
        "CentralBody", "BEGIN SegmentBoundaryTimes\n0\n240\nEND SegmentBoundaryTimes\nCentralBody"
    )
    assert row_of(text, "stk-ephemeris")["error"] is None


def test_a_usable_span_is_never_longer_than_the_states__41() -> None:
    row = row_of(OEM.replace("\nSTOP_TIME", "\nUSEABLE_STOP_TIME = 2024-06-03T00:00:00\nSTOP_TIME"))
    assert (row["usable_from_ns"], row["usable_until_ns"]) == (row["first_time_ns"], row["last_time_ns"])


@pytest.mark.parametrize(("system", "behind_gps_s"), [("GPS", 0), ("IRN", 0), ("GLO", 14), ("BDT", 14)])
def test_the_time_systems_of_navigation_are_read__41(system: str, behind_gps_s: int) -> None:
    """2008: GPS time was 14 s ahead of UTC, and BeiDou's time is 14 s behind GPS time always."""
    expected, found = (row_of(sp3_of_jason(3).replace(" GPS ccc", f" {each} ccc"), "sp3") for each in ("GPS", system))
    assert found["first_time_ns"] - expected["first_time_ns"] == behind_gps_s * 10**9


@pytest.mark.parametrize("name", ["ITRF ", "ITR97", "IGS20", "IGb14", "SLRF ", "WGS84"])
def test_the_names_of_earth_fixed_systems_are_read__41(name: str) -> None:
    assert row_of(sp3_of_jason(3).replace(" ITRF ", f" {name}"), "sp3")["error"] is None


def test_velocities_that_are_not_known_follow_from_the_positions__41() -> None:
    """SP3 writes zeros for them, of all epochs or of one."""
    whole = sp3_of_jason(40)
    expected = np.array(row_of(whole, "sp3")["state"]).reshape(-1, 6)
    zeros = "VL27" + 3 * f"{0:14.6f}"
    for count in (1, 40):
        text = re.sub(r"VL27.{42}", zeros, whole, count=count)
        row = row_of(text, "sp3")
        assert row["error"] is None
        assert np.abs(np.array(row["state"]).reshape(-1, 6) - expected).max() < 5e-4
    few = row_of(re.sub(r"VL27.{42}", zeros, sp3_of_jason(3)), "sp3")
    assert "it does not have all velocities, and they follow from 6 or more positions" in few["error"]


@pytest.mark.parametrize("segment_format", ["oem-kvn", "oem-xml", "stk-ephemeris"])
def test_zero_velocities_are_no_orbit__41(segment_format: str) -> None:
    if segment_format == "stk-ephemeris":
        text = re.sub(r"^(\d+\.000(?: \S+){3}).*$", r"\1 0 0 0", stk_of_jason(5), flags=re.MULTILINE)
    else:
        start = OEM[: OEM.index("COVARIANCE_START")]
        text = re.sub(r"^(2024\S+(?: \S+){3}).*$", r"\1 0 0 0", start, flags=re.MULTILINE)
    data = converted(text.encode(), "oem-kvn", "oem-xml").data.decode() if segment_format == "oem-xml" else text
    reason = row_of(data, segment_format)["error"]
    assert "km from the Earth's centre: its speed is" in reason


def test_a_covariance_is_at_a_time_with_a_state_in_any_frame__41() -> None:
    for frame in ("TNW", "EME2000"):
        text = OEM.replace("COV_REF_FRAME = TNW", f"COV_REF_FRAME = {frame}")
        assert row_of(text)["error"] is None
        late = re.sub(r"(COVARIANCE_START\nEPOCH = 2024-05-03T)\S+", r"\g<1>09:00:00", text)
        assert "a covariance is at a time without a state" in row_of(late)["error"]


def test_a_state_that_is_wrong_is_named_by_its_line__41() -> None:
    lines = OEM[: OEM.index("COVARIANCE_START")].split("\n")
    at = next(row for row, line in enumerate(lines) if line.startswith("2024-05-03T00:03"))
    for changed in (f"{lines[at].split()[0]} 1 2 3 4 5 6", " ".join([*lines[at].split()[:4], "0 0 0"])):
        reason = row_of("\n".join([*lines[:at], changed, *lines[at + 1 :]]))["error"]
        assert reason.startswith(f"line {at + 1}: state 4")
    gap = [line for line in lines if not line.startswith("2024") or line.split("T")[1].startswith(("00:00", "00:30"))]
    reason = row_of("\n".join(gap))["error"]
    after = next(row for row, line in enumerate(gap) if line.startswith("2024-05-03T00:30"))
    assert reason.startswith(f"line {after + 1}: states 1 and 2 are 1800 s apart")
