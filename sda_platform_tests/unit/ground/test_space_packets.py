"""Commands and reports as space packets: others read them by the page alone, and no bytes do harm."""

import re
import struct
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacepackets.ccsds.time import CdsShortTimestamp
from spacepackets.ecss import PusTc, PusTm, RequestId
from spacepackets.ecss.pus_1_verification import ManagedParamsVerification, Service1Tm, VerificationParams
from spacepackets.ecss.tm import ManagedParams

from sda_platform.ground.cds_times import cds_time, unix_time_ns
from sda_platform.ground.space_packets import (
    SUBTYPES,
    Code,
    RefusedCommand,
    UnusablePacket,
    decode_command,
    encode_command,
)
from sda_platform.ground.verification import Report, answer_of, decode_reports, encode_reports, reports_of
from sda_platform_tests.support.station_packets import COMMAND, packet

PAGE = Path(__file__).parents[3] / "docs/reference/space-packets.md"
APID = 100
REPOINT: dict[str, Any] = {"kind": "REPOINT", "azimuth_deg": 271.5, "elevation_deg": 30.25}
AT_NS = 1_732_982_400_123_456_789
TIMES_NS = {"accepted": AT_NS, "started": AT_NS + 1, "finished": AT_NS + 1_500_000_000}


def crc(data: bytes) -> int:
    """CRC-16/CCITT bit by bit, as the page states it."""
    value = 0xFFFF
    for bit in (byte >> at & 1 for byte in data for at in range(7, -1, -1)):
        value = (value << 1 & 0xFFFF) ^ (0x1021 if (value >> 15) ^ bit else 0)
    return value


def by_the_page(heading: str, data: bytes, absent: str) -> dict[str, Any]:
    """Read a packet as the table under ``heading`` states: an engineer's decoder, without a library.

    Rows that have ``absent`` in their field are left out; what follows them moves forward.
    """
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+|end) \| (.*) \| (\S+(?: bytes)?) \|$", section, re.MULTILINE)
    sizes = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f64": 8, "11 bytes": 11}
    found, at, stated = dict[str, Any](), 0, 0
    for offset, field, kind in rows:
        assert offset in (str(stated), "end"), f"{field}: the offsets add up"
        stated += sizes.get(kind, 0)
        if absent in field:
            continue
        size = len(data) - 2 - at if kind == "text" else sizes[kind]
        part, at = data[at : at + size], at + size
        if kind == "f64":
            found[field] = struct.unpack(">d", part)[0]
        else:
            found[field] = int.from_bytes(part) if kind.startswith("u") else part
    assert at == len(data)
    return {re.split(r"[:,] ", field)[0].split(" of ")[0]: value for field, value in found.items()}


