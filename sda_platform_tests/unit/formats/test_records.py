"""Cutting segments into records: nothing raised, nothing lost, torn tails told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.cutting import split_records
from sda_platform.formats.framing.container import MAX_PAYLOAD_BYTES, pack_records
from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.registry import ZONES

FORMATS = sorted({name for names in ZONES.values() for name in names})
times = st.integers(0, 2**63 - 1)


@given(st.text("ab\n").map(str.encode), st.lists(st.integers(0, 20)), st.integers(1, 9))
def test_line_numbers_count_the_line_feeds_before_each_position(data: bytes, places: list[int], first: int) -> None:
    numbers, positions = LineNumbers(data, first), sorted(places)
    assert [numbers.at(each) for each in positions] == [first + data[:each].count(b"\n") for each in positions]


def test_line_numbers_are_asked_in_order() -> None:
    numbers = LineNumbers(b"a\nb")
    assert numbers.at(2) == 2
    with pytest.raises(ValueError, match="before 2"):
        numbers.at(1)


@given(st.lists(st.tuples(st.binary(max_size=100), times), max_size=20))
def test_container_gives_back_every_payload_and_its_time(records: list[tuple[bytes, int]]) -> None:
    data = pack_records([payload for payload, _ in records], [time for _, time in records])
    cut = [(r.payload, r.received_time_ns, r.error) for r in split_records(data, "radar-frames")]
    assert cut == [(payload, time, None) for payload, time in records]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=8), st.data())
def test_container_torn_anywhere_keeps_whole_records_and_shows_the_tail(
    payloads: list[bytes], draw: st.DataObject
) -> None:
    data = pack_records(payloads, range(len(payloads)))
    cut_at = draw.draw(st.integers(0, len(data)))
    ends = [len(pack_records(payloads[:n], range(n))) for n in range(len(payloads) + 1)]
    whole = sum(end <= cut_at for end in ends) - 1
    records = list(split_records(data[:cut_at], "isl-frames"))
    assert [r.payload for r in records[:whole]] == payloads[:whole]
    tail = records[whole:]
    if cut_at == ends[whole]:
        assert tail == []
    else:
        assert [(r.number, r.error_kind, r.payload) for r in tail] == [
            (whole, "torn_record", data[ends[whole] : cut_at])
        ]


def test_container_with_an_impossible_length_stops_there() -> None:
    data = pack_records([b"good"], [1]) + (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "little") + bytes(80_000)
    records = list(split_records(data, "radar-frames"))
    assert [r.error_kind for r in records] == [None, "torn_record"]
    assert "65537" in (records[1].error or "")


@pytest.mark.parametrize("segment_format", FORMATS)
@given(data=st.binary(max_size=400))
def test_any_bytes_can_be_cut_and_records_are_numbered_in_order(segment_format: str, data: bytes) -> None:
    numbers = [record.number for record in split_records(data, segment_format)]
    assert numbers == list(range(len(numbers)))


def test_a_segment_of_unknown_format_is_one_faulty_record() -> None:
    (record,) = split_records(b"abc", "avro")
    assert (record.payload, record.error_kind) == (b"abc", "unknown_format")
    assert "avro" in (record.error or "")


def test_json_lines_skip_blank_lines_and_keep_the_unterminated_last_one() -> None:
    records = list(split_records(b'{"a":1}\r\n\n  \n{"b":2}', "optical-jsonl"))
    assert [(r.number, r.payload) for r in records] == [(0, b'{"a":1}'), (1, b'{"b":2}')]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(json_values, max_size=6), st.sampled_from([None, 1]))
def test_json_array_elements_come_out_with_their_own_bytes(values: list[object], indent: int | None) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", errors="surrogatepass")
    records = list(split_records(data, "omm-json"))
    assert [record.error for record in records] == [None] * len(values)
    assert all(record.payload in data for record in records)
    assert [json.loads(r.payload.decode("utf-8", errors="surrogatepass")) for r in records] == values


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", []),
        ("[]", []),
        ('{"A": 1}', [None]),
        ('[{"A": 1}, {"B"', [None, "bad_json"]),
        ('[{"A": 1},', [None, "torn_record"]),
        ('[{"A": 1}', [None, "torn_record"]),
        ("[1] [2]", [None, "bad_json"]),
        ("nonsense", ["bad_json"]),
        ("[" * 100_000, ["bad_json"]),
    ],
)
def test_json_that_breaks_off_keeps_what_came_before(text: str, kinds: list[str | None]) -> None:
    assert [record.error_kind for record in split_records(text.encode(), "omm-json")] == kinds


def test_tle_lines_group_in_twos_and_threes_and_strays_are_torn() -> None:
    text = b"# comment\nISS\n1 00001U a\n2 00001 b\n1 A0002U\n2 A0002\n2     3 stray\nNAME ONLY\n1     4U half\n"
    cut = [(r.payload, r.error_kind) for r in split_records(text, "tle")]
    assert cut == [
        (b"ISS\n1 00001U a\n2 00001 b", None),
        (b"1 A0002U\n2 A0002", None),
        (b"2     3 stray", "torn_record"),
        (b"NAME ONLY\n1     4U half", "torn_record"),
    ]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"CCSDS_CDM_VERS=1\nA=1\n\nCCSDS_CDM_VERS=1\nA=2", [b"CCSDS_CDM_VERS=1\nA=1", b"CCSDS_CDM_VERS=1\nA=2"]),
        (b"\xef\xbb\xbfCCSDS_CDM_VERS=1\nCCSDS_OMM_VERS=1\n", [b"CCSDS_CDM_VERS=1", b"CCSDS_OMM_VERS=1"]),
        (b"COMMENT x\nCCSDS_CDM_VERS=1\nCOMMENT CCSDS_VERS\n", [b"COMMENT x\nCCSDS_CDM_VERS=1\nCOMMENT CCSDS_VERS"]),
        (b"A = 1\n", [b"A = 1"]),
        (b" \r\n", []),
    ],
)  # fmt: skip
def test_messages_in_kvn_are_cut_where_a_version_begins_a_line(data: bytes, found: list[bytes]) -> None:
    assert [record.payload for record in split_records(data, "cdm-kvn")] == found


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<?xml version='1.0'?><cdm id='x'>1</cdm>", [(b"<cdm id='x'>1</cdm>", None)]),
        (b"<ndm>\n<!-- <cdm> --><cdm>1</cdm><cdm>2</cdm ></ndm>", [(b"<cdm>1</cdm>", None), (b"<cdm>2</cdm >", None)]),
        (b"<ndm><cdm>1</cdm><omm>2</omm></ndm>", [(b"<cdm>1</cdm>", None), (b"<omm>2</omm>", "unknown_format")]),
        (b"<ndm><cdm>1</cdm><cdm>2</ndm>", [(b"<cdm>1</cdm>", None), (b"<cdm>2</ndm>", "torn_record")]),
        (b"not xml", [(b"not xml", "unknown_format")]),
        (b"</ndm>", []),
    ],
)  # fmt: skip
def test_messages_in_xml_are_cut_into_their_elements_and_what_is_none_is_reported(
    data: bytes, found: list[tuple[bytes, str | None]]
) -> None:
    assert [(r.payload, r.error_kind) for r in split_records(data, "cdm-xml")] == found
