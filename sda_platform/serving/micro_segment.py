"""Micro-segments: small landing segments of single updates, written as OMM in CSV and read back by columns.

The records were decoded and accepted by SGP4 before they were sealed, so reading them again needs no careful path:
a restart reads 100,000 unconsumed records in a fraction of a second.
"""

import hashlib
import io
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sda_platform.formats.element_columns import known
from sda_platform.formats.element_set import DATA_MODE, DECAY_DATE, OWNER, ElementSet
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.formats.segments import Origin
from sda_platform.serving.record import COLUMNS

PREFIX: Final = "put-"
"""How the names of micro-segments begin."""
FORMAT: Final = "omm-csv"
_KEYWORDS: Final = {
    "NORAD_CAT_ID": ("norad_id", pa.int64()),
    "EPOCH": ("epoch_time_ns", pa.timestamp("ns")),
    "ELEMENT_SET_NO": ("element_set_number", pa.int64()),
    "REV_AT_EPOCH": ("revolution_at_epoch", pa.int64()),
    DECAY_DATE: ("decay_time_ns", pa.timestamp("ns")),
    "MEAN_MOTION": ("mean_motion_rev_per_day", pa.float64()),
    "ECCENTRICITY": ("eccentricity", pa.float64()),
    "INCLINATION": ("inclination_deg", pa.float64()),
    "RA_OF_ASC_NODE": ("raan_deg", pa.float64()),
    "ARG_OF_PERICENTER": ("arg_of_pericenter_deg", pa.float64()),
    "MEAN_ANOMALY": ("mean_anomaly_deg", pa.float64()),
    "BSTAR": ("bstar_per_earth_radius", pa.float64()),
    "MEAN_MOTION_DOT": ("mean_motion_dot_rev_per_day2", pa.float64()),
    "MEAN_MOTION_DDOT": ("mean_motion_ddot_rev_per_day3", pa.float64()),
    "OBJECT_NAME": ("object_name", pa.string()),
    "OBJECT_ID": ("international_designator", pa.string()),
    "ORIGINATOR": ("originator", pa.string()),
    "CLASSIFICATION_TYPE": ("classification", pa.string()),
    DATA_MODE: ("data_mode", pa.string()),
    OWNER: ("owner", pa.string()),
}


def encode(element_sets: Iterable[ElementSet]) -> bytes:
    """Encode element sets as a micro-segment."""
    return encode_omm_csv(element_sets)


def segment_name(data: bytes) -> str:
    """Compute the name of a micro-segment from its content."""
    return f"{PREFIX}{hashlib.sha256(data).hexdigest()[:24]}.csv"


def rows(data: bytes, *, received_time_ns: int, origins: Sequence[Origin] | None) -> pa.Table:
    """Decode a micro-segment into COLUMNS; ``origins``: the clients that sent the sets, None: not known."""
    options = csv.ConvertOptions(
        column_types={keyword: kind for keyword, (_, kind) in _KEYWORDS.items()},
        include_columns=list(_KEYWORDS),
        include_missing_columns=True,
        strings_can_be_null=True,
        null_values=[""],
    )
    found = csv.read_csv(io.BytesIO(data), convert_options=options)
    columns = {name: found.column(keyword) for keyword, (name, _) in _KEYWORDS.items()}
    for name in ("epoch_time_ns", "decay_time_ns"):
        columns[name] = pc.cast(columns[name], pa.int64())
    columns["international_designator"] = known(columns["international_designator"])
    by_record = [run for run in origins or () for _ in range(run.records)] or [Origin(0, "")] * found.num_rows
    count, sha256 = found.num_rows, hashlib.sha256(data).hexdigest()
    added = {
        "source_priority": pa.array([run.rank or 0 for run in by_record], pa.int64()),
        "source_name": pa.array([run.source or None for run in by_record], pa.string()),
        "record_number": pa.array(range(count), pa.int64()),
        "received_time_ns": pa.array([received_time_ns] * count, pa.int64()),
        "commit_sequence": pa.array([0] * count, pa.int64()),  # no commit holds them yet
        "segment_sha256": pa.array([sha256] * count, pa.string()),
    }
    return pa.table({**columns, **added}).select(COLUMNS)
