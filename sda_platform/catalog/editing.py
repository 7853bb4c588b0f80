"""Making edits of catalogue objects: each goes through the landing zone, as those of other sites do."""

import hashlib
import time

from sda_platform.catalog.edit_decoding import decode, edit_of
from sda_platform.catalog.tables import CATALOG_EDITS, EDITS_FEED
from sda_platform.formats.edits import encode_edits
from sda_platform.formats.segments import describe_segment
from sda_platform.lake.lake import Lake
from sda_platform.landing.record_rows import pending_rows, usable_rows
from sda_platform.landing.zone import LandingZone
from sda_platform.protocols.edits import Edit, EditVerdict, next_edit, reconcile

_FORMAT = "edits-jsonl"


class NothingToResolve(LookupError):
    """The edits of this attribute do not contradict each other."""


def known_edits(lake: Lake, landing_uri: str) -> list[Edit]:
    """Every usable edit that has arrived: consumed ones, and those that wait in the landing zone."""
    rows = pending_rows(LandingZone(landing_uri, EDITS_FEED), decode)
    rows += usable_rows(lake.log(CATALOG_EDITS).rows())
    return list({edit.edit_id: edit for edit in map(edit_of, rows)}.values())


def make_edit(
    lake: Lake, landing_uri: str, *, norad_id: int, attribute: str, value: str, site: str, editor: str
) -> Edit:
    """Make an edit at ``site`` that has seen every edit known here, and land it. Raises BadEdit."""
    known = known_edits(lake, landing_uri)
    edit = next_edit(
        known,
        norad_id=norad_id,
        attribute=attribute,
        value=value,
        origin=site,
        editor=editor,
        edited_time_ns=lake.clock.now_ns(),
    )
    land_edits(lake, landing_uri, [edit])
    return edit


def resolve(
    lake: Lake, landing_uri: str, *, norad_id: int, attribute: str, value: str, site: str, editor: str
) -> tuple[EditVerdict, Edit]:
    """Decide a conflict: the edits that contradicted each other, and the one that supersedes them.

    Raises NothingToResolve where there is no conflict.
    """
    known = [each for each in known_edits(lake, landing_uri) if each.key == (norad_id, attribute)]
    verdict = reconcile(known)
    if not verdict.is_conflict:
        raise NothingToResolve(f"{attribute} of object {norad_id} has no edits that contradict each other")
    return verdict, make_edit(
        lake, landing_uri, norad_id=norad_id, attribute=attribute, value=value, site=site, editor=editor
    )


def land_edits(lake: Lake, landing_uri: str, edits: list[Edit]) -> str:
    """Seal edits into the landing zone; the name of the segment follows from its content."""
    data = encode_edits(edits)
    meta = describe_segment(
        data,
        feed=EDITS_FEED,
        segment_format=_FORMAT,
        sealed_time_ns=lake.clock.now_ns(),
        sealed_wall_time_ns=time.time_ns(),
    )
    name = f"edits-{hashlib.sha256(data).hexdigest()[:24]}.edits"
    LandingZone(landing_uri, EDITS_FEED).seal(name, data, meta)
    return name
