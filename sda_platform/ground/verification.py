"""What a station reports of a command: telemetry of ECSS-PUS service 1 (request verification) as space packets.

The answer to a command is its reports, in the order of time. A repeated command is refused (1.2) as such, and the
reports of the first one follow as they were.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spacepackets.ccsds.spacepacket import PacketType
from spacepackets.ecss import PusTm, RequestId
from spacepackets.ecss.fields import PacketFieldU16
from spacepackets.ecss.pus_1_verification import (
    FailureNotice,
    ManagedParamsVerification,
    MessageSubtype,
    Service1Tm,
    VerificationParams,
)
from spacepackets.ecss.tm import PUS_TM_TIMESTAMP_OFFSET, ManagedParams

from sda_platform.ground.cds_times import cds_size, cds_time, unix_time_ns
from sda_platform.ground.space_packets import (
    SEQUENCE_COUNTS,
    Code,
    UnusablePacket,
    header_of,
)

_ACCEPTED, REFUSED = MessageSubtype.TM_ACCEPTANCE_SUCCESS, MessageSubtype.TM_ACCEPTANCE_FAILURE
_STARTED, _NOT_STARTED = MessageSubtype.TM_START_SUCCESS, MessageSubtype.TM_START_FAILURE
_COMPLETED, _FAILED = MessageSubtype.TM_COMPLETION_SUCCESS, MessageSubtype.TM_COMPLETION_FAILURE
_NAMES: Final = {_ACCEPTED: "accepted", _STARTED: "started"}
_KNOWN: Final = (*_NAMES, REFUSED, _NOT_STARTED, _COMPLETED, _FAILED)
_REFUSALS: Final = {Code.STALE_TOKEN: "stale_sender", Code.EXPIRED: "expired"}
_MOST_TEXT_BYTES: Final = 1_000
_MOST_REPORTS: Final = 16
_CODE_BYTES: Final = 2


@dataclass(frozen=True)
class Report:
    """One report on the packet ``request_id``; ``code`` and ``text`` are those of a failure."""

    subtype: int
    request_id: int
    time_ns: int
    code: int = 0
    text: str = ""

    @property
    def is_failure(self) -> bool:
        """Return whether something failed: PUS gives failures even subtypes."""
        return self.subtype % 2 == 0


def reports_of(answer: Mapping[str, Any], request_id: int, now_ns: int) -> list[Report]:
    """Return the reports of what a station answered to the packet ``request_id`` (`DurableStation.receive`)."""
    outcome, times_ns, first = answer["outcome"], answer.get("times_ns", {}), answer.get("first_request_id")
    if outcome == "stale_sender":
        return [Report(REFUSED, request_id, now_ns, Code.STALE_TOKEN, "a newer token was granted")]
    if outcome == "expired":
        return [Report(REFUSED, request_id, times_ns["finished"], Code.EXPIRED, "its time is over")]
    about = request_id if first is None else first
    found = [] if first is None else [Report(REFUSED, request_id, now_ns, Code.REPEATED, "the command is known")]
    found += [Report(subtype, about, times_ns[name]) for subtype, name in _NAMES.items() if name in times_ns]
    if outcome == "lost":
        text = "the station crashed before it had executed it"
        return [*found, Report(_FAILED if "started" in times_ns else _NOT_STARTED, about, now_ns, Code.LOST, text)]
    if outcome == "failed":
        return [*found, Report(_FAILED, about, times_ns["finished"], Code.EXECUTION_FAILED, answer["reason"])]
    return [*found, Report(_COMPLETED, about, times_ns["finished"])]


def answer_of(reports: Iterable[Report], request_id: int) -> dict[str, Any]:
    """Return the outcome of the packet ``request_id`` with the station's times. Raises UnusablePacket.

    The outcome is one of `DurableStation.receive`, or ``under_way`` where the station has not reported an end.
    """
    found = list(reports)
    if not found or found[0].request_id != request_id:
        raise UnusablePacket("the station reports nothing of the command that was sent")
    is_repeated = found[0].subtype == REFUSED and found[0].code == Code.REPEATED
    found = found[1:] if is_repeated else found
    if len({each.request_id for each in found}) > 1:
        raise UnusablePacket("the reports are of several commands")
    times_ns = {_NAMES[each.subtype]: each.time_ns for each in found if each.subtype in _NAMES}
    if not found or found[-1].subtype in _NAMES:
        return {"outcome": "under_way", "times_ns": times_ns, "reason": ""}
    last = found[-1]
    if last.code == Code.LOST:
        return {"outcome": "lost", "times_ns": times_ns, "reason": ""}
    times_ns["finished"] = last.time_ns
    outcome = "repeated" if is_repeated else "executed"
    if last.is_failure:
        outcome = _REFUSALS.get(last.code, "failed") if last.subtype == REFUSED else "failed"  # type: ignore[call-overload]
    reason = (last.text or f"failure code {last.code}") if outcome == "failed" else ""
    return {"outcome": outcome, "times_ns": times_ns, "reason": reason}


def encode_reports(reports: Iterable[Report], apid: int, counts: Iterator[int], destination: int = 0) -> bytes:
    """Return the packets of ``reports``, one after the other; ``counts`` numbers the packets of the station."""
    return b"".join(_encoded(each, apid, next(counts) % SEQUENCE_COUNTS, destination) for each in reports)


def _encoded(report: Report, apid: int, sequence_count: int, destination: int) -> bytes:
    notice = None
    if report.is_failure:
        text = report.text.encode(errors="replace")[:_MOST_TEXT_BYTES].decode(errors="ignore").encode()
        notice = FailureNotice(PacketFieldU16(report.code), text)
    about = RequestId.unpack(report.request_id.to_bytes(4))
    packet = Service1Tm(
        apid,
        MessageSubtype(report.subtype),
        cds_time(report.time_ns),
        VerificationParams(about, failure_notice=notice),
        seq_count=sequence_count,
        destination_id=destination,
    )
    return bytes(packet.pack())


def decode_reports(packets: bytes, apid: int) -> list[Report]:
    """Return the reports of a station, packet after packet. Raises UnusablePacket for anything else."""
    found, at = list[Report](), 0
    while at < len(packets):
        if len(found) == _MOST_REPORTS:
            raise UnusablePacket(f"an answer has at most {_MOST_REPORTS} reports")
        size = header_of(packets[at:], PacketType.TM, apid).packet_len
        found.append(_decoded(packets[at : at + size]))
        at += size
    return found


def _decoded(packet: bytes) -> Report:
    try:
        read = Service1Tm.from_tm(
            PusTm.unpack_generic(packet, ManagedParams(cds_size(packet[PUS_TM_TIMESTAMP_OFFSET]))),
            ManagedParamsVerification(bytes_err_code=_CODE_BYTES),
        )
        time_ns = unix_time_ns(read.timestamp)
        subtype = MessageSubtype(read.message_subtype)
    except (ValueError, IndexError, struct.error) as error:
        raise UnusablePacket(f"it is no report of PUS service 1: {error}") from None
    if read.service != 1 or subtype not in _KNOWN:
        raise UnusablePacket(f"a station reports {', '.join(f'1.{each}' for each in sorted(_KNOWN))} alone")
    notice = read.failure_notice
    code, text = (notice.code.val, notice.data.decode(errors="replace")) if notice else (0, "")
    return Report(subtype, read.tc_req_id.as_u32(), time_ns, code, text[:_MOST_TEXT_BYTES])
