"""Every column of an assessment, judged by published conjunction messages: none may hold what another one means."""

from collections import defaultdict
from dataclasses import fields
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.orbits import Catalogue
from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.assess import ASSESSED_SCHEMA, assess_candidates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.conjunction.sizes import FLEET, RADAR_CROSS_SECTION, ObjectSizes
from sda_platform.conjunction.tracked_states import Tracks
from sda_platform.formats.cdm import Cdm, CdmObject, read_cdm
from sda_platform.fusion.tables import STATE_COLUMNS
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.volumes import Volume
from sda_platform_tests.support.cara_conjunctions import CONJUNCTIONS, conjunction
from sda_platform_tests.support.track_columns import SCHEMA

DATA = Path(__file__).parents[2] / "data"
IDS, NAMES = (27424, 41740), ("SATELLITE A", "FENGYUN 1C DEB")
FIRST_RADIUS_M, VOLUME_KM = 8.0, 20.0
DAY_NS = parse_iso_ns("2025-01-12T00:00:00Z")
SECOND_NS = 1_000_000_000
AXES = ("radial", "in_track", "cross_track")
GM_KM3_S2 = 398600.4418
PUBLISHED = ("000041740", "000049574")
"""One encounter of NASA CARA whose two-dimensional probability is valid, one whose is not."""


def axes(position: Any, velocity: Any) -> Any:
    """Radial, in-track and cross-track unit vectors, by rows."""
    radial, normal = position / np.linalg.norm(position), np.cross(position, velocity)
    normal = normal / np.linalg.norm(normal)
    return np.array([radial, np.cross(normal, radial), normal])


def covariance(each: CdmObject) -> Any:
    """The covariance (6, 6) in the frame of the state."""
    both = np.kron(np.eye(2), axes(each.position_km, each.velocity_km_s))
    return both.T @ each.covariance_rtn @ both


def state(each: CdmObject) -> Any:
    return np.concatenate([each.position_km, each.velocity_km_s])


def assessed(message: Cdm, radius_m: float = 20.0, tracked: int = 1) -> dict[str, Any]:
    """The message's encounter by a track of its object number ``tracked`` and an ephemeris of the other one."""
    stated = 3 - tracked
    of_track, of_ephemeris = message.objects[tracked - 1], message.objects[stated - 1]
    tca_ns = message.tca_time_ns
    areas = np.diag([1e-8, 1e-8])
    joint = np.block([[covariance(of_track), np.zeros((6, 2))], [np.zeros((2, 6)), areas]])
    track = {
        "norad_id": IDS[tracked - 1], "track_id": "a track", "epoch_time_ns": tca_ns,
        "manoeuvre_time_ns": tca_ns - SECOND_NS, "classification": "C", "data_mode": "EXERCISE",
        **dict(zip(STATE_COLUMNS, state(of_track).tolist(), strict=True)),
        "drag_area_m2_kg": 0.01, "reflective_area_m2_kg": 0.01, "joint_covariance": joint[np.tril_indices(8)].tolist(),
    }  # fmt: skip
    since_s = np.arange(-60, 61, 10)[:, None]
    r, v = of_ephemeris.position_km, of_ephemeris.velocity_km_s
    pull = -GM_KM3_S2 * r / np.linalg.norm(r) ** 3
    states = np.hstack([r + v * since_s + pull * since_s**2 / 2, v + pull * since_s])
    times_ns = (tca_ns + since_s[:, 0] * SECOND_NS).tolist()
    ephemeris = {
        "norad_id": IDS[stated - 1], "created_time_ns": tca_ns, "received_time_ns": tca_ns, "segment_sha256": "ab",
        "segment_name": "ops.kvn", "record_number": 3, "usable_from_ns": times_ns[0], "usable_until_ns": times_ns[-1],
        "state_time_ns": times_ns, "state": states.ravel().tolist(), "covariance_time_ns": [tca_ns],
        "covariance": covariance(of_ephemeris)[np.tril_indices(6)].tolist(),
        "classification": "S", "data_mode": "TEST",
    }  # fmt: skip
    sets = read_elements(DATA / "screening" / "supplemental_sets_2025-01-12.omm.csv", DAY_NS, DAY_NS + 1).elements.take(
        np.zeros(2, np.int64)
    )
    columns = {field.name: getattr(sets, field.name).copy() for field in fields(sets)}
    columns |= {"norad_id": np.array(IDS), "epoch_time_ns": np.full(2, tca_ns - 60 * SECOND_NS)}
    candidate = {"event_id": ["event"], "norad_id_1": IDS[:1], "norad_id_2": IDS[1:], "tca_time_ns": [tca_ns]}
    found: dict[str, Any]
    (found,) = assess_candidates(
        pa.table(candidate),
        Catalogue(Propagator(type(sets).from_columns(columns)), NAMES),
        Tracks.of(pa.Table.from_pylist([track], SCHEMA)),
        OperatorEphemerides.of([ephemeris]),
        Volume.sphere(VOLUME_KM),
        ObjectSizes({IDS[0]: FIRST_RADIUS_M}, {IDS[1]: radius_m - FIRST_RADIUS_M}),
    ).to_pylist()
    return found


