"""`sda pc`: the risk of a conjunction data message, in words and as JSON, and one clear line where there is none."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.analysis.pc import risk_of_file
from sda_platform.cli.main import main
from sda_platform.formats.cdm_writing import encode_cdm
from sda_platform.formats.conversion import converted
from sda_platform_tests.support.received_cdms import Told

DATA = Path(__file__).parents[2] / "data" / "cdm"


def sda_pc(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pc", *arguments])


def test_json_has_the_best_and_the_2d_probability_with_their_validity() -> None:
    answer = sda_pc("--cdm", str(DATA / "leo_debris.kvn"), "--hbr-m", "20", "--json")
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.output)
    # Foster's integral over the published states and position covariances.
    assert found["pc"] == found["pc_2d"] == pytest.approx(4.74279e-7, rel=1e-5)
    assert (found["method"], found["valid_2d"], found["risk"]) == ("FOSTER-1992", False, "yellow")
    # The example's covariances are indefinite with their velocities, so that no other method can be had.
    assert found["flags"] == ["curved_motion", "indefinite_velocity_covariance", "unresolved_encounter"]
    assert found["miss_km"] == pytest.approx(0.7158, abs=1e-4)
    assert found["hard_body_radius_source"] == "option, combined radius"
    assert found["pc_in_message"] == 4.835e-5


def test_words_tell_the_radius_that_was_assumed_and_what_each_flag_means(tmp_path: Path) -> None:
    message, path = Told(sigma_km=90.0).cdm(), tmp_path / "wide.xml"
    kinds = zip(message.objects, ("PAYLOAD", "DEBRIS"), strict=True)
    first, second = (replace(each, fields={**each.fields, "OBJECT_TYPE": kind}) for each, kind in kinds)
    message = replace(message, objects=(first, second), hard_body_radius_m=None, comments=())
    path.write_bytes(encode_cdm(message, "xml"))
    answer = sda_pc("--cdm", str(path))
    assert answer.exit_code == 0, answer.output
    assert "5.5 m (object 1: 5 m assumed for payload; object 2: 0.5 m assumed for debris)" in answer.output
    assert "extended_encounter: the encounter is long" in answer.output
    assert "2D Pc 1.314e-10, does not hold here, so it does not count" in answer.output


def test_a_file_that_is_no_message_is_one_line_with_its_name_and_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "broken.kvn"
    path.write_text((DATA / "leo_debris.kvn").read_text().replace("MISS_DISTANCE", "MIST_DISTANCE"))
    answer = sda_pc("--cdm", str(path))
    assert answer.exit_code == 1
    assert answer.output == f"Error: {path}: line 8: MIST_DISTANCE is no keyword of the message\n"
    assert sda_pc("--cdm", str(tmp_path / "none")).output == f"Error: {tmp_path / 'none'}: No such file or directory\n"


def test_a_radius_of_nothing_is_refused() -> None:
    assert sda_pc("--cdm", str(DATA / "leo_debris.kvn"), "--hbr-m", "0").exit_code == 2


def test_a_compressed_message_and_one_in_json_are_read_as_the_plain_one(tmp_path: Path) -> None:
    plain = Path(__file__).parents[2] / "data" / "field" / "057-cdm-kilometres-relabelled.cdm"
    packed, json_file = tmp_path / "in.cdm.gz", tmp_path / "in.json"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    json_file.write_bytes(converted(plain.read_bytes(), "cdm-kvn", "cdm-json").data)
    expected = risk_of_file(plain, 5.0)
    for path in (packed, json_file):
        found = risk_of_file(path, 5.0)
        assert found.pc == pytest.approx(expected.pc)
        assert found.miss_km == pytest.approx(expected.miss_km)
