"""Of every text format that partners send a file of one or two sound records, and of the platform's own ones, too."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sda_platform.formats.acknowledgements import AlertAcknowledgement, encode_acknowledgements
from sda_platform.formats.column_mapping import ColumnMapping
from sda_platform.formats.conversion import converted
from sda_platform.formats.edits import Edit, encode_edits
from sda_platform.formats.game_days import GameDay, encode_game_days
from sda_platform.formats.ground_events import GroundEvent, encode_ground_events
from sda_platform.formats.mapped_csv import mapping_line
from sda_platform.formats.membership_events import MembershipEvent, encode_membership_events
from sda_platform.formats.metric_values import MetricValue, encode_metric_values
from sda_platform.formats.optical import OpticalRecord, encode_optical_record

_DATA: Final = Path(__file__).parents[1] / "data"
_FIELD, _CCSDS = _DATA / "field", _DATA / "messages" / "ccsds"
NOW_NS: Final = 1_730_440_800_000_000_000  # 2024-11-01T06


CPF: Final = (_DATA / "tracking" / "lageos2_cpf_160213.sgf").read_bytes()
_UVW: Final = (
    "4.6343390768e-07 -3.7963809271e-07 7.7770281867e-07 1.8398914684e-10 2.3515746188e-10 1.2050744950e-06 "
    "8.2617476650e-10\n-9.3402950908e-10 6.5056423006e-13 2.0019807553e-12 -4.6727451721e-10 4.1362166473e-10 "
    "-1.2117302280e-12 -8.4570284181e-13\n5.1950545462e-13 2.6473144477e-13 8.7817244924e-13 1.6102297802e-09 "
    "-2.1049889128e-16 -1.5343530772e-15 5.4287251909e-12\n"
)
MEME: Final = (
    "created:2026-09-11 01:55:52 UTC\n"
    "ephemeris_start:2026-09-11 01:42:42 UTC ephemeris_stop:2026-09-11 01:43:42 UTC step_size:60\n"
    "ephemeris_source:blend\nUVW\n"
    "2026254014242.000 4244.3465367594 1264.3254891872 5043.9826441325 3.5951547629 5.2587956583 -4.3350352914\n"
    f"{_UVW}"
    "2026254014342.000 4449.8462744669 1576.6138914245 4772.1198724309 3.2521129034 5.1467007555 -4.7234817117\n"
    f"{_UVW}"
)
"""Two states of a file of 11 September 2026 as SpaceX publishes them, the second with the covariance of the first."""


def jason_rows(count: int) -> list[list[float]]:
    """TAI (s since 1970), positions (km) and velocities (km/s) in ITRF of Jason-2 every two minutes."""
    lines = (_DATA / "tracking" / "jason2_sp3_080830.csv").read_text().splitlines()[1 : count + 1]
    return [[float(word) for word in line.split(",")] for line in lines]


def sp3_of_jason(count: int, *, with_velocities: bool = True) -> str:
    """An SP3-c file at GPS time."""
    rows = jason_rows(count)
    kind = "V" if with_velocities else "P"
    first = datetime.fromtimestamp(rows[0][0] - 19, UTC)
    lines = [
        f"#c{kind}{first:%Y %m %d %H %M} {first.second:11.8f} {count:7} ORBIT ITRF  FIT  CNES",
        "## 1494 518400.00000000   120.00000000 54708 0.0000000000000",
        "+    1   L27  0  0",
        "%c L  cc GPS ccc cccc cccc cccc cccc ccccc ccccc ccccc ccccc",
        "/* OBJECT L27 = 33105",
    ]
    for tai_s, *state in rows:
        at = datetime.fromtimestamp(tai_s - 19, UTC)
        lines.append(f"*  {at:%Y %m %d %H %M} {at.second:11.8f}")
        lines.append("PL27" + "".join(f"{each:14.6f}" for each in state[:3]) + " 999999.999999")
        if with_velocities:
            lines.append("VL27" + "".join(f"{10_000 * each:14.6f}" for each in state[3:]) + " 999999.999999")
    return "\n".join([*lines, "EOF", ""])


def stk_of_jason(count: int) -> str:
    """The same as an ephemeris of STK, Earth-fixed, in metres."""
    rows = jason_rows(count)
    start = datetime.fromtimestamp(rows[0][0] - 33, UTC)
    return "\n".join(
        [
            "stk.v.4.3",
            "# OBJECT_ID = 33105",
            "BEGIN Ephemeris",
            f"NumberOfEphemerisPoints {count}",
            f"ScenarioEpoch {start.day} {start:%b %Y %H:%M:%S}.000",
            "CentralBody Earth",
            "CoordinateSystem Fixed",
            "EphemerisTimePosVel",
            *(" ".join([f"{row[0] - rows[0][0]:.3f}", *(f"{1000 * each:.6f}" for each in row[1:])]) for row in rows),
            "END Ephemeris",
            "",
        ]
    )


MAPPING: Final[dict[str, Any]] = {
    "mapping": "tenerife.toml",
    "separator": ";",
    "time": {"column": "UT", "format": "iso"},
    "sensor": "RADAR-31",
    "object": {"column": "Target"},
    "fields": {
        "range": {"column": "Rng", "unit": "m"},
        "range_rate": {"column": "Rdot", "unit": "m/s"},
        "azimuth": {"column": "Az", "unit": "rad"},
        "elevation": {"column": "El", "unit": "deg"},
        "range_sigma": {"value": 15.0, "unit": "m"},
    },
}
MAPPED: Final = (
    b"UT;Target;Rng;Rdot;Az;El\n"
    b"2024-11-01T00:00:00.250;object A;1204300.5;-2150.25;1.25;38.5\n"
    b"2024-11-01T00:00:01.250;object A;1202150.5;-2149.75;1.26;38.6\n"
)
"""A radar's own columns, and the mapping of them."""