def expected(message: Cdm, stated: dict[str, Any], tracked: int) -> dict[str, Any]:
    """The row by the message and by textbook formulas; a number with its tolerance, anything else as it is."""
    first, second = message.objects
    apart, relative = second.position_km - first.position_km, second.velocity_km_s - first.velocity_km_s
    speed = float(np.linalg.norm(relative))
    rtn = axes(first.position_km, first.velocity_km_s)
    in_plane = np.linalg.svd(relative[None])[2][1:]
    combined = in_plane @ (covariance(first) + covariance(second))[:3, :3] @ in_plane.T
    miss = in_plane @ apart
    mahalanobis = float(np.sqrt(miss @ np.linalg.solve(combined, miss)))
    is_valid = stated["message_id"][15:24] == PUBLISHED[0]
    radius_m = stated["hard_body_radius_m"]
    # Alfriend et al. 1999, for a radius that is small against the sigmas.
    maximum = (radius_m / 1000) ** 2 / (np.sqrt(np.linalg.det(combined)) * mahalanobis**2 * np.e)
    # What `sda pc` finds for the message; where 2D is valid, the published one.
    probability = stated["stated_probability"] if is_valid else message_risk(message, radius_m).pc or 0.0
    numbers = {
        "miss_distance_km": (stated["miss_distance_m"] / 1000, 1e-3),
        "relative_speed_km_s": (speed, 1e-5),
        **{f"{axis}_miss_km": (x, 5e-3) for axis, x in zip(AXES, rtn @ apart, strict=True)},
        **{f"relative_velocity_{axis}_km_s": (x, 1e-4) for axis, x in zip(AXES, rtn @ relative, strict=True)},
        "time_in_volume_s": (2 * np.sqrt(VOLUME_KM**2 - apart @ apart) / speed, 1e-2),
        "mahalanobis_distance": (mahalanobis, 5e-3),
        "probability_2d": (stated["stated_probability"], 1e-2 * stated["stated_probability"]),
        "collision_probability": (probability, 1e-2 * probability),
        "maximum_probability": (maximum, 0.2 * maximum),
        "maximum_sigma_scale": (mahalanobis / np.sqrt(2), 0.25),
        "hard_body_radius_m": (radius_m, 1e-9),
    }
    return {
        **numbers,
        "event_id": "event",
        "tca_time_ns": (message.tca_time_ns, 1_000_000),
        "probability_method": "FOSTER-1992" if is_valid else "HALL-2021",
        "probability_standard_error": None,
        "is_2d_valid": is_valid,
        "risk_flags": "curved_motion,diluted" if is_valid else "extended_encounter,curved_motion",
        "is_screening_only": False,
        "risk": "red",
        f"state_source_{tracked}": "fused_track",
        f"state_source_{3 - tracked}": "operator_ephemeris",
        f"track_id_{tracked}": "a track",
        f"track_id_{3 - tracked}": None,
        f"manoeuvre_time_{tracked}_ns": message.tca_time_ns - SECOND_NS,
        f"manoeuvre_time_{3 - tracked}_ns": None,
        f"ephemeris_id_{tracked}": None,
        f"ephemeris_id_{3 - tracked}": "ops.kvn:3",
        f"classification_{tracked}": "C",
        f"data_mode_{tracked}": "EXERCISE",
        f"classification_{3 - tracked}": "S",
        f"data_mode_{3 - tracked}": "TEST",
        "object_type_1": "payload",
        "object_type_2": "debris",
        "radius_source_1": FLEET,
        "radius_source_2": RADAR_CROSS_SECTION,
        **{f"norad_id_{n}": IDS[n - 1] for n in (1, 2)},
        **{f"object_name_{n}": NAMES[n - 1] for n in (1, 2)},
        "radius_1_m": FIRST_RADIUS_M,
        "radius_2_m": radius_m - FIRST_RADIUS_M,
        **{f"state_{n}": state(each) for n, each in enumerate(message.objects, 1)},
        **{f"covariance_{n}": covariance(each)[np.tril_indices(6)] for n, each in enumerate(message.objects, 1)},
        **{f"degrees_of_freedom_{n}": None for n in (1, 2)},  # neither is an element set
    }


