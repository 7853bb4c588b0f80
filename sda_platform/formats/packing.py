"""Records back into a segment: the inverse of `records.split_records`, for those that were cut from other segments."""

from collections.abc import Sequence

from sda_platform.formats.records import pack_records, split_records


def pack_segment(
    payloads: Sequence[bytes], received_time_ns: Sequence[int], segment_format: str, *, header: bytes = b""
) -> bytes:
    """A segment of exactly these records. ``header`` is the first line of a CSV.

    Raises ValueError for a format that is not known.
    """
    match segment_format:
        case "radar-frames" | "isl-frames":
            return pack_records(payloads, received_time_ns)
        case "optical-jsonl" | "tle" | "cdm-kvn":
            return b"".join(payload + b"\n" for payload in payloads)
        case "omm-csv":
            return b"".join(line + b"\n" for line in (header, *payloads))
        case "omm-json":
            return b"[" + b",\n".join(payloads) + b"]\n"
        case "cdm-xml":
            return b"<ndm>\n" + b"\n".join(payloads) + b"\n</ndm>\n"
    raise ValueError(f"records of format {segment_format!r} cannot be put into a segment")


def can_be_packed(payload: bytes, segment_format: str, *, header: bytes = b"") -> bool:
    """Whether a segment gives the record back as it is, so that it cannot harm its neighbours there."""
    try:
        data = pack_segment([payload], [0], segment_format, header=header)
    except ValueError:
        return False
    return _cut(data, segment_format) == [payload]


def is_segment_of_itself(payload: bytes, segment_format: str) -> bool:
    """Whether the bytes of the record, alone, are a segment of this one record."""
    return _cut(payload, segment_format) == [payload]


def _cut(data: bytes, segment_format: str) -> list[bytes]:
    return [record.payload for record in split_records(data, segment_format)]
