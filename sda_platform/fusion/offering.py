"""Our own element sets, offered to the catalogue by the door that every publisher uses: the landing zone of elements.

Each commit of a table of own elements becomes one segment, with bytes that follow from its rows, named by its sequence
and the bytes' hash. So offering again changes nothing, and a table that was built anew uses no name for other bytes.
"""

from sda_platform.catalog.tables import OWN_ORIGINATOR
from sda_platform.formats.omm import ElementSet, encode_omm_csv
from sda_platform.formats.segments import describe_segment
from sda_platform.fusion.own_element_tables import OwnElements
from sda_platform.lake.lake import Lake
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.table import Table

_SHORT_HASH = 12
_FIELDS = [name for name in OwnElements.to_schema().columns if name in ElementSet.__dataclass_fields__]


def offer(store: Lake, table: Table, zone: LandingZone) -> list[str]:
    """Seal the newest verified commits of ``table`` into ``zone``; returns the names of the segments that are new.

    Raises SegmentConflict when other bytes wait under the name of one.
    """
    offered = []
    log = store.log(table)
    upto = store.readable(table).head.sequence
    for commit in (each for each in reversed(log.commits()) if each.sequence <= upto):
        rows = log.rows_of((commit.sequence - 1, commit.sequence), _FIELDS).sort_by("norad_id").to_pylist()
        if not rows:
            continue
        numbered = (ElementSet(**row, element_set_number=commit.sequence, originator=OWN_ORIGINATOR) for row in rows)
        data = encode_omm_csv(numbered)
        meta = describe_segment(
            data,
            feed=zone.feed,
            segment_format="omm-csv",
            sealed_time_ns=commit.checkpoint.as_of_ns,
            sealed_wall_time_ns=commit.timestamp_ms * 1_000_000,
        )
        name = f"{table.name}-{commit.sequence:08d}-{meta.sha256[:_SHORT_HASH]}.csv"
        if zone.seal(name, data, meta):
            offered.append(name)
    return offered
