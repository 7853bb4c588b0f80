"""Tracking data as observations: what the observation model uses, in its units and frames, and what it refuses."""

import re
from math import degrees
from typing import Any

import numpy as np
import pytest
from skyfield.api import Distance, load
from skyfield.positionlib import ICRF
from skyfield.sgp4lib import TEME

from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.ingest.decoding import decode
from sda_platform.ingest.tracking import sensor_id
from sda_platform_tests.support.messages import MESSAGES, convert
from sda_platform_tests.support.segments import described

RADAR = MESSAGES["tdm_e17.kvn"].decode()
TELESCOPE = MESSAGES["tdm_e22.kvn"].decode()
LIGHT_M_S = 299_792_458


def rows_of(text: str | bytes, segment_format: str = "tdm-kvn") -> list[dict[str, Any]]:
    data = text.encode() if isinstance(text, str) else text
    found: list[dict[str, Any]] = decode(
        [(data, described(data, "tracking", segment_format=segment_format))]
    ).to_pylist()
    return found


def test_a_radar_s_range_and_angles_are_an_observation_at_the_time_of_reflection() -> None:
    """The standard's example of CAMRa: its range is still to be corrected by -1.48 km."""
    row = rows_of(RADAR)[0]
    assert (row["error"], row["source_kind"], row["source_id"], row["native_track_id"]) == (
        None,
        "radar",
        "radar-camra",
        "CRYOSAT",
    )
    words = [line.split() for line in RADAR.splitlines() if line.startswith(("RANGE =", "ANGLE_1", "ANGLE_2"))]
    lines = {keyword: (epoch, float(value)) for keyword, _, epoch, value in reversed(words)}
    epoch, range_km = lines["RANGE"]
    assert row["range_m"] == pytest.approx((range_km - 1.48) * 1000)
    assert degrees(row["azimuth_rad"]) == pytest.approx(lines["ANGLE_1"][1])
    assert degrees(row["elevation_rad"]) == pytest.approx(lines["ANGLE_2"][1])
    delay_s = (parse_epoch_ns(epoch) - row["sensor_time_ns"]) / 1e9
    assert delay_s == pytest.approx((range_km - 1.48) * 1000 / LIGHT_M_S, abs=1e-9)
    assert row["range_sigma_m"] is None, "it is the sensor's"


def test_a_time_tag_of_transmission_is_before_the_reflection() -> None:
    received = rows_of(RADAR)[0]
    sent = rows_of(RADAR.replace("META_STOP", "TIMETAG_REF = TRANSMIT\nMETA_STOP"))[0]
    there_and_back_ns = 2e9 * received["range_m"] / LIGHT_M_S
    assert sent["sensor_time_ns"] - received["sensor_time_ns"] == pytest.approx(there_and_back_ns, abs=2)


def test_a_telescope_s_angles_are_turned_into_teme_as_skyfield_turns_them_A5() -> None:
    row = rows_of(TELESCOPE.replace("EME2000", "ICRF"))[0]
    assert (row["source_kind"], row["source_id"]) == ("optical", "optical-smartnet-01-a-suth")
    assert row["native_track_id"] == "S_191021_18593902_3"
    ra, dec = np.radians([333.64830529, 5.23646136])
    direction = np.array([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)])
    time = load.timescale(builtin=True).utc(2019, 10, 21, 18, 59, 38.869008)
    x, y, z = ICRF(Distance(direction).au, t=time).frame_xyz(TEME).au
    assert row["right_ascension_rad"] == pytest.approx(np.arctan2(y, x) % (2 * np.pi), abs=2e-7)
    assert row["declination_rad"] == pytest.approx(np.arcsin(z / np.hypot(np.hypot(x, y), z)), abs=2e-7)


@pytest.mark.parametrize(
    ("angle", "column"), [("ANGLE_1", "right_ascension_rad is 6.9"), ("ANGLE_2", "declination_rad is 6.9")]
)
def test_a_direction_that_is_none_is_refused_before_it_is_turned__41(angle: str, column: str) -> None:
    row = rows_of(re.sub(rf"^({angle} = \S+) .*$", r"\1 400.0", TELESCOPE, flags=re.MULTILINE))[0]
    assert column in row["error"]


def test_a_measurement_that_is_sent_again_keeps_its_id_E1() -> None:
    first = rows_of(TELESCOPE)
    later = rows_of(TELESCOPE.replace("CREATION_DATE = 2019-10-21", "CREATION_DATE = 2019-10-22"))
    as_xml = rows_of(convert(TELESCOPE.encode(), "tdm-kvn", "tdm-xml"), "tdm-xml")
    ids = [[row["observation_id"] for row in rows] for rows in (first, later, as_xml)]
    assert ids[0] == ids[1] == ids[2]
    assert len(set(ids[0])) == 3


