"""Docked objects: a vehicle docked to a station, or not yet apart from its launch, has the station's published set.

A better state of one of them alone does not part them. Until sets are published that differ, the two are one body.
"""

from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.gate import accepted
from sda_platform.catalog.identities import Identities
from sda_platform.catalog.identity import SET_KEY, identified, published_as
from sda_platform.catalog.merge import MERGE_COLUMNS, best_sets
from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.object_pairs import ObjectPairs
from sda_platform.units import DAY_NS

PUBLISHED_WITHIN_NS = 30 * DAY_NS
"""A published set that is older than this says nothing about today."""

_ORBIT = [name for name in ELEMENT_COLUMNS if name != "norad_id"]
_READ = tuple(dict.fromkeys((*MERGE_COLUMNS, *ELEMENT_COLUMNS, *SET_KEY)))


def docked_pairs(current: pa.Table, published: pa.Table) -> ObjectPairs:
    """Return the pairs of objects whose newest published sets are equal, of which at least one has no set of our own.

    ``current`` are the sets in force, one an object; ``published`` the newest sets of other originators, of those
    objects that have one of our own. Where we have determined both objects, their sets tell how far they are apart.
    """
    is_own, columns = _is_own(current), [*ELEMENT_COLUMNS]
    determined = frozenset(current["norad_id"].filter(is_own).to_pylist())
    sets = pa.concat_tables([current.filter(pc.invert(is_own)).select(columns), published.select(columns)])
    objects = sets.group_by(_ORBIT).aggregate([("norad_id", "list")])["norad_id_list"]  # deterministic: sorted next
    shared = objects.filter(pc.greater(pc.list_value_length(objects), 1)).to_pylist()
    pairs = [pair for numbers in shared for pair in combinations(sorted(numbers), 2)]
    return frozenset(pair for pair in pairs if not determined.issuperset(pair))


def published_sets(
    store: Lake, current: pa.Table, sequence: int, as_of_ns: int, identities: Identities, held: pa.Table
) -> pa.Table:
    """Return the newest sets of other originators, of commits up to ``sequence``, of objects in force with one of our
    own; without those that are ``held``.
    """
    own = current["norad_id"].filter(_is_own(current))
    epoch, originator = ds.field("epoch_time_ns"), ds.field("originator")
    where = (epoch > as_of_ns - PUBLISHED_WITHIN_NS) & (ds.field(COMMIT_SEQUENCE) <= sequence)
    where &= ds.field("error_kind").is_null() & (originator.is_null() | (originator != OWN_ORIGINATOR))
    # Most catalogues have no set of our own: then nothing is read.
    version = None if len(own) else -1
    found = store.log(ELEMENT_SETS).rows(_READ, where & published_as(identities, own.to_pylist()), version)
    found = identified(accepted(found, held), identities)
    found = found.filter(pc.is_in(found["norad_id"], own.combine_chunks()))
    return found.take(pa.array(best_sets(found, as_of_ns)))


def _is_own(sets: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(sets["originator"], OWN_ORIGINATOR), False)
