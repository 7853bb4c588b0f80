"""Messages with missing, singular or too large covariances: a row with a named reason, and never a lower risk."""

from typing import Any

import numpy as np
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.conjunction import cdm_decoding
from sda_platform.conjunction.received_cdms import message_risk
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.cutting import pack_segment
from sda_platform.orbits.risk.best_probability import FOSTER
from sda_platform.orbits.risk.levels import risk_level
from sda_platform_tests.support.cara_conjunctions import CONJUNCTIONS, Change, conjunction, position_only
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.segments import described


def decoded(*messages: bytes) -> list[dict[str, Any]]:
    return rows_of(pack_segment(messages, [], "cdm-kvn"))


def rows_of(segment: bytes) -> list[dict[str, Any]]:
    meta = described(segment, "messages", segment_format="cdm-kvn")
    return list(cdm_decoding.decode(segment, meta).to_pylist())


def one_object(covariance: FloatArray, number: int) -> FloatArray:
    return covariance if number == 1 else np.zeros((6, 6))


def in_track_only(covariance: FloatArray, number: int) -> FloatArray:
    return covariance if number == 1 else np.diag([0.0, covariance[1, 1], 0, 0, 0, 0])


def rank_one(covariance: FloatArray, _number: int) -> FloatArray:
    column = np.sqrt(np.abs(np.diagonal(covariance)))
    return np.outer(column, column)


def zero(covariance: FloatArray, _number: int) -> FloatArray:
    return 0 * covariance


@pytest.mark.parametrize("secondary", list(CONJUNCTIONS)[::2])
def test_a_position_only_covariance_keeps_2d_and_its_risk_level_A2(secondary: str) -> None:
    whole, bare = (
        message_risk(read_cdm(data)) for data in (conjunction(secondary), conjunction(secondary, position_only))
    )
    assert "velocity_covariance_missing" not in whole.flags
    assert "velocity_covariance_missing" in bare.flags
    assert (bare.pc, bare.method, bare.valid_2d) == (bare.pc_2d, FOSTER, None)
    assert bare.pc_2d is not None
    assert bare.pc_2d == pytest.approx(whole.pc_2d, rel=1e-12)
    assert bare.risk == str(risk_level(bare.pc_2d))
    assert bare.risk != "green"


@pytest.mark.parametrize("change", [one_object, in_track_only, rank_one, zero])
@pytest.mark.parametrize("secondary", ["000026980", "000041740", "000039477"])
def test_a_singular_covariance_is_a_row_with_a_flag_A3(secondary: str, change: Change) -> None:
    (row,) = decoded(conjunction(secondary, change))
    assert row["error_kind"] is None
    assert row["is_2d_valid"] is None
    assert "covariance_missing" in row["risk_flags"].split(",")
    assert row["recomputed_probability"] == row["probability_2d"] is not None


def test_overflowing_covariances_are_rows_between_sound_ones_A3() -> None:
    def overflowing(variance: float) -> bytes:
        return conjunction("000026980", lambda covariance, _: covariance + np.diag([0, 0, 0, variance, 0, 0]))

    sound = conjunction("000041740")
    before, beyond_size, large, after = decoded(sound, overflowing(1e300), overflowing(1e10), sound)
    assert (beyond_size["error_kind"], beyond_size["risk"]) == ("out_of_range", None)
    assert (large["risk"], large["risk_flags"], large["recomputed_probability"]) == ("unknown", "unusable_input", None)
    assert before["risk"] == after["risk"] == "red"


def test_a_message_that_fails_in_computation_is_a_dead_letter_of_its_own_A3(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(message: Any) -> Any:
        if message.fields["MESSAGE_ID"].startswith("1-"):
            raise np.linalg.LinAlgError("Singular matrix")
        return message_risk(message)

    monkeypatch.setattr(cdm_decoding, "message_risk", failing)
    data = messages_of([Told(pair=(1, 2)), Told(pair=(3, 4))])
    failed, sound = rows_of(data)
    assert failed["error"] == "cannot be assessed: LinAlgError: Singular matrix"
    assert (failed["error_kind"], sound["error_kind"]) == ("bad_field", None)
