"""Ephemerides of operators as rows: TEME and UTC, whatever was sent, and a reason for what cannot be used."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode, decoder, why_not_used
from sda_platform.formats.instants import format_epoch
from sda_platform.landing.record_rows import SegmentDecoder
from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.element_errors import REGIMES
from sda_platform.orbits.ephemerides import Ephemeris, covariances_from_lower
from sda_platform_tests.support.messages import MESSAGES, convert
from sda_platform_tests.support.segments import described

FIELD = Path(__file__).parents[2] / "data" / "field"
EPOCH_NS = 1_567_987_200_000_000_000
# Two states of a day, without an epoch of the frame.
WHOLE = MESSAGES["test_cov.oem"].decode().replace("2019-09-10T00:00:00.0", "2019-09-09T00:01:00.0")
WHOLE = WHOLE.replace("REF_FRAME_EPOCH = 2019-09-09T00:00:00.0\n", "")
MESSAGE = WHOLE.replace("1996-12-28T21:29:07.267", "2019-09-09T00:00:00.0")
IN_TEME = MESSAGE.replace("= TOD", "= TEME")


def rows_of(
    text: str | bytes, segment_format: str = "oem-kvn", *, decode: SegmentDecoder = decode
) -> list[dict[str, Any]]:
    data = text.encode() if isinstance(text, str) else text
    found: list[dict[str, Any]] = decode(
        data, described(data, "ephemerides", segment_format=segment_format)
    ).to_pylist()
    return found


def test_an_ephemeris_is_a_row_with_its_states_and_covariances() -> None:
    (row,) = rows_of(IN_TEME)
    assert (row["error"], row["norad_id"], row["object_name"], row["reference_frame"]) == (None, 25544, "25544", "TEME")
    assert (row["first_time_ns"], row["last_time_ns"]) == (EPOCH_NS, EPOCH_NS + 60 * 10**9)
    assert row["state_time_ns"] == [EPOCH_NS, EPOCH_NS + 60 * 10**9]
    assert row["state"][:3] == [3156.6549969124, -5911.7573076895715, -1096.3791113140421]
    assert row["covariance_time_ns"] == [EPOCH_NS]
    assert (len(row["covariance"]), row["covariance"][0]) == (21, pytest.approx(3.3313494e-4))


def test_true_of_date_and_teme_differ_by_the_equation_of_the_equinoxes() -> None:
    """Some 0.003 degrees about the pole: at 7,000 km, hundreds of metres, and nothing along the axis."""
    teme, tod = (np.array(rows_of(text)[0]["state"]).reshape(-1, 6) for text in (IN_TEME, MESSAGE))
    assert 0.1 < np.linalg.norm(teme[0, :3] - tod[0, :3]) < 1.0
    np.testing.assert_allclose(tod[:, 2], teme[:, 2], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(tod[:, :3], axis=1), np.linalg.norm(teme[:, :3], axis=1), rtol=1e-12)


def test_a_row_gives_states_and_covariances_at_any_time_of_its_span() -> None:
    """What an assessment needs of an ephemeris: the state and its covariance at the time of closest approach."""
    (row,) = rows_of(WHOLE.replace("1996-12-28T21:29:07.267", "2019-09-09T00:00:30"))
    ephemeris = Ephemeris.from_row(row)
    times = EPOCH_NS + np.array([0, 30, 60, 61], np.int64) * 10**9
    state, covariance = ephemeris.at(times)
    np.testing.assert_allclose(state[[0, 2]].ravel(), row["state"], rtol=1e-12)
    np.testing.assert_allclose(covariance[1], covariances_from_lower(row["covariance"])[0], rtol=1e-9)
    speed_km_s = np.linalg.norm(state[1, :3] - state[0, :3]) / 30
    assert speed_km_s == pytest.approx(np.linalg.norm(state[0, 3:]), rel=1e-3)
    assert np.isfinite(covariance[:3]).all()
    assert np.isnan(state[3]).all()


@pytest.mark.parametrize("name", ["RTN", "RSW"])
def test_a_covariance_along_the_orbit_is_turned_by_the_state_at_its_time(name: str) -> None:
    given = rows_of(IN_TEME)[0]["covariance"]
    (row,) = rows_of(IN_TEME.replace("COV_REF_FRAME = TEME", f"COV_REF_FRAME = {name}"))
    state = np.array(row["state"][:6])
    back = teme_to_rtn(covariances_from_lower(row["covariance"]), state[None, :3], state[None, 3:])
    np.testing.assert_allclose(back, covariances_from_lower(given), rtol=1e-9, atol=1e-15)


def test_times_of_another_time_system_are_converted_to_utc() -> None:
    (row,) = rows_of(IN_TEME.replace("TIME_SYSTEM = UTC", "TIME_SYSTEM = GPS"))
    assert row["first_time_ns"] == EPOCH_NS - 18 * 10**9


def test_the_usable_span_is_that_of_the_message() -> None:
    usable = "USEABLE_START_TIME = 2019-09-09T00:00:10\nUSEABLE_STOP_TIME = 2019-09-09T00:00:50\nSTOP_TIME"
    (row,) = rows_of(IN_TEME.replace("STOP_TIME", usable, 1))
    assert (row["usable_from_ns"], row["usable_until_ns"]) == (EPOCH_NS + 10 * 10**9, EPOCH_NS + 50 * 10**9)


def test_an_ephemeris_that_ended_before_it_came_is_not_used__41() -> None:
    (row,) = rows_of(IN_TEME)
    end_ns = EPOCH_NS + 60 * 10**9
    assert why_not_used(row, end_ns - 1) is None
    assert why_not_used(row, end_ns) == "it ended at 2019-09-09T00:01:00.000Z, before it was received"


@pytest.mark.parametrize("written", ["1998-067A", "1998-067a", "98067A", "98-067A", "1998067A"])
def test_an_object_named_by_its_designator_is_the_one_of_the_catalogue_field_053(written: str) -> None:
    catalogue = {"1998-067A": (25544,), "1998-067B": (1, 2)}
    known = decoder(lambda designator: catalogue.get(designator, ()))
    text = (FIELD / "053-oem-international-designator.oem").read_text()
    for data, name in ((text.encode(), "oem-kvn"), (convert(text.encode(), "oem-kvn", "oem-xml"), "oem-xml")):
        (row,) = rows_of(data.replace(b"1998-067A", written.encode()), name, decode=known)
        assert (row["error"], row["norad_id"]) == (None, 25544)
    (alone,) = rows_of(text)
    assert (alone["error_kind"], alone["norad_id"]) == ("out_of_range", None)
    assert "'1998-067A', the designator of no object of the catalogue" in alone["error"]
    (many,) = rows_of(text.replace("1998-067A", "1998-067B"), decode=known)
    assert "the objects 1, 2 of the catalogue" in many["error"]
    for name in ("SAT-1", "", "UNKNOWN", "0"):
        (row,) = rows_of(text.replace("= 1998-067A", f"= {name}"), decode=known)
        assert row["error_kind"] == "bad_field"


def test_covariances_in_tnw_are_along_velocity_and_momentum_field_052() -> None:
    (row,) = rows_of((FIELD / "052-oem-covariance-tnw.oem").read_bytes())
    assert row["error"] is None
    (covariance,) = covariances_from_lower(row["covariance"])
    state = np.array(row["state"][:6])
    along, momentum = state[3:], np.cross(state[:3], state[3:])
    axes = [each / np.linalg.norm(each) for each in (along, np.cross(momentum, along), momentum)]
    assert [np.sqrt(axis @ covariance[:3, :3] @ axis) * 1e3 for axis in axes] == pytest.approx([10, 100, 10], rel=1e-6)
    rtn, tnw = (rows_of(IN_TEME.replace("COV_REF_FRAME = TEME", f"COV_REF_FRAME = {name}")) for name in ("RTN", "TNW"))
    given = [covariances_from_lower(rows[0]["covariance"])[0][:3, :3] for rows in (rtn, tnw)]
    assert np.trace(given[0]) == pytest.approx(np.trace(given[1]))
    assert not np.allclose(*given)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("= EARTH", "= MARS BARYCENTER"), "CENTER_NAME is 'MARS BARYCENTER', must be EARTH"),
        (("REF_FRAME = TEME", "REF_FRAME = MOD"), "REF_FRAME is 'MOD', must be one of GCRF"),
        (("COV_REF_FRAME = TEME", "COV_REF_FRAME = LVLH"), "COV_REF_FRAME is 'LVLH', must be one of GCRF"),
        (("TIME_SYSTEM = UTC", "TIME_SYSTEM = TDB"), "TIME_SYSTEM is 'TDB', only UTC, TAI, TT, TDT, GPS can be used"),
        (("3156.6549969124 -5911.7573076895715 -1096", "3.1 -5.9 -1"), "km from the Earth's centre"),
        (("\n3.3313494e-04", "\n-3.3313494e-04"), "a covariance has a negative variance"),
        (("4.6189273e-04", "4.6189273e-02"), "a covariance of positions is indefinite: a correlation is beyond 1"),
        (("4.6189273e-04", "4.6189273e+300"), "a covariance of positions is indefinite: a correlation is beyond 1"),
        (("4.2960228e-10", "4.2960228e+10"), "a covariance has a velocity's sigma above 10 km/s"),
    ],
)
def test_an_ephemeris_that_cannot_be_used_says_why_and_its_neighbours_are_used(
    change: tuple[str, str], reason: str
) -> None:
    first, second = rows_of(f"{IN_TEME.replace(*change)}\n{IN_TEME}")
    assert reason in str(first["error"])
    assert first["state"] is None
    assert second["error"] is None


def test_a_path_without_covariances_has_those_of_element_sets_of_its_age__41() -> None:
    start_ns, step_s, speed_km_s = EPOCH_NS + 86_400 * 10**9, 480, 7.546053
    angles = speed_km_s / 7000 * step_s * np.arange(541)
    cosine, sine = np.cos(angles), np.sin(angles)
    states = zip(7000 * cosine, 7000 * sine, -speed_km_s * sine, speed_km_s * cosine, strict=True)
    lines = [
        f"{format_epoch(start_ns + n * step_s * 10**9)} {x} {y} 0 {vx} {vy} 0"
        for n, (x, y, vx, vy) in enumerate(states)
    ]
    head = IN_TEME[: IN_TEME.index("META_STOP") + len("META_STOP")]
    head = head.replace("START_TIME = 2019-09-09", "START_TIME = 2019-09-10").replace("00:01:00.0", "00:00:00.0")
    (row,) = rows_of("\n".join([head, *lines]))
    assert (row["error"], row["covariance_source"]) == (None, "default")
    at_ns = np.array(row["covariance_time_ns"])
    assert set(row["covariance_time_ns"]) <= set(row["state_time_ns"])
    path = Ephemeris.from_row(row)
    known, covariance = path.at(at_ns)
    sigmas_km = np.sqrt(np.einsum("nii->ni", teme_to_rtn(covariance, known[:, :3], known[:, 3:])))[:, :3]
    age_days = (row["state_time_ns"][-1] - row["created_time_ns"]) / 86_400e9
    assert age_days == pytest.approx(3.22, abs=0.01)
    figures = REGIMES[1 + np.searchsorted([600.0, 800.0], 7000 - 6378.135)]
    # The in-track figure is of the element sets: a variance at epoch and one that grows with the age.
    expected_km = np.hypot(figures.in_track_km, figures.in_track_growth_km * age_days)
    assert sigmas_km[-1, 1] == pytest.approx(expected_km, rel=0.15)
    assert (np.diff(sigmas_km[:, 1]) >= 0).all()
