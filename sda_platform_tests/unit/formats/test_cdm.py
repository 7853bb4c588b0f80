"""Conjunction data messages (CCSDS 508.0): one record from both encodings, a reason for whatever is none."""

import ast
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from sda_platform.formats import cdm_keywords as keywords
from sda_platform.formats.cdm import Encoding, read_cdm
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.errors import RecordError
from sda_platform.formats.keywords import Keyword

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
        (changed(r"^Y_DOT .*\n", "Y_DOT = fast [km/s]\n"), "OBJECT1: Y_DOT is 'fast [km/s]', must be a number"),
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


def parameters() -> dict[str, set[str]]:
    """Keywords of each element of the NDM XML schema, as an independent binding has them."""
    stub = (resources.files("ccsds_ndm") / "__init__.pyi").read_text()
    return {
        node.name: {argument.arg.upper() for argument in init.args.args} - {"SELF", "COMMENT"}
        for node in ast.parse(stub).body
        if isinstance(node, ast.ClassDef)
        for init in node.body
        if isinstance(init, ast.FunctionDef) and init.name == "__init__"
    }


@pytest.mark.parametrize(
    ("element", "ours"),
    [
        ("CdmHeader", keywords.HEADER),
        ("CdmMetadata", keywords.METADATA),
        *zip(("OdParameters", "AdditionalParameters", "CdmStateVector"), [g for _, g in keywords.DATA], strict=False),
        ("CdmCovarianceMatrix", keywords.DATA[3][1]),
    ],
)
def test_no_keyword_of_the_schema_is_missing_A6(element: str, ours: tuple[Keyword, ...]) -> None:
    assert {keyword.name for keyword in ours} == parameters()[element]


def test_no_keyword_of_the_encounter_is_missing_A6() -> None:
    # The binding has relative position and velocity as vectors, and a unit where the schema has an attribute.
    theirs = parameters()["RelativeMetadataData"] - {"RELATIVE_POSITION", "RELATIVE_VELOCITY", "MISS_DISTANCE_UNIT"}
    of_vectors = {f"RELATIVE_{vector}_{axis}" for vector in ("POSITION", "VELOCITY") for axis in "RTN"}
    assert {keyword.name for _, group in keywords.RELATIVE for keyword in group} == theirs | of_vectors


@pytest.mark.parametrize("keyword", ["AREA_DRG", "AREA_SRP"])
def test_a_message_with_the_areas_of_the_schema_is_read_in_both_encodings_A6(keyword: str) -> None:
    xml = (DATA / "leo_debris.xml").read_text().replace("<MASS", f'<{keyword} units="m**2">3.1</{keyword}>\n<MASS', 1)
    for data in (xml.encode(), changed(r"^MASS", f"{keyword} = 3.1 [m**2]\nMASS")):
        assert read_cdm(data).objects[0].fields[keyword] == "3.1"


def test_an_xml_message_of_version_2_is_read_like_one_in_kvn_A6() -> None:
    newer = "<CLASSIFICATION>none</CLASSIFICATION>\n</header>"
    user = '<USER_DEFINED parameter="A">1</USER_DEFINED>\n<USER_DEFINED parameter="B">2</USER_DEFINED>\n<stateVector>'
    xml = (DATA / "leo_debris.xml").read_text().replace("</header>", newer).replace("<stateVector>", user)
    with pytest.raises(RecordError, match="CLASSIFICATION is no keyword of the message"):
        read_cdm(xml.encode())
    message = read_cdm(xml.replace('version="1.0">', 'version="2.0">').encode())
    assert message.fields["CLASSIFICATION"] == "none"
    assert [message.objects[0].fields[f"USER_DEFINED_{name}"] for name in "AB"] == ["1", "2"]


@pytest.mark.parametrize("name", ["Exclusion Volume Radius", "EXCLUSION_VOLUME_RADIUS"])
def test_the_exclusion_volume_radius_and_the_area_of_an_object_are_read_A7(name: str) -> None:
    message = read_cdm(changed(r"^REF_FRAME", f"COMMENT {name} = 5.000000 [m]\nREF_FRAME"))
    first, second = message.objects
    assert (first.exclusion_volume_radius_m, first.hard_body_radius_m, first.area_pc_m2) == (5.0, None, 5.2)
    assert (second.exclusion_volume_radius_m, second.area_pc_m2) == (None, 0.9)
    assert read_cdm(changed(r"^AREA_PC .*$", "AREA_PC = 0 [m**2]")).objects[0].area_pc_m2 is None


def test_a_keyword_unknown_to_the_first_issue_is_let_pass_in_a_later_one() -> None:
    newer = KVN.replace("CCSDS_CDM_VERS = 1.0", "CCSDS_CDM_VERS = 2.0").replace("= 1.0\n", "= 2.0\n", 1)
    assert read_cdm(newer.replace("MESSAGE_FOR", "SOMETHING_NEW").encode()).miss_distance_m == 715
