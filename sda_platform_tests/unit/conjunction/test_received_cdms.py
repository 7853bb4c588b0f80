"""Published cases as messages: `sda pc` finds the published risk, in every frame that a message may use."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.formats.cdm import Cdm, CdmObject, read_cdm
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.errors import RecordError
from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.earth_orientation import in_gcrf
from sda_platform.orbits.frames import teme_to_itrf, velocity_teme_to_itrf

ALFANO = json.loads((Path(__file__).parents[2] / "data" / "probability" / "alfano_2009_cases.json").read_text())
TCA_NS = 946_684_800_000_000_000


def message_of(case: dict[str, Any], frames: tuple[str, str] = ("EME2000", "EME2000")) -> Cdm:
    at = {name: np.array(value) for name, value in case["tca"].items()}
    sides = []
    for number, frame in enumerate(frames, 1):
        r, v = at[f"r{number}_m"] / 1e3, at[f"v{number}_mps"] / 1e3
        covariance = teme_to_rtn(at[f"cov{number}_eci"][None] / 1e6, r, v)[0]
        if frame == "ITRF":
            r, v = teme_to_itrf(r, TCA_NS), velocity_teme_to_itrf(r, v, TCA_NS)
        sides.append(CdmObject({"OBJECT": f"OBJECT{number}"}, frame, r, v, covariance))
    miss_m = float(np.linalg.norm(at["r2_m"] - at["r1_m"]))
    fields = {"TCA": "2000-01-01T00:00:00.000000", "MISS_DISTANCE": f"{miss_m:.9f}"}
    comments = (f"HBR = {case['combined_hard_body_radius_m']} [m]",)
    written = encode_cdm(Cdm(fields, TCA_NS, miss_m, (sides[0], sides[1]), comments=comments), "kvn")
    return read_cdm(written)


@pytest.mark.parametrize("frame", ["EME2000", "GCRF", "ITRF"])
def test_the_frame_of_a_message_does_not_change_its_risk(frame: str) -> None:
    risk = message_risk(message_of(ALFANO[2], (frame, frame)))
    assert risk.pc == pytest.approx(ALFANO[2]["pc_linear_alfano_n100"], rel=1e-5)
    assert (risk.valid_2d, risk.method, risk.hard_body_radius_m) == (True, "FOSTER-1992", 15.0)
    assert risk.relative_speed_km_s == pytest.approx(0.016066922, rel=1e-6)


def test_a_case_in_which_2d_is_wrong_by_half_has_the_published_monte_carlo_risk() -> None:
    risk = message_risk(message_of(ALFANO[1]))
    assert risk.pc == pytest.approx(ALFANO[1]["pc_monte_carlo_1e8"], rel=0.015)
    assert risk.pc_2d == pytest.approx(ALFANO[1]["pc_linear_alfano_n100"], rel=1e-4)
    assert (risk.valid_2d, risk.method, risk.risk) == (False, "HALL-2021", "red")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"position_km": np.zeros(3)}, "OBJECT1: 0 km from the Earth's centre"),
        ({"velocity_km_s": np.zeros(3)}, "OBJECT1: .* at 0 km/s is no orbit"),
        ({"position_km": np.full(3, 1e9)}, "OBJECT1: .* is no orbit"),
        ({"covariance_rtn": 1e30 * np.eye(6)}, "OBJECT1: its covariance has sigmas of more than"),
    ],
)
def test_what_is_on_no_orbit_is_refused(change: dict[str, Any], reason: str) -> None:
    message = message_of(ALFANO[2])
    broken = replace(message, objects=(replace(message.objects[0], **change), message.objects[1]))
    with pytest.raises(RecordError, match=reason):
        message_risk(broken)


@pytest.mark.parametrize("frames", [("GCRF", "ITRF"), ("TEME", "ICRF"), ("ITRF", "EME2000"), ("TEME", "ITRF")])
def test_two_frames_in_one_message_do_not_change_its_risk(frames: tuple[str, str]) -> None:
    message = message_of(ALFANO[2], ("GCRF", "GCRF"))
    sides = [given_in(frame, each) for frame, each in zip(frames, message.objects, strict=True)]
    risk = message_risk(replace(message, objects=(sides[0], sides[1])))
    expected = message_risk(message)
    assert risk.pc == pytest.approx(expected.pc, rel=1e-5)
    assert risk.miss_km == pytest.approx(expected.miss_km, abs=1e-7)
    assert risk.relative_speed_km_s == pytest.approx(expected.relative_speed_km_s, rel=1e-7)


def given_in(frame: str, each: CdmObject) -> CdmObject:
    """An object whose state is given in GCRF, in another frame."""

    def both(state: np.ndarray) -> np.ndarray:
        return np.concatenate(in_gcrf(frame, state[:3], state[3:], TCA_NS))

    turn = np.stack([both(unit) for unit in np.eye(6)], axis=1)
    state = np.linalg.solve(turn, np.concatenate([each.position_km, each.velocity_km_s]))
    return replace(each, frame=frame, position_km=state[:3], velocity_km_s=state[3:])


def test_two_frames_at_a_time_whose_earth_orientation_is_unknown_are_refused() -> None:
    message = replace(message_of(ALFANO[2], ("EME2000", "ITRF")), tca_time_ns=4 * 10**18)
    with pytest.raises(RecordError, match=r"OBJECT2: REF_FRAME is ITRF, .* known from 1973-01-02 to 20"):
        message_risk(message)


@pytest.mark.parametrize(
    ("sizes", "radius_m", "source"),
    [
        ((2.0, 5.0, np.pi), 2.0, "object 1: message"),
        ((None, 5.0, np.pi), 5.0, "object 1: exclusion volume radius of the message"),
        ((None, None, np.pi), 1.0, "object 1: disc of the message's AREA_PC, 3.14159 m²"),
        ((None, None, None), 1.0, "object 1: 1 m assumed for unknown"),
    ],
)
def test_an_object_s_radius_is_the_best_that_the_message_gives_A7(
    sizes: tuple[float | None, float | None, float | None], radius_m: float, source: str
) -> None:
    message = replace(message_of(ALFANO[2]), hard_body_radius_m=None)
    first, second = message.objects
    radius, exclusion, area_m2 = sizes
    sized = replace(first, hard_body_radius_m=radius, exclusion_volume_radius_m=exclusion, area_pc_m2=area_m2)
    risk = message_risk(replace(message, objects=(sized, replace(second, hard_body_radius_m=3.0))))
    assert risk.hard_body_radius_m == pytest.approx(radius_m + 3.0)
    assert risk.hard_body_radius_source == f"{source}; object 2: message"


def test_a_message_that_contradicts_itself_is_never_green__41() -> None:
    message = message_of(ALFANO[2])
    first, second = message.objects
    far = replace(first, position_km=first.position_km * 2)
    wrong = second.covariance_rtn.copy()
    wrong[0, 0] = -1e-6
    distant = replace(
        message, objects=(first, replace(second, position_km=second.position_km * 1.001)), miss_distance_m=0
    )
    consistent = replace(distant, miss_distance_m=1e3 * message_risk(distant).miss_km)
    assert message_risk(consistent).risk == "green"
    assert message_risk(distant).risk == "unknown"
    assert message_risk(replace(message, objects=(far, second))).risk == "unknown"
    levels = {}
    for correlation in (0.0, 0.99, 1.01, 10.0):
        correlated = np.diag(np.diag(second.covariance_rtn))
        correlated[0, 1] = correlated[1, 0] = correlation * np.sqrt(correlated[0, 0] * correlated[1, 1])
        levels[correlation] = _level_with(consistent, correlated)
    assert levels == {0.0: "green", 0.99: "green", 1.01: "unknown", 10.0: "unknown"}
    assert _level_with(consistent, wrong) == "unknown"
    assert message_risk(message).risk == "red"


@pytest.mark.parametrize("degrees", ["1", "1.2", "199", "2000", "1000000000", "0.5"])
def test_degrees_of_freedom_of_a_foreign_message_lose_neither_it_nor_its_level(degrees: str) -> None:
    message = message_of(ALFANO[2])

    def stated(message: Cdm) -> Cdm:
        comment = f"ERRORS BY STUDENT T, DEGREES OF FREEDOM = {degrees}"
        first, second = (replace(each, comments=(comment,)) for each in message.objects)
        return replace(message, objects=(first, second))

    plain, tailed = message_risk(message), message_risk(stated(message))
    assert tailed.pc is not None and plain.pc is not None
    if 1 <= float(degrees) < 10:
        assert tailed.pc > 1.5 * plain.pc, "the miss is small"
    else:
        assert tailed.pc == pytest.approx(plain.pc, rel=0.05)
    assert tailed.risk == plain.risk == "red"
    first, second = message.objects
    open_orbit = replace(first, velocity_km_s=first.velocity_km_s * 2.0)
    for objects in ((open_orbit, second), (first, replace(second, covariance_rtn=0 * second.covariance_rtn))):
        changed = replace(message, objects=objects)
        without, found = message_risk(changed), message_risk(stated(changed))
        assert (found.risk, found.valid_2d) == (without.risk, without.valid_2d)


def _level_with(message: Cdm, covariance_rtn: np.ndarray) -> str:
    first, second = message.objects
    return message_risk(replace(message, objects=(first, replace(second, covariance_rtn=covariance_rtn)))).risk


def test_a_probability_with_an_exponent_of_fortran_is_read__41() -> None:
    message = message_of(ALFANO[2])
    message = replace(message, fields={**message.fields, "COLLISION_PROBABILITY": "4.8D-05"})
    assert message_risk(read_cdm(encode_cdm(message, "kvn"))).pc_in_message == 4.8e-5