_SATCAT_HEADER = (
    b"OBJECT_NAME,OBJECT_ID,NORAD_CAT_ID,OBJECT_TYPE,OPS_STATUS_CODE,OWNER,LAUNCH_DATE,LAUNCH_SITE,DECAY_DATE,PERIOD,"
    b"INCLINATION,APOGEE,PERIGEE,RCS,DATA_STATUS_CODE,ORBIT_CENTER,ORBIT_TYPE\r\n"
)
_CELESTRAK = (
    _SATCAT_HEADER
    + b"""ISS (ZARYA),1998-067A,25544,PAY,+,ISS,1998-11-20,TYMSC,,92.9,51.6,420,418,399.05,,EA,ORB\r
SL-1 R/B,1957-001A,1,R/B,D,CIS,1957-10-04,TYMSC,1957-12-01,96.2,65.1,938,214,20.42,,EA,IMP\r
"STRANGE, ONE",2026-001C,270001,UNK,,TBD,,,,,,,,,NEA,EA,ORB\r
"""
)
_SPACE_TRACK = b"""[{"INTLDES":"1998-067A","NORAD_CAT_ID":"25544","OBJECT_TYPE":"PAYLOAD",
"SATNAME":"ISS (ZARYA)","COUNTRY":"ISS",
"LAUNCH":"1998-11-20","SITE":"TTMTR","DECAY":null,"PERIOD":"92.9","INCLINATION":"51.6","APOGEE":"420","PERIGEE":"418",
"COMMENT":null,"COMMENTCODE":null,"RCSVALUE":"0","RCS_SIZE":"LARGE","FILE":"8321","LAUNCH_YEAR":"1998",
"LAUNCH_NUM":"67","LAUNCH_PIECE":"A","CURRENT":"Y","OBJECT_NAME":"ISS (ZARYA)","OBJECT_ID":"1998-067A",
"OBJECT_NUMBER":"25544"}]"""


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
        "mapped-csv": mapping_line(ColumnMapping.model_validate(MAPPING)) + MAPPED,
        "stk-ephemeris": stk_of_jason(5).encode(),
        "meme-ephemeris": ("# OBJECT_ID = 25544\n" + MEME).encode(),
        "cpf": CPF,
        "sp3": sp3_of_jason(5).encode(),
        "satcat-csv": _CELESTRAK,
        "satcat-json": _SPACE_TRACK,
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
    "game-days-jsonl": encode_game_days([GameDay("link cut", NOW_NS, 1.5, 2.5, 20.0, 30.0)]),
}
"""What parts of the platform send each other."""
