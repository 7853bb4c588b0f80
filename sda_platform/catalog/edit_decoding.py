"""Segments of edits to bronze rows."""

import json
from typing import Any

from sda_platform.catalog.sites import BAD_SIGNATURE, SiteKeys, refusal
from sda_platform.catalog.tables import CATALOG_EDITS, EDITS_FEED
from sda_platform.formats.edits import Edit
from sda_platform.formats.errors import RecordError
from sda_platform.landing.record_rows import SegmentDecoder, record_decoder


def facts_of(edit: Edit) -> dict[str, Any]:
    """An edit in columns of `catalog_edits`."""
    return {
        "edit_id": edit.edit_id,
        "norad_id": edit.norad_id,
        "attribute": edit.attribute,
        "value": edit.value,
        "origin": edit.origin,
        "lamport": edit.lamport,
        "vector": json.dumps(dict(sorted(edit.vector.items()))),
        "editor": edit.editor,
        "edited_time_ns": edit.edited_time_ns,
        "signature": edit.signature or None,
    }


def decoder(keys: SiteKeys) -> SegmentDecoder:
    """Make the decoder that refuses edits which are not signed by their site; with no ``keys``, none is refused."""

    def facts(edit: Edit) -> dict[str, Any]:
        if (reason := refusal(edit, keys)) is not None:
            raise RecordError(BAD_SIGNATURE, reason)
        return facts_of(edit)

    return record_decoder(CATALOG_EDITS, EDITS_FEED, facts)


def edit_of(row: dict[str, Any]) -> Edit:
    """Return the edit of a row of `catalog_edits`, or of a claim."""
    return Edit(
        row["norad_id"],
        row["attribute"],
        row["value"],
        row["origin"],
        row["lamport"],
        json.loads(row["vector"]),
        row["editor"] or "",
        row["edited_time_ns"] or 0,
        row.get("signature") or "",
    )
