"""Objects whose orbits matter most now: those of the fleet, and those of open events. They are refined first."""

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
from typing_extensions import override

from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.formats.fleet import protected_fleet
from sda_platform.lake.lake import Lake
from sda_platform.orbit_determination.resource import RefinementResource
from sda_platform.recovery.verification import current_keys

MOST_OBJECTS: Final = 1_000
"""More do not come first: each commit records them, in 7 kB."""


class InterestResource(RefinementResource):
    """Refines tracks of the fleet first, and those of objects in assessed events whose TCA is ahead."""

    @override
    def objects_of_interest(self, store: Lake) -> Sequence[int]:
        """Return the fleet, then the objects of events ahead by falling maximum probability; at most MOST_OBJECTS."""
        fleet = sorted(member.norad_id for member in protected_fleet(self.fleet_file))
        is_ahead = ds.field("tca_time_ns") > store.clock.now_ns()
        columns = ["norad_id_1", "norad_id_2", "tca_time_ns", "maximum_probability"]
        # A retract has the TCA of its insert, so each entry that holds is the last one that this selects.
        events = current_keys(store.log(CONJUNCTION_ASSESSMENTS), columns, where=is_ahead)
        order = [("maximum_probability", "descending"), ("event_id", "ascending")]
        ordered = events.take(pc.sort_indices(events, order))
        pairs = zip(ordered["norad_id_1"].to_pylist(), ordered["norad_id_2"].to_pylist(), strict=True)
        return list(dict.fromkeys([*fleet, *(number for pair in pairs for number in pair)]))[:MOST_OBJECTS]
