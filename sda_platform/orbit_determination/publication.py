"""Publication: element sets from orbit determination become segments in the landing zone of element sets.

Each commit of a table becomes one segment, with bytes that follow from its rows, named after its sequence and the hash
of the bytes. Sealing it again changes nothing, and a table that was rebuilt uses no name for other bytes.
"""

from typing import Any

import pyarrow as pa

from sda_platform.catalog.sources import OWN_RANK
from sda_platform.formats.element_set import OWN_ORIGINATOR, ElementSet
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.formats.segments import Sender, describe_segment
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import Table
from sda_platform.lake.unconsumed import commits_of
from sda_platform.landing.zone import LandingZone
from sda_platform.orbit_determination.tables import ELEMENT_PUBLICATIONS, DeterminedElements

_SHORT_HASH = 12
_FIELDS = [name for name in DeterminedElements.to_schema().columns if name in ElementSet.__dataclass_fields__]
_SCHEMA = ELEMENT_PUBLICATIONS.content_schema


def publish(store: Lake, plan: Plan, zone: LandingZone) -> pa.Table:
    """Seal every commit of the plan's windows into ``zone``; returns the ledger's rows, one a segment.

    Raises SegmentConflict when other bytes are pending under the name of a segment.
    """
    rows = []
    for source in ELEMENT_PUBLICATIONS.consumes:
        for commit in reversed(commits_of(store.log(source), plan.window(source))):
            rows += _sealed(store, source, commit, zone)
    return pa.Table.from_pylist(rows, _SCHEMA)


def _sealed(store: Lake, source: Table, commit: Commit, zone: LandingZone) -> list[dict[str, Any]]:
    """Seal one commit; returns its row of the ledger, or none where it has no element sets."""
    elements = store.log(source).rows_of((commit.sequence - 1, commit.sequence), _FIELDS).sort_by("norad_id")
    if not elements.num_rows:
        return []
    data = encode_omm_csv(
        ElementSet(**row, element_set_number=commit.sequence, originator=OWN_ORIGINATOR) for row in elements.to_pylist()
    )
    sealed_ns = commit.manifest.as_of_ns
    meta = describe_segment(
        data,
        feed=zone.feed,
        segment_format="omm-csv",
        sealed_time_ns=sealed_ns,
        sealed_wall_time_ns=commit.timestamp_ms * 1_000_000,
        sender=Sender(source.name, rank=OWN_RANK),
    )
    name = f"{source.name}-{commit.sequence:08d}-{meta.sha256[:_SHORT_HASH]}.csv"
    zone.seal(name, data, meta)
    return [
        {
            "source_table": source.name,
            "source_commit_sequence": commit.sequence,
            "zone": zone.feed,
            "segment_name": name,
            "segment_sha256": meta.sha256,
            "element_sets": elements.num_rows,
            "sealed_time_ns": sealed_ns,
        }
    ]
