"""`sda convert`: files of people from one format to another, and what cannot be converted, in one line."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform_tests.support.messages import MESSAGES, comparable, record_format, values_and_errors


def sda_convert(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["convert", *map(str, arguments)])


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["oem_g13.kvn", "opm_g4.kvn", "tdm_e22.kvn", "omm_g9.kvn"])
def test_a_message_there_and_back_is_the_same_message(tmp_path: Path, name: str) -> None:
    kind = name.partition("_")[0]
    there = sda_convert(put(tmp_path, name, MESSAGES[name]), "--to", "xml", "--out", tmp_path / "there.xml")
    assert there.exit_code == 0, there.output
    back = sda_convert(tmp_path / "there.xml", "--to", "kvn", "--out", tmp_path / "back.kvn")
    assert back.exit_code == 0, back.output
    known = record_format(f"{kind}-kvn")
    before, after = (
        values_and_errors(data, known)[0] for data in (MESSAGES[name], (tmp_path / "back.kvn").read_bytes())
    )
    assert comparable(after) == comparable(before)


def test_element_sets_become_lines_csv_and_json_and_a_packed_file_is_read(tmp_path: Path) -> None:
    path = put(tmp_path, "goes.kvn.gz", gzip.compress(MESSAGES["omm_g9.kvn"]))
    lines = sda_convert(path, "--to", "tle").output.splitlines()
    assert lines[0] == "GOES 9"
    assert [line[:7] for line in lines[1:]] == ["1 23581", "2 23581"]
    assert json.loads(sda_convert(path, "--to", "json").output)[0]["NORAD_CAT_ID"] == 23581
    assert (
        sda_convert(path, "--to", "omm-csv").output.splitlines()[1].startswith("GOES 9,1995-025A,2020-03-04T10:34:41")
    )


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        (
            "oem_g13.kvn",
            ["--to", "tle"],
            "oem-kvn holds ephemeris records, tle element set records",
        ),
        ("oem_g13.kvn", ["--to", "sgml"], "there is no format 'sgml'; the formats are radar-frames"),
        ("OMM-wrong-keyword.txt", ["--to", "csv"], "record 0, line 9: WRONG_KEYWORD is no keyword of an OMM"),
        ("TDM-data-wrong-keyword.txt", ["--to", "xml"], "--skip-bad converts the other 5 records"),
        ("TDM-external-doctype.xml", ["--to", "kvn"], "it does not begin like any of omm-xml"),
    ],
)
def test_what_cannot_be_converted_ends_in_one_line_with_the_reason(
    tmp_path: Path, name: str, arguments: list[str], reason: str
) -> None:
    answer = sda_convert(put(tmp_path, name, MESSAGES[name]), *arguments)
    assert answer.exit_code == 1
    assert reason in answer.output
    assert "Traceback" not in answer.output


def test_bad_records_are_left_out_and_listed_where_that_is_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tdm", MESSAGES["TDM-data-wrong-keyword.txt"])
    answer = sda_convert(path, "--to", "xml", "--skip-bad", "--out", tmp_path / "a.xml")
    assert "left out: record 3, line 26: WRONG_KEYWORD is no keyword of tracking data" in answer.output
    assert "5 records written" in answer.output
