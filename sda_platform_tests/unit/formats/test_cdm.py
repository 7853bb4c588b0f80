"""Conjunction data messages (CCSDS 508.0): one record from both encodings, a reason for whatever is none."""

import re
from pathlib import Path

import numpy as np
import pytest

from sda_platform.formats.cdm import Encoding, read_cdm
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.errors import RecordError

DATA = Path(__file__).parents[2] / "data" / "cdm"
KVN = (DATA / "leo_debris.kvn").read_text()


def changed(pattern: str, replacement: str, count: int = 1) -> bytes:
    text, found = re.subn(pattern, replacement, KVN, count=count, flags=re.MULTILINE)
    assert found
    return text.encode()


def test_the_standards_example_reads_alike_from_kvn_and_xml() -> None:
    kvn, xml = (read_cdm((DATA / name).read_bytes()) for name in ("leo_debris.kvn", "leo_debris.xml"))
    assert kvn.tca_time_ns == xml.tca_time_ns == 1_268_519_872_618_000_000
    assert kvn.miss_distance_m == xml.miss_distance_m == 715
    for ours, theirs in zip(kvn.objects, xml.objects, strict=True):
        assert ours.frame == theirs.frame == "EME2000"
        assert ours.fields["OBJECT_NAME"] == theirs.fields["OBJECT_NAME"]
        np.testing.assert_array_equal(ours.position_km, theirs.position_km)
        np.testing.assert_array_equal(ours.velocity_km_s, theirs.velocity_km_s)
        np.testing.assert_array_equal(ours.covariance_rtn, theirs.covariance_rtn)


def test_states_and_covariances_are_kilometres_whatever_unit_is_given() -> None:
    first = read_cdm(KVN.encode()).objects[0]
    np.testing.assert_allclose(first.position_km, [2570.097065, 2244.654904, 6281.497978])
    np.testing.assert_allclose(first.velocity_km_s, [4.418769571, 4.833547743, -3.526774282])
    np.testing.assert_allclose(np.diagonal(first.covariance_rtn)[:4] * 1e6, [41.42, 2533, 70.98, 5.744e-3])
    np.testing.assert_array_equal(first.covariance_rtn, first.covariance_rtn.T)
    metres = read_cdm(changed(r"^X .*$", "X = 2570097.065 [m]")).objects[0]
    np.testing.assert_allclose(metres.position_km, first.position_km)


@pytest.mark.parametrize("encoding", ["kvn", "xml"])
def test_a_message_survives_being_written_in_either_encoding(encoding: Encoding) -> None:
    before = read_cdm(KVN.encode())
    again = read_cdm(encode_cdm(before, encoding))
    assert {k: v for k, v in before.fields.items() if k != "CCSDS_CDM_VERS"}.items() <= again.fields.items()
    for ours, theirs in zip(before.objects, again.objects, strict=True):
        assert ours.fields.keys() == theirs.fields.keys()
        assert ours.fields["OBJECT_NAME"] == theirs.fields["OBJECT_NAME"]
        np.testing.assert_allclose(theirs.position_km, ours.position_km, rtol=1e-14)
        np.testing.assert_allclose(theirs.covariance_rtn, ours.covariance_rtn, rtol=1e-14)


@pytest.mark.parametrize(
    ("comment", "whole_m", "object_m"),
    [
        ("HBR = 7 [m]", 7.0, None),
        ("HBR                        = 20.0", 20.0, None),
        ("HBR [m] = 5", 5.0, None),
        ("Hard Body Radius: 0.012 [km]", 12.0, None),
        ("Operator Hard Body Radius = 3.5 [m]", 3.5, None),
        ("the HBR is not known", None, None),
    ],
)
def test_the_hard_body_radius_is_read_from_a_comment(comment: str, whole_m: float, object_m: float) -> None:
    before_objects = changed(r"^OBJECT  .*OBJECT1", rf"COMMENT {comment}\nOBJECT = OBJECT1")
    assert read_cdm(before_objects).hard_body_radius_m == whole_m
    within_object = read_cdm(changed(r"^REF_FRAME", rf"COMMENT {comment}\nREF_FRAME"))
    assert within_object.hard_body_radius_m is None
    assert within_object.objects[0].hard_body_radius_m == whole_m
    assert within_object.objects[1].hard_body_radius_m is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (changed(r"^TCA .*\n", ""), "TCA of the message is missing"),
        (changed(r"^TCA .*\n", "TCA = yesterday\n"), "TCA is 'yesterday', must be like"),
        (
            changed(r"^TCA .*\n", "TCA = 9999-12-31T00:00:00\n"),
            "TCA is '9999-12-31T00:00:00', must be from 1957",
        ),
        (changed(r"^X .*\n", ""), "X of OBJECT1 is missing"),
        (changed(r"^CN_N .*\n", "CN_N = NaN [m**2]\n"), "OBJECT1: CN_N is 'NaN', must be finite"),
        (changed(r"^Y_DOT .*\n", "Y_DOT = fast [km/s]\n"), "OBJECT1: Y_DOT is 'fast', must be a number"),
        (changed(r"^Z .*\n", "Z = 5 [ft]\n"), "OBJECT1: Z is in 'ft', must be in km or m"),
        (changed(r"^REF_FRAME .*\n", "REF_FRAME = MOON\n"), "REF_FRAME is 'MOON', must be one of EME2000"),
        (changed(r"^MISS_DISTANCE", "MIST_DISTANCE"), "line 8: MIST_DISTANCE is no keyword of the message"),
        (changed(r"^(X .*\n)", r"\1\1"), "X of OBJECT1 is given twice"),
        (changed(r"^OBJECT .*OBJECT2", "COMMENT gone"), "is given twice"),
        (changed(r"^REF_FRAME", "COMMENT HBR = 0 [m]\nREF_FRAME"), "OBJECT1: its hard-body radius is 0 m"),
        ((KVN + "\n" + KVN).encode(), "holds 2 messages, must be one"),
        (b"", "holds no conjunction data message"),
        (b"CCSDS_OMM_VERS = 2.0\n", "begins with CCSDS_OMM_VERS, not CCSDS_CDM_VERS"),
        (b"<cdm><TCA>", "cannot be read as XML"),
        (b"<omm/>", "holds no conjunction data message"),
        (b"<cdm/>", "has 0 sections that begin with OBJECT, must have two"),
    ],
)
def test_what_cannot_be_assessed_is_refused_with_the_place_and_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(RecordError, match=re.escape(reason)):
        read_cdm(data)


def test_a_keyword_unknown_to_the_first_issue_is_let_pass_in_a_later_one() -> None:
    newer = KVN.replace("CCSDS_CDM_VERS = 1.0", "CCSDS_CDM_VERS = 2.0").replace("= 1.0\n", "= 2.0\n", 1)
    assert read_cdm(newer.replace("MESSAGE_FOR", "SOMETHING_NEW").encode()).miss_distance_m == 715
