"""The fleet as it is now: the table, and what was reported since."""

from typing import Any

import pyarrow.dataset as ds

from sda_platform.ground.membership_states import decode, merged
from sda_platform.ground.tables import FLEET_MEMBERSHIP, MEMBERSHIP_FEED, MEMBERSHIP_OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.record_rows import pending_rows, usable_rows
from sda_platform.landing.zone import LandingZone


def current_fleet(lake: Lake, landing_uri: str) -> list[dict[str, Any]]:
    """Return the rows of `fleet_membership` by member, with every report merged that is sealed."""
    # Pending ones first: a segment that is consumed meanwhile is found in the table. A repeated report has no effect.
    pending = pending_rows(LandingZone(landing_uri, MEMBERSHIP_FEED), decode)
    head = lake.head(FLEET_MEMBERSHIP)
    window = head.commit.manifest.window(MEMBERSHIP_OBSERVATIONS.name) if head.commit else None
    rows = lake.log(FLEET_MEMBERSHIP).rows(FLEET_MEMBERSHIP.content_schema.names).to_pylist() if head.commit else []
    since = ds.field(COMMIT_SEQUENCE) > (window.upto_sequence if window else 0)
    has_observations = lake.log(MEMBERSHIP_OBSERVATIONS).head().sequence > 0
    landed = lake.log(MEMBERSHIP_OBSERVATIONS).rows(where=since) if has_observations else None
    events = [*(usable_rows(landed) if landed else []), *pending]
    fleet = {row["member"]: row for row in (*rows, *merged(rows, events))}
    return [fleet[name] for name in sorted(fleet)]
