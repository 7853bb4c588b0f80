"""Messages in KVN and XML carry the same element sets as in CSV; what is none gives the reason."""

from pathlib import Path

import pyarrow as pa
import pytest

from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.errors import RecordError
from sda_platform.formats.ndm import KeywordEntry, kvn_messages, xml_messages

DATA = Path(__file__).parents[2] / "data" / "omm"
ENTITIES = b'<!DOCTYPE omm [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><omm><EPOCH>&b;</EPOCH></omm>'


def read(name: str) -> pa.Table:
    data, encoding = (DATA / name).read_bytes(), Path(name).suffix[1:]
    return decode_element_sets(data, segment_format=f"omm-{encoding}").drop(["payload", "originator"])


def test_one_element_set_reads_alike_from_csv_and_xml() -> None:
    assert read("sample_omm.csv").num_rows == 1
    assert read("sample_omm.csv") == read("sample_omm.xml")


def test_the_standards_example_reads_alike_from_kvn_and_xml_with_its_epoch_by_day_of_year() -> None:
    kvn, xml = (read(name).drop(["object_name", "classification"]) for name in ("omm_g7.kvn", "omm_g10.xml"))
    assert kvn == xml
    assert kvn.column("error").to_pylist() == [None]
    assert kvn.column("norad_id").to_pylist() == [23581]
    # 2020-064 is the fourth of March.
    assert kvn.column("epoch_time_ns").to_pylist() == [1_583_318_081_426_400_000]


def test_a_file_of_several_messages_gives_each() -> None:
    one = (DATA / "omm_g7.kvn").read_bytes()
    assert len(list(kvn_messages(one + b"\n" + one))) == 2
    body = (DATA / "sample_omm.xml").read_bytes()
    start, end = body.index(b"<omm"), body.index(b"</omm>") + 6
    assert len(list(xml_messages(body[:end] + body[start:end] + body[end:], "omm"))) == 2


@pytest.mark.parametrize(
    ("data", "encoding", "reason"),
    [
        (b"EPOCH = 2024-11-01T00:00:00", "kvn", "line 1: a message begins with CCSDS_…_VERS, not with EPOCH"),
        (b"CCSDS_OMM_VERS = 2.0\nnonsense", "kvn", "line 2 is not KEYWORD = VALUE: 'nonsense'"),
        (b"\xff\xfe", "kvn", "is not UTF-8 text"),
        (b"<omm><EPOCH></omm>", "xml", "cannot be read as XML"),
        (ENTITIES, "xml", "cannot be read as XML"),
    ],
)
def test_text_that_is_no_message_is_refused_with_the_reason(data: bytes, encoding: str, reason: str) -> None:
    with pytest.raises(RecordError, match=reason.replace("(", r"\(")):
        list(kvn_messages(data) if encoding == "kvn" else xml_messages(data, "omm"))


def test_brackets_in_a_name_are_no_unit() -> None:
    (message,) = kvn_messages(b"CCSDS_OMM_VERS = 3.0\nOBJECT_NAME = STARLINK-11072 [DTC]\nMASS = 5.0 [kg]\nX=[km]\n")
    assert [(entry.value, entry.unit) for entry in message[1:]] == [
        ("STARLINK-11072 [DTC]", ""),
        ("5.0", "kg"),
        ("", "km"),
    ]


def test_values_come_apart_from_their_units_and_comments_are_kept_apart() -> None:
    text = b"CCSDS_CDM_VERS = 1.0\nCOMMENT HBR [m] = 5\nMISS_DISTANCE = 715 [m]\n"
    assert list(kvn_messages(text)) == [
        [
            KeywordEntry("CCSDS_CDM_VERS", "1.0", "", "line 1"),
            KeywordEntry("COMMENT", "HBR [m] = 5", "", "line 2"),
            KeywordEntry("MISS_DISTANCE", "715", "m", "line 3"),
        ]
    ]
    (message,) = xml_messages(b"<cdm><MISS_DISTANCE units='m'>715</MISS_DISTANCE></cdm>", "cdm")
    assert message == [KeywordEntry("MISS_DISTANCE", "715", "m", "line 1")]