@pytest.mark.parametrize("kind", SUBTYPES)
def test_an_engineer_reads_a_command_by_the_page_alone__46_3(kind: str) -> None:
    command = {**COMMAND, **(REPOINT if kind == "REPOINT" else {"kind": kind}), "command_id": "aae1-é", "token": 7}
    data, request_id = encode_command({**command, "expires_time_ns": AT_NS}, 0x123, 0x2ABC)
    read = by_the_page("Telecommand", data, "\n" if kind == "REPOINT" else "`REPOINT` alone")
    assert list(read.values())[:3] == [0x1800 | 0x123, 0xC000 | 0x2ABC, len(data) - 7]
    assert request_id == int.from_bytes(data[:4])
    assert (read["PUS version 2"], read["service"], read["subtype"], read["source"]) == (0x2F, 128, SUBTYPES[kind], 1)
    assert (read["fencing token"], read["command id"].decode()) == (7, "aae1-é")
    assert (read.get("azimuth from north by east"), read.get("elevation")) == (
        (271.5, 30.25) if kind == "REPOINT" else (None, None)
    )
    p_field, days, ms, ps = struct.unpack(">BHII", read["expiry"])
    assert p_field == 0x42
    since_1958_s = datetime.fromtimestamp(AT_NS // 10**9, UTC) - datetime(1958, 1, 1, tzinfo=UTC)
    assert days * 86_400_000 + ms == since_1958_s.total_seconds() * 1000 + 123
    assert ps == 456_789_000
    assert read["CRC-16/CCITT over all before"] == crc(data[:-2])


def test_an_engineer_reads_reports_by_the_page_alone__46_3() -> None:
    answer = {"outcome": "failed", "times_ns": TIMES_NS, "reason": "the drive does not move"}
    packets = encode_reports(reports_of(answer, 0x1864C000, 0), APID, count(5), 2)
    sizes = [int.from_bytes(packets[4:6]) + 7] * 2
    parts = [packets[: sizes[0]], packets[sizes[0] : sum(sizes)], packets[sum(sizes) :]]
    read = [by_the_page("Report", part, "failures alone") for part in parts[:2]]
    read.append(by_the_page("Report", parts[2], "\n"))
    assert [each["subtype"] for each in read] == [1, 3, 8]
    assert [list(each.values())[1] & 0x3FFF for each in read] == [5, 6, 7]
    assert {(each["service"], each["destination"], each["request id"]) for each in read} == {(1, 2, 0x1864C000)}
    assert [each["time"] for each in read] == [cds_time(each) for each in TIMES_NS.values()]
    assert (read[2]["failure code"], read[2]["reason"]) == (32, b"the drive does not move")
    assert [each["CRC-16/CCITT"] for each in read] == [crc(part[:-2]) for part in parts]


def test_the_library_alone_reads_both__46_3() -> None:
    read = PusTc.unpack(packet(9, command_id="once"))
    assert (read.service, read.message_subtype, read.apid, read.seq_count) == (128, 1, APID, 9)
    assert bytes(read.app_data)[-4:] == b"once"
    packets = encode_reports(reports_of({"outcome": "executed", "times_ns": TIMES_NS}, 5, 0), APID, count())
    for begin, subtype in zip((0, 30, 60), (1, 3, 7), strict=True):
        report = Service1Tm.from_tm(
            PusTm.unpack_generic(packets[begin : begin + 30], ManagedParams(11)), ManagedParamsVerification(2)
        )
        assert (report.message_subtype, report.tc_req_id.as_u32()) == (subtype, 5)
        moment = CdsShortTimestamp.unpack(report.timestamp).as_datetime()
        assert abs(moment.timestamp() - AT_NS / 1e9) < 1.6


@given(
    kind=st.sampled_from(list(SUBTYPES)),
    command_id=st.text(min_size=1, max_size=60),
    token=st.integers(0, 2**63 - 1),
    expires_time_ns=st.integers(0, 5 * 10**18),
    sender=st.sampled_from(["primary", "backup"]),
    azimuth_deg=st.floats(0, 360),
    elevation_deg=st.floats(0, 90),
    sequence_count=st.integers(0, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_a_command_arrives_as_it_was_sent__46_3(sequence_count: int, **command: Any) -> None:
    if command["kind"] != "REPOINT":
        command |= {"azimuth_deg": None, "elevation_deg": None}
    data, request_id = encode_command(command, APID, sequence_count)
    assert decode_command(data, APID) == {**command, "request_id": request_id}


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_are_taken_for_a_command_or_a_report(data: bytes) -> None:
    with pytest.raises(UnusablePacket):
        decode_command(data, APID)
    if data:
        with pytest.raises(UnusablePacket):
            decode_reports(data, APID)


@given(st.binary(max_size=80), st.integers(0, 255), st.integers(0, 255), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_fields_under_a_right_checksum_are_answered(data: bytes, service: int, subtype: int, is_ours: bool) -> None:
    """As from a ground system with another dictionary."""
    sent = bytes(
        PusTc(128 if is_ours else service, subtype % 8 if is_ours else subtype, apid=APID, app_data=data).pack()
    )
    try:
        assert decode_command(sent, APID)["command_id"]
    except RefusedCommand as refusal:
        assert refusal.request_id == int.from_bytes(sent[:4])
        assert str(refusal)
    telemetry = PusTm(1 if is_ours else service, subtype, apid=APID, timestamp=cds_time(0), source_data=data)
    try:
        (report,) = decode_reports(bytes(telemetry.pack()), APID)
        assert report.subtype in (1, 2, 3, 4, 7, 8)
    except UnusablePacket as refusal:
        assert str(refusal)


def test_every_flipped_bit_is_refused__46_3() -> None:
    data = packet(command_id="flipped", **REPOINT)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(UnusablePacket):
            decode_command(bytes(changed), APID)


def resealed(data: bytes) -> bytes:
    return data[:-2] + crc(data[:-2]).to_bytes(2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are no packet"),
        (packet()[:-1], "the packet states 33 bytes, and 32 came"),
        (packet() + b"\0", "the packet states 33 bytes, and 34 came"),
        (packet()[:-2] + b"\0\0", "the checksum of the packet is wrong"),
        (encode_command(COMMAND, 101, 0)[0], "APID 101 is not that of the station, 100"),
        (resealed(b"\x08" + packet()[1:]), "no whole TC packet"),
        (resealed(packet()[:2] + b"\x40" + packet()[3:]), "no whole TC packet"),
        (resealed(packet()[:6] + b"\x1f" + packet()[7:]), "PUS C"),
    ],
    ids=["empty", "cut", "longer", "checksum", "apid", "telemetry", "segment", "pus-a"],
)
def test_what_is_no_packet_is_refused_with_the_reason__46_3(data: bytes, reason: str) -> None:
    with pytest.raises(UnusablePacket, match=reason):
        decode_command(data, APID)


@pytest.mark.parametrize(
    ("service", "subtype", "data", "code", "reason"),
    [
        (17, 1, b"", Code.ILLEGAL_SERVICE, "service 17"),
        (128, 9, b"", Code.ILLEGAL_SUBTYPE, "subtype 9"),
        (128, 1, b"short", Code.ILLEGAL_DATA, "SAFE_MODE"),
        (128, 1, b"\xff" * 8 + cds_time(0) + b"c", Code.ILLEGAL_DATA, "2\\^63"),
        (128, 1, bytes(8) + b"\x30" + bytes(10) + b"c", Code.ILLEGAL_DATA, "P-field 0x30"),
        (128, 1, bytes(8) + b"\x42" + b"\xff" * 10 + b"c", Code.ILLEGAL_DATA, "outside of its day"),
        (128, 1, bytes(8) + cds_time(0), Code.ILLEGAL_DATA, "an id has 1 to 255 bytes"),
        (128, 1, bytes(8) + cds_time(0) + b"\xff", Code.ILLEGAL_DATA, "utf-8"),
        (128, 1, bytes(8) + cds_time(0) + b"c" * 256, Code.ILLEGAL_DATA, "not 256"),
        (128, 3, bytes(8) + cds_time(0) + struct.pack(">dd", 1.0, float("nan")) + b"c", Code.ILLEGAL_DATA, "elevation"),
    ],
)
def test_what_no_station_can_do_is_refused_with_a_report__46_3(
    service: int, subtype: int, data: bytes, code: Code, reason: str
) -> None:
    with pytest.raises(RefusedCommand, match=reason) as refusal:
        decode_command(bytes(PusTc(service, subtype, apid=APID, app_data=data).pack()), APID)
    assert refusal.value.code == code


@pytest.mark.parametrize("unix_ns", [0, AT_NS, -4383 * 86_400 * 10**9, 5_270_745_599_999_999_999, 86_400 * 10**9 - 1])
def test_a_time_is_kept_to_the_nanosecond(unix_ns: int) -> None:
    assert unix_time_ns(cds_time(unix_ns)) == unix_ns


def test_the_station_may_state_times_to_milliseconds() -> None:
    stated = CdsShortTimestamp.from_datetime(datetime(2024, 11, 30, 16, 0, 0, 125_000, UTC))
    assert unix_time_ns(stated.pack()) == 1_732_982_400_125_000_000
    report = Report(7, 5, 1_732_982_400_125_000_000)
    data = Service1Tm(APID, 7, stated.pack(), _about(5)).pack()
    assert decode_reports(bytes(data), APID) == [report]


def _about(request_id: int) -> VerificationParams:
    return VerificationParams(RequestId.unpack(request_id.to_bytes(4)))


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": "executed", "times_ns": TIMES_NS, "reason": ""},
        {"outcome": "failed", "times_ns": TIMES_NS, "reason": "the drive does not move"},
        {"outcome": "repeated", "times_ns": TIMES_NS, "reason": "", "first_request_id": 3},
        {"outcome": "failed", "times_ns": TIMES_NS, "reason": "no", "first_request_id": 3},
        {"outcome": "lost", "times_ns": {"accepted": AT_NS}, "reason": "", "first_request_id": 3},
        {"outcome": "lost", "times_ns": {}, "reason": "", "first_request_id": 3},
        {"outcome": "expired", "times_ns": {"finished": AT_NS}, "reason": ""},
        {"outcome": "stale_sender", "times_ns": {"finished": AT_NS}, "reason": ""},
    ],
)
def test_an_answer_arrives_as_the_station_gave_it__46_3(answer: dict[str, Any]) -> None:
    sent = encode_reports(reports_of(answer, 9, AT_NS), APID, count())
    read = answer_of(decode_reports(sent, APID), 9)
    answer.pop("first_request_id", None)
    assert read == answer


def test_reports_of_another_command_or_of_none_are_no_answer() -> None:
    executed = reports_of({"outcome": "executed", "times_ns": TIMES_NS}, 9, AT_NS)
    for reports, request_id in ((executed, 8), ([], 9), ([*executed[:2], Report(7, 8, AT_NS)], 9)):
        with pytest.raises(UnusablePacket):
            answer_of(reports, request_id)
    assert answer_of(executed[:2], 9)["outcome"] == "under_way"
    with pytest.raises(UnusablePacket, match="at most 16"):
        decode_reports(encode_reports([*executed] * 6, APID, count()), APID)
