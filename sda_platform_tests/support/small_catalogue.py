"""A lake with a catalogue of a few objects, committed by delta-rs and verified: no engine."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.recovery.review import review
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, catalogue_of

SEGMENT = "ab" * 32


def sets_of(ids: Sequence[int], **facts: object) -> list[dict[str, object]]:
    """Real element sets of these objects, as rows of `element_sets`."""
    rows = csv.DictReader(io.StringIO(catalogue_of(list(ids)).decode()))
    return [
        {
            "norad_id": int(each["NORAD_CAT_ID"]),
            "object_name": each["OBJECT_NAME"],
            "international_designator": each["OBJECT_ID"],
            "epoch_time_ns": START_NS - int(each["NORAD_CAT_ID"]),
            "mean_motion_rev_per_day": float(each["MEAN_MOTION"]),
            "eccentricity": float(each["ECCENTRICITY"]),
            "inclination_deg": float(each["INCLINATION"]),
            "raan_deg": float(each["RA_OF_ASC_NODE"]),
            "arg_of_pericenter_deg": float(each["ARG_OF_PERICENTER"]),
            "mean_anomaly_deg": float(each["MEAN_ANOMALY"]),
            "bstar_per_earth_radius": float(each["BSTAR"]),
            "element_set_number": int(each["ELEMENT_SET_NO"]),
            "originator": None,
            "source_priority": 0,
            "segment_sha256": SEGMENT,
            "segment_name": "catalogue.csv",
            "record_number": number,
            "error_kind": None,
            "error": None,
            **facts,
        }
        for number, each in enumerate(rows)
    ]


def committed(lake: Lake, sets: Sequence[dict[str, object]], *, is_verified: bool = True) -> None:
    """Commit ``sets`` to `element_sets`, and to the catalogue as what it consumes (it must have no object twice)."""
    commit(lake, ELEMENT_SETS, sets)
    before, now = lake.log(ORBITAL_CATALOG).head(), lake.log(ELEMENT_SETS).head()
    consumed = before.commit.manifest.window(ELEMENT_SETS.name) if before.commit else None
    window = TableWindow(
        ELEMENT_SETS.name,
        consumed.upto_sequence if consumed else 0,
        now.sequence,
        consumed.upto_version if consumed else -1,
        now.commit_version,
        now.manifest_sha256,
    )
    commit(lake, ORBITAL_CATALOG, sets, windows=[window])
    if is_verified:
        review(lake, ORBITAL_CATALOG)


def small_catalogue(home: Path, ids: Sequence[int]) -> Lake:
    """The lake of ``home`` with one verified version of a catalogue of these objects."""
    lake = lake_at(home / "lake", reads_unverified=False)
    committed(lake, sets_of(ids))
    return lake