def test_corrections_are_added_where_they_are_not_applied_yet() -> None:
    applied, not_applied = (
        rows_of(
            TELESCOPE.replace("EME2000", "TEME").replace(
                "CORRECTIONS_APPLIED = YES", f"CORRECTION_ANGLE_1 = 0.5\nCORRECTIONS_APPLIED = {state}"
            )
        )[0]["right_ascension_rad"]
        for state in ("YES", "NO")
    )
    assert degrees(not_applied - applied) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("found", "instead", "stated"),
    [
        ("", "", "corrected"),
        ("CORRECTIONS_APPLIED = YES", "CORRECTIONS_APPLIED = NO", "annual"),
        ("CORRECTION_ABERRATION_YEARLY = 0.0056932\n", "", None),
    ],
)
def test_a_message_states_frame_and_aberration__the_list_of_sensors_does_not_count_for_it(
    found: str, instead: str, stated: str | None
) -> None:
    row = rows_of(TELESCOPE.replace(found, instead) if found else TELESCOPE)[0]
    assert row["error"] is None
    assert (row["angle_frame"], row["angle_aberration"], row["angle_refraction"]) == ("TEME", stated, None)
    assert rows_of(RADAR)[0]["angle_frame"] is None


@pytest.mark.parametrize("text", [TELESCOPE, RADAR], ids=["telescope", "radar"])
def test_a_correction_may_take_an_angle_past_a_full_turn__41(text: str) -> None:
    given = re.sub(r"^CORRECTION.*\n", "", text, flags=re.MULTILINE)
    given = given.replace("META_STOP", "CORRECTION_ANGLE_1 = 0.5\nCORRECTIONS_APPLIED = NO\nMETA_STOP")
    past, before = (
        rows_of(re.sub(r"^(ANGLE_1 = \S+) .*$", rf"\1 {angle}", given, flags=re.MULTILINE))[0]
        for angle in ("359.9", "-0.1")
    )
    columns = ("error", "right_ascension_rad", "declination_rad", "azimuth_rad")
    assert [past[name] for name in columns] == [
        None if before[n] is None else pytest.approx(before[n]) for n in columns
    ]


@pytest.mark.parametrize("stated", ['{"y_m": 7e6}', '{"position_sigma_m": 10}'])
def test_an_observer_in_orbit_states_its_whole_place__41(stated: str) -> None:
    for text in (TELESCOPE, RADAR):
        row = rows_of(text.replace("META_STOP", f"COMMENT sda-observation {stated}\nMETA_STOP"))[0]
        assert "a comment states an orbiting observer, but x_m is missing" in row["error"]


