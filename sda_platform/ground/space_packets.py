"""Commands to a station as CCSDS space packets: telecommands of ECSS PUS-C. docs/reference/space-packets.md has the
layout.

A packet that cannot be read has no effect (`UnusablePacket`): who sent it sends it again. One that can be read, and
says nothing that a station can do, is answered with a report (`RefusedCommand`).
"""

import struct
from binascii import crc_hqx
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from spacepackets.ccsds.spacepacket import PacketType, SequenceFlags, SpacePacketHeader
from spacepackets.ecss import PusTc, RequestId
from spacepackets.exceptions import BytesTooShortError

from sda_platform.ground.cds_times import TIME_BYTES, cds_time, unix_time_ns
from sda_platform.ground.commands import check_direction, check_id

SERVICE: Final = 128
"""The first service that PUS leaves to missions."""
SUBTYPES: Final = {
    "SAFE_MODE": 1,
    "EMERGENCY_ABORT": 2,
    "REPOINT": 3,
    "TELEMETRY_REQUEST": 4,
    "HOUSEKEEPING": 5,
}
SOURCES: Final = {"primary": 1, "backup": 2}
"""Source ids by uplink."""
SEQUENCE_COUNTS: Final = 1 << 14
_HEADER_BYTES: Final = 6
_LEAST_BYTES: Final = 13
TOKEN_BELOW: Final = 1 << 63
_FIXED: Final = struct.Struct(f">Q{TIME_BYTES}s")
_DIRECTION: Final = struct.Struct(">dd")
_CRC_FIRST: Final = 0xFFFF


class Code(IntEnum):
    """Why a station failed to accept, start or complete a command."""

    ILLEGAL_SERVICE = 3
    ILLEGAL_SUBTYPE = 4
    ILLEGAL_DATA = 5
    EXPIRED = 16
    STALE_TOKEN = 17
    REPEATED = 18
    EXECUTION_FAILED = 32
    LOST = 33


class UnusablePacket(ValueError):
    """Bytes are no packet of this station; the text says why."""


class RefusedCommand(ValueError):
    """A packet requests what no station can do; ``request_id`` is that of the packet."""

    def __init__(self, request_id: int, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.request_id, self.code = request_id, code


def header_of(packet: bytes, kind: PacketType, apid: int) -> SpacePacketHeader:
    """Return the primary header of the packet that begins ``packet``; its checksum is right. Raises UnusablePacket."""
    if len(packet) < _LEAST_BYTES:
        raise UnusablePacket(f"{len(packet)} bytes are no packet: the shortest has {_LEAST_BYTES}")
    header = SpacePacketHeader.unpack(packet)
    size = header.packet_len
    if not _LEAST_BYTES <= size <= len(packet):
        raise UnusablePacket(f"the packet states {size} bytes, and {len(packet)} came")
    if crc_hqx(packet[:size], _CRC_FIRST) != 0:
        raise UnusablePacket("the checksum of the packet is wrong")
    whole = header.ccsds_version == 0 and header.seq_flags == SequenceFlags.UNSEGMENTED and header.sec_header_flag
    if not whole or header.packet_type != kind:
        raise UnusablePacket(f"it is no whole {kind.name} packet of version 1 with a secondary header")
    if header.apid != apid:
        raise UnusablePacket(f"APID {header.apid} is not that of the station, {apid}")
    return header


def encode_command(command: Mapping[str, Any], apid: int, sequence_count: int) -> tuple[bytes, int]:
    """Return the packet of a ``command`` that `decode_command` reads, and its request id."""
    direction = command["azimuth_deg"], command["elevation_deg"]
    data = _FIXED.pack(command["token"], cds_time(command["expires_time_ns"]))
    data += b"" if None in direction else _DIRECTION.pack(*direction)
    packet = PusTc(
        SERVICE,
        SUBTYPES[command["kind"]],
        apid=apid,
        app_data=data + command["command_id"].encode(),
        seq_count=sequence_count % SEQUENCE_COUNTS,
        source_id=SOURCES.get(command["sender"], 0),
    )
    return bytes(packet.pack()), RequestId.from_pus_tc(packet).as_u32()


def decode_command(packet: bytes, apid: int) -> dict[str, Any]:
    """Return the command of a packet, with its ``request_id``. Raises UnusablePacket and RefusedCommand."""
    header = header_of(packet, PacketType.TC, apid)
    if header.packet_len != len(packet):
        raise UnusablePacket(f"the packet states {header.packet_len} bytes, and {len(packet)} came")
    request_id = RequestId.from_sp_header(header).as_u32()
    try:
        read = PusTc.unpack(packet)
    except (BytesTooShortError, ValueError) as error:
        raise UnusablePacket(f"the secondary header is none of a PUS-C telecommand: {error}") from None
    if read.service != SERVICE:
        raise RefusedCommand(
            request_id, Code.ILLEGAL_SERVICE, f"service {read.service} is none of a station: {SERVICE}"
        )
    kind = next((name for name, subtype in SUBTYPES.items() if subtype == read.message_subtype), None)
    if kind is None:
        raise RefusedCommand(request_id, Code.ILLEGAL_SUBTYPE, f"subtype {read.message_subtype} is no kind of command")
    source = read.pus_tc_sec_header.source_id
    sender = next((name for name, number in SOURCES.items() if number == source), f"source {source}")
    try:
        fields = _application_data(bytes(read.app_data), kind)
    except (ValueError, struct.error) as error:
        raise RefusedCommand(request_id, Code.ILLEGAL_DATA, f"{kind}: {error}") from None
    return {"kind": kind, "sender": sender, "request_id": request_id, **fields}


def _application_data(data: bytes, kind: str) -> dict[str, Any]:
    token, expires = _FIXED.unpack_from(data)
    if token >= TOKEN_BELOW:
        raise ValueError("the token is not below 2^63")
    rest, direction = data[_FIXED.size :], (None, None)
    if kind == "REPOINT":
        direction = _DIRECTION.unpack_from(rest)
        rest = rest[_DIRECTION.size :]
    check_direction(kind, *direction)
    command_id = rest.decode()
    check_id(command_id)
    return {
        "token": token,
        "expires_time_ns": unix_time_ns(expires),
        "azimuth_deg": direction[0],
        "elevation_deg": direction[1],
        "command_id": command_id,
    }