def wrong(row: dict[str, Any], right: dict[str, Any]) -> list[str]:
    """The columns of ``row`` that are not right."""
    return [name for name, value in row.items() if not _agree(value, right[name])]


def _agree(value: Any, right: Any) -> bool:
    match right:
        case (number, tolerance):
            return value is not None and bool(abs(value - number) <= tolerance)
        case np.ndarray():
            return np.shape(value) == right.shape and np.allclose(value, right, rtol=1e-2, atol=1e-9)
        case _:
            return bool(value == right)


@pytest.fixture(scope="module")
def encounters() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Of each published encounter the row and what it must be."""
    found = []
    for tracked, secondary in enumerate(PUBLISHED, 1):
        message, stated = read_cdm(conjunction(secondary)), CONJUNCTIONS[secondary]
        row = assessed(message, stated["hard_body_radius_m"], tracked)
        found.append((row, expected(message, stated, tracked)))
    return found


def test_each_column_is_what_the_published_encounter_makes_it(
    encounters: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    for row, right in encounters:
        assert wrong(row, right) == []
        assert row.keys() == right.keys()


def test_no_two_columns_of_one_type_may_be_exchanged(
    encounters: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    of_type = defaultdict(list)
    for field in ASSESSED_SCHEMA:
        if field.name.startswith("degrees_of_freedom"):
            continue  # neither object is an element set here: see `test_assessing`
        of_type[str(field.type)].append(field.name)
    for one, other in chain.from_iterable(combinations(names, 2) for names in of_type.values()):
        swapped = [({**row, one: row[other], other: row[one]}, right) for row, right in encounters]
        assert any(wrong(row, right) for row, right in swapped), f"{one} and {other}"


def test_relative_position_and_velocity_are_those_of_the_standard_s_example() -> None:
    """CCSDS 508.0-B-1, annex: its states and its relative values differ by 24 m and 0.5 km/s."""
    message = read_cdm((DATA / "cdm" / "leo_debris.kvn").read_bytes())
    row = assessed(message)
    for keyword, column, tolerance in (
        ("RELATIVE_POSITION", "{}_miss_km", 0.025),
        ("RELATIVE_VELOCITY", "relative_velocity_{}_km_s", 0.5),
    ):
        stated = [float(message.fields[f"{keyword}_{axis}"]) / 1000 for axis in "RTN"]
        assert [row[column.format(axis)] for axis in AXES] == pytest.approx(stated, abs=tolerance)
