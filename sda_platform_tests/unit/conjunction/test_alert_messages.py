"""The message of an alert states what was assessed, to us and to a parser that is not ours (CCSDS 508.0-B-1)."""

from pathlib import Path
from typing import Any

import ccsds_ndm
import numpy as np
import pytest

from sda_platform.conjunction.alert_messages import assessment_message
from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.conjunction.stated_objects import stated_objects
from sda_platform.formats.cdm import Encoding, read_cdm
from sda_platform.formats.cdm_keywords import COVARIANCE
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.fleet import ProtectedObject
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.stated_tails import stated_degrees
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.orbits.risk.best_probability import METHODS, best_probabilities
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.encounter import relative_states
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.small_catalogue import small_catalogue

TCA_NS = 1_730_419_200_123_456_789
LOWER = np.tril_indices(6)


@pytest.fixture(scope="module")
def assessment() -> dict[str, Any]:
    r1, v1 = np.array([[7000.0, 10.0, -20.0]]), np.array([[0.01, 5.3, 5.3]])
    r2, v2 = r1 + np.array([[0.05, 0.002, 0.205]]), np.array([[0.02, -5.2, 5.4]])
    root = np.random.default_rng(3).normal(size=(2, 6, 6)) * np.array([0.2, 0.2, 0.2, 2e-4, 2e-4, 2e-4])[:, None]
    c1, c2 = root @ root.swapaxes(-1, -2)
    best = best_probabilities(Encounters(r1, v1, c1[None], r2, v2, c2[None], np.array([0.01])))
    relative = relative_states(r1, v1, r2, v2)
    geometry = [*relative.position_rtn_km[0], *relative.velocity_rtn_km_s[0]]
    names = ["radial_miss_km", "in_track_miss_km", "cross_track_miss_km"]
    names += [f"relative_velocity_{axis}_km_s" for axis in ("radial", "in_track", "cross_track")]
    return {
        "event_id": "0a1b", "sequence": 2, "norad_id_1": 25544, "norad_id_2": 270387, "tca_time_ns": TCA_NS,
        "object_name_1": "ISS (ZARYA)", "object_name_2": "", "object_type_1": "payload", "object_type_2": "unknown",
        "miss_distance_km": relative.miss_distance_km[0], "relative_speed_km_s": relative.relative_speed_km_s[0],
        **dict(zip(names, geometry, strict=True)),
        "collision_probability": best.probability[0], "probability_method": best.method[0], "risk_flags": "",
        "hard_body_radius_m": 10.0, "radius_1_m": 5.0, "radius_2_m": 5.0,
        "radius_source_1": "fleet file", "radius_source_2": "default by type", "is_screening_only": True,
        "state_source_1": "fused_track", "state_source_2": "element_set",
        "state_1": [*r1[0], *v1[0]], "state_2": [*r2[0], *v2[0]],
        "covariance_1": c1[LOWER].tolist(), "covariance_2": c2[LOWER].tolist(),
    }  # fmt: skip


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_what_we_write_we_assess_again_to_nine_digits(assessment: dict[str, Any], encoding: Encoding) -> None:
    message = read_cdm(encode_cdm(assessment_message(assessment, TCA_NS), encoding))
    risk = message_risk(message)
    assert message.tca_time_ns == TCA_NS
    assert risk.pc == pytest.approx(assessment["collision_probability"], rel=1e-8)
    assert (risk.hard_body_radius_m, risk.hard_body_radius_source) == (10.0, "message, combined radius")
    assert risk.pc_in_message == pytest.approx(risk.pc, rel=1e-8)
    assert "states_disagree_with_miss_distance" not in risk.flags
    assert any(comment.startswith("SCREENING ONLY") for comment in message.comments)
    assert "RADII OF OBJECT1 AND OBJECT2: 5 m (fleet file), 5 m (default by type)" in message.comments


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
@pytest.mark.parametrize("degrees", [(None, 1.2), (3.456789, 6.0)])
def test_long_tails_that_a_message_states_are_assessed_again(
    assessment: dict[str, Any], encoding: Encoding, degrees: tuple[float | None, float]
) -> None:
    tailed = assessment | {"degrees_of_freedom_1": degrees[0], "degrees_of_freedom_2": degrees[1]}
    (stated,) = best_probabilities(assessed_pass(tailed)).probability
    assert abs(stated / assessment["collision_probability"] - 1) > 0.001, "the tails matter here"
    message = assessment_message(tailed, TCA_NS)
    again = message_risk(read_cdm(encode_cdm(message, encoding)))
    assert again.pc == pytest.approx(stated, rel=1e-8)
    theirs = ccsds_ndm.Cdm.from_str(encode_cdm(message, encoding).decode(), encoding).body
    numbers = [stated_degrees(segment.data.comment or segment.metadata.comment) for segment in theirs.segments]
    assert numbers == [degrees[0] or np.inf, degrees[1]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_an_independent_parser_reads_the_same_numbers(
    assessment: dict[str, Any], encoding: Encoding, method: str
) -> None:
    ours = assessment_message({**assessment, "probability_method": method}, TCA_NS)
    theirs = ccsds_ndm.Cdm.from_str(encode_cdm(ours, encoding).decode(), encoding).body
    told = theirs.relative_metadata_data
    assert told.miss_distance == pytest.approx(ours.miss_distance_m, abs=1e-6)
    assert told.collision_probability == pytest.approx(assessment["collision_probability"], rel=1e-9)
    assert told.collision_probability_method == method
    for mine, segment in zip(ours.objects, theirs.segments, strict=True):
        state, covariance = segment.data.state_vector, segment.data.covariance_matrix
        assert segment.metadata.object_designator == mine.fields["OBJECT_DESIGNATOR"]
        assert [state.x, state.y, state.z] == pytest.approx(mine.position_km.tolist(), rel=1e-14)
        assert [state.x_dot, state.y_dot, state.z_dot] == pytest.approx(mine.velocity_km_s.tolist(), rel=1e-14)
        for keyword, row, column in COVARIANCE:
            assert getattr(covariance, keyword.lower()) == pytest.approx(1e6 * mine.covariance_rtn[row, column])


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_a_message_states_designator_manoeuvrability_and_tracking_field_060(
    assessment: dict[str, Any], encoding: Encoding, tmp_path: Path
) -> None:
    lake = small_catalogue(tmp_path, [25544, 43477])
    window = {
        "fit_id": "w1", "op": "insert", "sequence": 1, "norad_id": 25544, "window_start_ns": TCA_NS - 60 * 10**9,
        "epoch_time_ns": TCA_NS - 45 * 10**9, "radar_count": 3, "optical_count": 2, "isl_count": 0, "rejected_count": 1,
    }  # fmt: skip
    commit(lake, FUSED_TRACKS, [window])
    fleet = [ProtectedObject(25544, "ISS", "NASA", manoeuvrable=True)]
    alert = {**assessment, "track_id_1": "w1", "track_id_2": None}
    objects = stated_objects(lake, [alert], fleet)
    first, second = read_cdm(encode_cdm(assessment_message(alert, TCA_NS, objects=objects), encoding)).objects
    designators = [each.fields["INTERNATIONAL_DESIGNATOR"] for each in (first, second)]
    assert designators == ["1998-067A", "UNKNOWN"]
    assert (first.fields["MANEUVERABLE"], second.fields["MANEUVERABLE"]) == ("YES", "N/A")
    assert (first.fields["OBS_USED"], first.fields["OBS_AVAILABLE"]) == ("5", "6")
    assert parse_epoch_ns(first.fields["TIME_LASTOB_END"]) // 10**6 == (TCA_NS - 30 * 10**9) // 10**6
    assert "OBS_USED" not in second.fields
