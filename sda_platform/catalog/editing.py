"""Making edits of catalogue objects: each goes through the landing zone, as those of other sites do."""

import hashlib
from typing import Any

import pyarrow.dataset as ds

from sda_platform.audit_log import user
from sda_platform.catalog.edit_decoding import decoder, edit_of
from sda_platform.catalog.edits import EditVerdict, next_edit, reconcile
from sda_platform.catalog.held_lookup import named_set
from sda_platform.catalog.sites import EditingSite, SiteKeys
from sda_platform.catalog.tables import CATALOG_EDITS, EDITS_FEED, ELEMENT_SETS
from sda_platform.formats.edits import CORRECTION, RELEASE, BadEdit, Edit, encode_edits
from sda_platform.formats.errors import RecordError
from sda_platform.formats.reading import require_readable
from sda_platform.formats.segments import Sender
from sda_platform.lake.lake import Lake
from sda_platform.landing.record_rows import pending_rows, usable_rows
from sda_platform.landing.zone import LandingZone

_FORMAT = "edits-jsonl"


class NothingToResolve(LookupError):
    """The edits of this attribute do not contradict each other."""


def known_edits(lake: Lake, landing_uri: str, keys: SiteKeys) -> list[Edit]:
    """Read every usable edit that has arrived: consumed ones and those pending in the landing zone.

    Of pending ones ``keys`` judge the signatures.
    """
    rows = pending_rows(LandingZone(landing_uri, EDITS_FEED), decoder(keys))
    rows += usable_rows(lake.log(CATALOG_EDITS).rows())
    return list({edit.edit_id: edit for edit in map(edit_of, rows)}.values())


def make_edit(
    lake: Lake, landing_uri: str, *, norad_id: int, attribute: str, value: str, site: EditingSite, editor: str
) -> Edit:
    """Make an edit at ``site`` that has seen every edit known here, and land it. Raises BadEdit and SitesError.

    A ``correct_object`` may name a segment by its name; see `with_hashes`.
    """
    known = known_edits(lake, landing_uri, site.keys)
    if attribute == CORRECTION:
        value = with_hashes(lake, norad_id, value)
    edit = next_edit(
        known,
        norad_id=norad_id,
        attribute=attribute,
        value=value,
        origin=site.name,
        editor=editor,
        edited_time_ns=lake.clock.now_ns(),
    )
    edit = site.signed(edit)
    land_edits(lake, landing_uri, [edit])
    return edit


def resolve(
    lake: Lake, landing_uri: str, *, norad_id: int, attribute: str, value: str, site: EditingSite, editor: str
) -> tuple[EditVerdict, Edit]:
    """Decide a conflict: select the edit that supersedes the edits that contradict each other.

    Raises NothingToResolve where there is no conflict.
    """
    known = [each for each in known_edits(lake, landing_uri, site.keys) if each.key == (norad_id, attribute)]
    verdict = reconcile(known)
    if not verdict.is_conflict:
        raise NothingToResolve(f"{attribute} of object {norad_id} has no edits that contradict each other")
    return verdict, make_edit(
        lake, landing_uri, norad_id=norad_id, attribute=attribute, value=value, site=site, editor=editor
    )


def release(lake: Lake, landing_uri: str, name: str, *, site: EditingSite, editor: str) -> Edit:
    """Make the edit that releases a held set, by its segment and record, besides those that were released before.

    Raises UnknownHeldSet, BadEdit and SitesError.
    """
    row = named_set(lake, name)
    key = row["norad_id"], RELEASE
    verdict = reconcile(each for each in known_edits(lake, landing_uri, site.keys) if each.key == key)
    before = [each for edit in verdict.current for each in edit.value.split()]
    value = " ".join(dict.fromkeys([*before, f"{row['segment_sha256']}:{row['record_number']}"]))
    return make_edit(
        lake, landing_uri, norad_id=row["norad_id"], attribute=RELEASE, value=value, site=site, editor=editor
    )


def with_hashes(lake: Lake, norad_id: int, value: str) -> str:
    """A ``correct_object`` of object ``norad_id`` with segments by their hashes, where it has names or beginnings.

    Raises BadEdit where it names no usable set that was published under that number, or more than one.
    """
    is_of_object = (ds.field("norad_id") == norad_id) & ds.field("error_kind").is_null()
    columns = ["segment_name", "segment_sha256", "record_number"]
    sets = lake.log(ELEMENT_SETS).rows(columns, is_of_object).to_pylist() if value.strip() else []
    found = []
    for each in value.split():
        segment, record, right = ["", "", *each.rsplit(":", 2)][-3:]
        of_record = [row for row in sets if str(row["record_number"]) == record]
        named = {row["segment_sha256"] for row in of_record if _is_named(row, segment)}
        if len(named) != 1:
            raise BadEdit(
                f"{each[:120]!r} names {len(named)} sets of object {norad_id}, must name one: "
                "<segment>:<record>:<right catalogue number>"
            )
        found.append(f"{named.pop()}:{record}:{right}")
    return " ".join(found)


def _is_named(row: dict[str, Any], segment: str) -> bool:
    return bool(segment) and (row["segment_name"] == segment or row["segment_sha256"].startswith(segment))


def land_edits(lake: Lake, landing_uri: str, edits: list[Edit]) -> str:
    """Seal edits into the landing zone; the name of the segment follows from its content.

    Raises BadEdit for one that a reader of the zone would refuse.
    """
    data = encode_edits(edits)
    try:
        require_readable(data, _FORMAT, EDITS_FEED)
    except RecordError as error:
        raise BadEdit(str(error)) from None
    name = f"edits-{hashlib.sha256(data).hexdigest()[:24]}.edits"
    LandingZone(landing_uri, EDITS_FEED).seal_at(lake.clock.now_ns(), name, data, _FORMAT, sender=Sender(user()))
    return name
