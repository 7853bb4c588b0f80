"""Times in CCSDS day-segmented code (CDS, CCSDS 301.0-B) with the epoch 1958, to the nanosecond."""

import struct
from typing import Final

from sda_platform.units import DAY_NS

TIME_BYTES: Final = 11
"""Of a time that `cds_time` writes."""
# CDS, by P-field: epoch 1958 and 16 bits of days; of a millisecond nothing, microseconds, or picoseconds.
_CDS: Final = {
    0x40: (struct.Struct(">BHI"), 0),
    0x41: (struct.Struct(">BHIH"), 1_000_000),
    0x42: (struct.Struct(">BHII"), 1),
}
_CDS_WRITTEN: Final = 0x42
_DAYS_BEFORE_1970: Final = 4383
_MS_NS: Final = 1_000_000
_PS_OF_NS: Final = 1_000
_LATEST_NS: Final = (0xFFFF - _DAYS_BEFORE_1970 + 1) * DAY_NS - 1


def cds_time(unix_ns: int) -> bytes:
    """Return Unix time as CCSDS day-segmented time; what lies outside of 1958 to 2137 becomes the nearest time."""
    days, of_day_ns = divmod(min(max(unix_ns, -_DAYS_BEFORE_1970 * DAY_NS), _LATEST_NS), DAY_NS)
    ms, ns = divmod(of_day_ns, _MS_NS)
    return _CDS[_CDS_WRITTEN][0].pack(_CDS_WRITTEN, days + _DAYS_BEFORE_1970, ms, ns * _PS_OF_NS)


def cds_size(p_field: int) -> int:
    """Return the bytes of a time with this first byte. Raises ValueError where it is not of the forms of a station."""
    if p_field not in _CDS:
        raise ValueError(f"a time has the P-field {p_field:#04x}, and not one of {', '.join(map(hex, _CDS))}")
    return _CDS[p_field][0].size


def unix_time_ns(cds: bytes) -> int:
    """Read a CCSDS day-segmented time. Raises ValueError for another form, and for no time of a day."""
    if len(cds) != cds_size(cds[0]):
        raise ValueError(f"a time with the P-field {cds[0]:#04x} has {cds_size(cds[0])} bytes, not {len(cds)}")
    layout, parts_ps = _CDS[cds[0]]
    _, days, ms, *parts = layout.unpack(cds)
    ps = sum(parts) * parts_ps
    if ms * _MS_NS >= DAY_NS or ps >= _MS_NS * _PS_OF_NS:
        raise ValueError("a time lies outside of its day")
    return int((days - _DAYS_BEFORE_1970) * DAY_NS + ms * _MS_NS + ps // _PS_OF_NS)
