"""Of every text format that partners send a file of one or two sound records, and of the platform's own ones, too."""

from pathlib import Path
from typing import Final

from sda_platform.formats.acknowledgements import AlertAcknowledgement, encode_acknowledgements
from sda_platform.formats.conversion import converted
from sda_platform.formats.edits import encode_edits
from sda_platform.formats.ground_events import GroundEvent, encode_ground_events
from sda_platform.formats.membership_events import MembershipEvent, encode_membership_events
from sda_platform.formats.metric_values import MetricValue, encode_metric_values
from sda_platform.formats.optical import OpticalRecord, encode_optical_record
from sda_platform.protocols.edits import Edit

_DATA: Final = Path(__file__).parents[1] / "data"
_FIELD, _CCSDS = _DATA / "field", _DATA / "messages" / "ccsds"
NOW_NS: Final = 1_730_440_800_000_000_000  # 2024-11-01T06


def _samples() -> dict[str, bytes]:
    """By format."""
    csv = (_FIELD / "026-tle-one-number-too-large.csv").read_bytes().replace(b"799501299", b"25545")
    cdm = (_FIELD / "057-cdm-kilometres-relabelled.cdm").read_bytes()
    oem = (_FIELD / "052-oem-covariance-tnw.oem").read_bytes()
    opm = (_CCSDS / "opm_g4.kvn").read_bytes().replace(b"2021-028A", b"48000") + b"\n"
    tdm = (_FIELD / "066-tdm-epoch-digits.tdm").read_bytes()
    seen = OpticalRecord("a1", NOW_NS, 1.0, 0.5, 2.0, "optical-site-7", received_ns=NOW_NS)
    return {
        "omm-csv": csv,
        **{name: converted(csv, "omm-csv", name).data for name in ("tle", "omm-json", "omm-kvn", "omm-xml")},
        "cdm-kvn": cdm,
        "cdm-xml": converted(cdm, "cdm-kvn", "cdm-xml").data,
        "cdm-json": converted(cdm, "cdm-kvn", "cdm-json").data,
        "oem-kvn": oem,
        "oem-xml": converted(oem, "oem-kvn", "oem-xml").data,
        "opm-kvn": opm,
        "opm-xml": converted(opm, "opm-kvn", "opm-xml").data,
        "tdm-kvn": tdm,
        "tdm-xml": converted(tdm, "tdm-kvn", "tdm-xml").data,
        "optical-jsonl": encode_optical_record(seen) + b"\n",
    }


SAMPLES: Final = _samples()
"""What partners send."""
OWN_SAMPLES: Final = {
    "edits-jsonl": encode_edits([Edit(25544, "name", "STATION", "site-a", 1, {"site-a": 1}, "ann", NOW_NS)]),
    "ground-events-jsonl": encode_ground_events(
        [GroundEvent("oslo", "issued", NOW_NS, "uplink-1", 1, 1, "command-1", "point", NOW_NS, NOW_NS + 1, "by hand")]
    ),
    "membership-jsonl": encode_membership_events(
        [MembershipEvent("oslo", "bergen", "admitted", NOW_NS, 1, 1, "10.0.0.1:7946", "collector")]
    ),
    "acknowledgements-jsonl": encode_acknowledgements([AlertAcknowledgement("alert-1", 0, "ann", "seen", NOW_NS)]),
    "metrics-jsonl": encode_metric_values(
        [MetricValue("edge", "frames", "frames_total", {"site": "oslo"}, 1.0, NOW_NS)]
    ),
}
"""What parts of the platform send each other."""