@pytest.mark.parametrize(
    ("interval", "reference", "rate"),
    [("1.0", "MIDDLE", -1498.776048), ("10.0", "MIDDLE", None), ("1.0", "END", None), ("1.0", "", None)],
)
def test_a_doppler_is_a_range_rate_where_it_is_measured_about_one_instant_else_it_is_refused__41(
    interval: str, reference: str, rate: float | None
) -> None:
    first = next(line for line in RADAR.splitlines() if line.startswith("RANGE ="))
    epoch = first.split()[2]
    text = RADAR.replace(first, f"{first}\nDOPPLER_INTEGRATED = {epoch} -1.498776", 1)
    text = text.replace("META_STOP", f"INTEGRATION_INTERVAL = {interval}\nINTEGRATION_REF = {reference}\nMETA_STOP")
    row = rows_of(text)[0]
    assert row["range_rate_m_s"] == (None if rate is None else pytest.approx(rate))
    refused = f"DOPPLER_INTEGRATED is a mean over {float(interval):g} s, INTEGRATION_REF {reference!r}: only one of at"
    assert row["error"] is None if rate else refused in row["error"]
    also = rows_of(text.replace("DOPPLER_INTEGRATED", f"DOPPLER_INSTANTANEOUS = {epoch} -1\nDOPPLER_INTEGRATED", 1))[0]
    assert (also["error"], also["range_rate_m_s"]) == (None, -1000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("PATH = 2,1", "PATH = 1,2,3"), "PATH is '1,2,3', must be of one station"),
        (("PATH = 2,1\n", ""), "PATH of metadata is missing"),
        (
            ("MODE = SEQUENTIAL", "MODE = SINGLE_DIFF\nPATH_1 = 1,2"),
            "MODE is 'SINGLE_DIFF', only SEQUENTIAL",
        ),
        (("ANGLE_TYPE = RADEC", "ANGLE_TYPE = XSYE"), "ANGLE_TYPE is 'XSYE', must be AZEL or RADEC"),
        (("ANGLE_TYPE = RADEC", "ANGLE_TYPE = AZEL"), "has azimuth and elevation without RANGE"),
        (("REFERENCE_FRAME = EME2000", "REFERENCE_FRAME = MARS"), "REFERENCE_FRAME is 'MARS', must be one of GCRF"),
        (("TIME_SYSTEM = UTC", "TIME_SYSTEM = TDB"), "TIME_SYSTEM is 'TDB', only UTC, TAI"),
        (("CORRECTIONS_APPLIED = YES", ""), "CORRECTIONS_APPLIED is missing, must be YES or NO"),
        (("CORRECTIONS_APPLIED = YES", "CORRECTIONS_APPLIED = N"), "CORRECTIONS_APPLIED is 'N', must be YES or NO"),
        (
            (
                "ANGLE_1 = 2019-10-21T18:59:38.869008",
                "RANGE = 2019-10-21T18:59:38.869008 1000\nANGLE_1 = 2019-10-21T18:59:38.869008",
            ),
            "ANGLE_TYPE is RADEC with RANGE",
        ),
        (("META_STOP", "DATA_QUALITY = BAD\nMETA_STOP"), "DATA_QUALITY is BAD"),
        (("2019-10-21T18:59:38.869008 333", "2019-10-21T18:59:39 333"), "has ANGLE_1; an observation needs"),
    ],
)
def test_what_the_observation_model_lacks_is_a_dead_letter_with_the_reason(
    change: tuple[str, str], reason: str
) -> None:
    row = rows_of(TELESCOPE.replace(*change))[0]
    assert reason in str(row["error"])
    assert row["observation_id"] is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("META_STOP", "TIMETAG_REF = BOUNCE\nMETA_STOP"), "TIMETAG_REF is 'BOUNCE', must be TRANSMIT or RECEIVE"),
        (("META_STOP", "RECEIVE_DELAY_1 = 0.5\nMETA_STOP"), "RECEIVE_DELAY_1 is 0.5 s: a range with delays"),
        (("META_STOP", "TRANSMIT_DELAY_1 = 7.7e-5\nMETA_STOP"), "TRANSMIT_DELAY_1 is 7.7e-05 s: a range with delays"),
        (("\nANGLE_1", "\nRANGE = 2011-05-11T10:26:33.2613 2000\nANGLE_1"), "RANGE is given twice at 2011-05-11T10:26"),
    ],
)
def test_a_range_that_is_not_certain_is_a_dead_letter(change: tuple[str, str], reason: str) -> None:
    assert reason in str(rows_of(RADAR.replace(*change, 1))[0]["error"])


def test_the_delay_of_a_telescope_s_receiver_is_taken_from_the_time() -> None:
    plain, delayed = (
        rows_of(TELESCOPE.replace("META_STOP", f"{delay}META_STOP", 1))[0] for delay in ("", "RECEIVE_DELAY_1 = 0.5\n")
    )
    assert plain["sensor_time_ns"] - delayed["sensor_time_ns"] == 500_000_000


@pytest.mark.parametrize(
    ("kind", "participant", "source_id"),
    [("radar", "DSS-25", "radar-dss-25"), ("radar", "radar-7", "radar-7"), ("optical", "TFRM (1)", "optical-tfrm-1")],
)
def test_a_station_is_the_sensor_of_its_name(kind: str, participant: str, source_id: str) -> None:
    assert sensor_id(kind, participant) == source_id


def test_segments_of_frames_and_of_tracking_data_are_decoded_side_by_side() -> None:
    optical = b'{"obs_id":"o","timestamp_ns":1,"ra_rad":1.0,"dec_rad":0.2,"sigma_arcsec":1.0,"site_id":"maui"}\n'
    tracking = TELESCOPE.encode()
    segments = [
        (optical, described(optical, "optical", segment_format="optical-jsonl")),
        (tracking, described(tracking, "tracking", segment_format="tdm-kvn")),
        (optical * 2, described(optical * 2, "optical", segment_format="optical-jsonl")),
    ]
    rows = decode(segments)
    assert sorted(rows["segment"].to_pylist()) == [0, 1, 1, 1, 2, 2]
    assert set(zip(rows["segment"].to_pylist(), rows["source_id"].to_pylist(), strict=True)) == {
        (0, "optical-maui"),
        (1, "optical-smartnet-01-a-suth"),
        (2, "optical-maui"),
    }
