"""Ephemerides with gaps are used in pieces, single states are propagated, and what is not used is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decoder, parts_not_used
from sda_platform.cli.data.refused_records import RefusedRecords
from sda_platform.clock import MissionClock
from sda_platform.conjunction.operator_ephemerides import NONE, OperatorEphemerides
from sda_platform.lake.lake import Lake, without_session
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform_tests.support.ephemerides_of_operators import oem_through
from sda_platform_tests.support.messages import MESSAGES
from sda_platform_tests.support.sample_inputs import jason_rows, sp3_of_jason
from sda_platform_tests.support.segments import START_NS, after, described

PLACE, SPEED = np.array([7000.0, 0.0, 0.0]), np.array([0.0, 5.0, 5.7])
WHOLE = oem_through(25544, START_NS, PLACE, SPEED, begin_ns=START_NS, end_ns=after(7200)).decode()
SPACECRAFT = "MASS = 505\nSOLAR_RAD_AREA = 10\nSOLAR_RAD_COEFF = 1.2\nDRAG_AREA = 5\nDRAG_COEFF = 2.2\n"
DESIGNATED = decoder(lambda _designator: (25544,))


def row_of(text: str | bytes, segment_format: str = "oem-kvn") -> dict[str, Any]:
    data = text.encode() if isinstance(text, str) else text
    (row,) = DESIGNATED(data, described(data, "ephemerides", segment_format=segment_format)).to_pylist()
    return {**row, "segment_name": "a.oem", "segment_sha256": "a", "received_time_ns": START_NS}


def without(text: str, *spans: tuple[int, int]) -> str:
    """``text`` without its states of these spans of minutes; the first state is on line 13."""
    lines = text.split("\n")
    left_out = {12 + minute for begin, end in spans for minute in range(begin, end)}
    return "\n".join(line for number, line in enumerate(lines) if number not in left_out)


@pytest.mark.parametrize(
    ("spans", "gaps"),
    [
        ([(20, 80)], [(19, 80)]),
        ([(20, 80), (100, 119)], [(19, 80), (99, 119)]),
        ([(1, 40)], [(0, 40)]),
        ([(80, 120)], [(79, 120)]),
        ([(30, 60), (61, 90)], [(29, 90)]),
    ],
    ids=["one gap", "two gaps", "after the first state", "before the last state", "a state alone"],
)
def test_an_ephemeris_with_gaps_is_used_on_both_sides_of_them__41(
    spans: list[tuple[int, int]], gaps: list[tuple[int, int]]
) -> None:
    row, whole = row_of(without(WHOLE, *spans)), row_of(WHOLE)
    assert (row["error"], parts_not_used(whole)) == (None, [])
    found = OperatorEphemerides.of([row])
    truth = Ephemeris.from_row(whole)
    minutes = np.arange(0.5, 120)
    time_ns = START_NS + np.rint(minutes * 60e9).astype(np.int64)
    number = found.covering(np.full(len(time_ns), 25544), time_ns)
    is_known = ~np.any([(minutes > begin) & (minutes < end) for begin, end in gaps], axis=0)
    np.testing.assert_array_equal(number != NONE, is_known)
    state, covariance = found.at(number, time_ns)
    np.testing.assert_allclose(state[is_known], truth.at(time_ns)[0][is_known], atol=5e-3)
    if row["covariance_source"] == "message":
        np.testing.assert_allclose(covariance[is_known], truth.at(time_ns)[1][is_known], rtol=0.02, atol=1e-6)
    assert set(found.ephemeris_id) == {"a.oem:0"}
    stated = [[f"2024-11-01T{m // 60:02}:{m % 60:02}:00" for m in gap] for gap in gaps]
    assert [all(at in text for at in gap) for gap, text in zip(stated, parts_not_used(row), strict=True)] == [
        True
    ] * len(gaps)


@pytest.mark.parametrize(
    ("begin", "end", "used"),
    [(10, 70, (10, 19)), (30, 100, (80, 100)), (10, 100, (10, 100)), (19, 70, None), (30, 80, None)],
)
def test_a_usable_span_that_ends_in_a_gap_ends_with_the_states_before_it__41(
    begin: int, end: int, used: tuple[int, int] | None
) -> None:
    span = "".join(
        f"USEABLE_{name}_TIME = 2024-11-01T{minute // 60:02}:{minute % 60:02}:00\n"
        for name, minute in (("START", begin), ("STOP", end))
    )
    row = row_of(without(WHOLE, (20, 80)).replace("META_STOP", f"{span}META_STOP"))
    if used is None:
        assert "has states from 2024-11-01T00:00:00.000Z to 2024-11-01T00:19:00.000Z, 2024-11-01T01:20" in row["error"]
    else:
        assert (row["usable_from_ns"], row["usable_until_ns"]) == tuple(after(60 * minute) for minute in used)


def test_an_ephemeris_whose_steps_are_all_too_long_is_refused_as_before__41() -> None:
    row = row_of(without(WHOLE, *[(minute, minute + 39) for minute in range(1, 120, 40)]))
    assert "a curve between them is off by" in row["error"]


def test_a_covariance_in_a_gap_is_left_out_and_a_piece_without_one_has_the_nearest_carried__41() -> None:
    second = WHOLE[WHOLE.index("COVARIANCE_START\n") + 17 :].replace("T00:00:00", "T01:00:00")
    row = row_of(without(WHOLE.replace("COVARIANCE_STOP\n", "") + second, (20, 80)))
    assert row["error"] is None
    assert row["covariance_time_ns"] == [START_NS, *(after(minute * 60) for minute in range(80, 121))]


def opm_of_jason(more: str = "", *, system: str = "TAI", epoch: str = "2008-08-30T21:00:00") -> str:
    """The first of the precise states of Jason-2 as an OPM."""
    names = ("X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT")
    state = "\n".join(f"{name} = {value}" for name, value in zip(names, jason_rows(1)[0][1:], strict=True))
    return (
        "CCSDS_OPM_VERS = 3.0\nCREATION_DATE = 2008-08-30T00:00:00\nORIGINATOR = X\nOBJECT_NAME = JASON-2\n"
        f"OBJECT_ID = 2008-032A\nCENTER_NAME = EARTH\nREF_FRAME = ITRF\nTIME_SYSTEM = {system}\nEPOCH = {epoch}\n"
        f"{state}\n{more}"
    )


def test_the_state_of_an_opm_is_propagated_as_the_object_went__41() -> None:
    """Jason-2 is 12.5 hours later within 100 m of its precise orbit; two-body motion would be off by hundreds of km."""
    row = row_of(opm_of_jason(SPACECRAFT), "opm-kvn")
    assert (row["error"], row["norad_id"], row["covariance_source"]) == (None, 25544, "default")
    precise = Ephemeris.from_row(row_of(sp3_of_jason(376), "sp3"))
    found = Ephemeris.from_row(row)
    begin_ns, end_ns = (int(precise.state_time_ns[n]) for n in (0, -1))
    assert (row["usable_from_ns"], row["usable_until_ns"]) == (begin_ns, begin_ns + 86_400 * 10**9)
    at_ns = np.linspace(begin_ns, end_ns, 20).astype(np.int64)
    off_km = np.linalg.norm(found.states(at_ns)[:, :3] - precise.states(at_ns)[:, :3], axis=1)
    assert (off_km[0], off_km.max()) == (pytest.approx(0, abs=1e-3), pytest.approx(0, abs=0.1))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("MASS = 505", "MASS = 0.00001", "DRAG_AREA * DRAG_COEFF / MASS is 1.1e+06 m**2/kg, must be at least 0"),
        ("SOLAR_RAD_COEFF = 1.2", "SOLAR_RAD_COEFF = -1.2", "SOLAR_RAD_AREA * SOLAR_RAD_COEFF / MASS is -0.02"),
        ("MASS = 505", "MASS = 0", None),
        ("DRAG_AREA = 5", "DRAG_AREA = 0", None),
    ],
)
def test_areas_that_no_object_has_are_refused__41(old: str, new: str, reason: str | None) -> None:
    error = row_of(opm_of_jason(SPACECRAFT.replace(old, new)), "opm-kvn")["error"]
    assert error is None if reason is None else reason in error


def test_the_covariance_of_an_opm_grows_along_its_orbit__41() -> None:
    row = row_of(MESSAGES["opm_g3.kvn"], "opm-kvn")
    assert (row["error"], row["covariance_source"]) == (None, "message")
    times, covariance = row["covariance_time_ns"], Ephemeris.from_row(row).covariance
    assert times[0] == row["usable_from_ns"]
    assert np.trace(covariance[0, :3, :3]) == pytest.approx(3.331349e-4 + 6.782421e-4 + 3.231931e-4, rel=1e-4)
    assert np.trace(covariance[-1, :3, :3]) > 100 * np.trace(covariance[0, :3, :3])


@pytest.mark.parametrize(
    ("ignition_s", "duration_s", "until_s"),
    [(-3600, 60, 86_400), (3600, 0, 3600), (3600, 600, 3600), (90_000, 60, 86_400), (0, 60, None), (-30, 60, None)],
)
def test_a_single_state_counts_up_to_its_first_manoeuvre__41(
    ignition_s: int, duration_s: int, until_s: int | None
) -> None:
    at = np.datetime64("2008-08-30T21:00:00") + np.timedelta64(ignition_s, "s")
    burn = f"MAN_EPOCH_IGNITION = {at}\nMAN_DURATION = {duration_s}\nMAN_DELTA_MASS = -1\nMAN_REF_FRAME = RTN\n"
    later = f"MAN_EPOCH_IGNITION = 2008-09-30T00:00:00\n{burn.partition(chr(10))[2]}"
    velocity = "MAN_DV_1 = 0\nMAN_DV_2 = 0.001\nMAN_DV_3 = 0\n"
    row = row_of(opm_of_jason(SPACECRAFT + later + velocity + burn + velocity), "opm-kvn")
    if until_s is None:
        assert "manoeuvres are not applied: nothing of its path is left; send a state after" in row["error"]
        return
    assert row["error"] is None
    assert row["usable_until_ns"] - row["usable_from_ns"] == until_s * 10**9


def test_an_oem_of_one_state_is_propagated_too_and_one_that_falls_is_refused__41() -> None:
    text = without(WHOLE, (1, 121)).replace("STOP_TIME = 2024-11-01T02", "STOP_TIME = 2024-11-01T00")
    row = row_of(text)
    assert (row["error"], row["usable_until_ns"], row["last_time_ns"]) == (None, after(86_400), after(86_400))
    speed = np.sqrt(MU_EARTH_KM3_S2 * (2 / 7000 - 2 / (7000 + 6300)))
    slow = text.replace(text.split("\n")[12].split(" ", 1)[1], f"7000 0 0 0 {speed} 0")
    assert "it is a single state, and cannot be propagated for a day" in row_of(slow)["error"]


def test_land_states_the_spans_that_are_not_used_and_refuses_nothing__41(tmp_path: Path) -> None:
    data = without(WHOLE, (20, 80)).encode()
    clock = MissionClock.starting_at(START_NS, rate=0.0)
    refused = RefusedRecords(Lake(str(tmp_path), clock, without_session))
    refused.examine(data, described(data, "ephemerides", segment_format="oem-kvn"), 3)
    (line,) = refused.lines()
    assert refused.count == 0
    assert line.startswith("record 3, it is not used from 2024-11-01T00:19:00.000Z to 2024-11-01T01:20:00.000Z: its")
