"""How large the errors of an object's element sets are, from the sets that the catalogue's commit consumed."""

from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.gate import accepted, held_by
from sda_platform.catalog.identities import NO_IDENTITIES, Identities
from sda_platform.catalog.identity import SET_KEY, identified, published_as
from sda_platform.catalog.merge import RANK_COLUMNS
from sda_platform.catalog.tables import ELEMENT_SETS, HISTORY_COLUMNS, ORBITAL_CATALOG
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.element_history import HISTORY_NS, newest_scales
from sda_platform.orbits.elements import ElementSets

_COLUMNS = [*ELEMENT_COLUMNS, *RANK_COLUMNS]


def with_error_scales(
    store: Lake, plan: Plan, changed: pa.Table, current: pa.Table, identities: Identities = NO_IDENTITIES
) -> pa.Table:
    """``changed`` entries with HISTORY_COLUMNS, and ``current`` ones whose history a late set has changed.

    The history of an entry are the consumed sets of its object up to its own epoch, whenever they arrived. Held sets
    are left out, and those that this platform determined: they are made from others.
    """
    arrived = identified(store.new_rows(plan, ELEMENT_SETS, [*SET_KEY, "error_kind"]), identities)
    touched = pa.concat_tables(
        [arrived.filter(pc.is_null(arrived["error_kind"])).select(["norad_id"]), changed.select(["norad_id"])]
    )
    numbers = pc.unique(touched["norad_id"])
    is_other = pc.invert(pc.is_in(current["norad_id"], changed["norad_id"].combine_chunks()))
    others = current.filter(pc.and_(pc.is_in(current["norad_id"], numbers), is_other))
    return rated(changed, others, _consumed_history(store, plan, identities, changed, others))


def rated(changed: pa.Table, others: pa.Table, history: pa.Table) -> pa.Table:
    """Compute HISTORY_COLUMNS of ``changed`` entries by ``history``; add the ``others`` whose values change."""
    schema = ORBITAL_CATALOG.content_schema
    plain = [name for name in schema.names if name not in HISTORY_COLUMNS]
    rows = pa.concat_tables([changed.select(plain), others.select(plain)], promote_options="permissive")
    for name, values in _scales(rows, history).items():
        rows = rows.append_column(name, values)
    rows = rows.select(schema.names).cast(schema)
    known = rows.slice(changed.num_rows)
    is_same = [pc.fill_null(pc.equal(known[name], others[name]), False) for name in HISTORY_COLUMNS]
    return pa.concat_tables([rows.slice(0, changed.num_rows), known.filter(pc.invert(reduce(pc.and_, is_same)))])


def _consumed_history(store: Lake, plan: Plan, identities: Identities, *parts: pa.Table) -> pa.Table:
    """Return the usable sets that the plan has consumed, of the objects of the entries in ``parts``; none is missing of
    the HISTORY_NS before each entry's epoch.

    Some objects have had no set for years. Entries are read by the month of their epochs, so that such an object does
    not extend the others' histories.
    """
    columns = [part.select(["norad_id", "epoch_time_ns"]) for part in parts]
    entries = pa.concat_tables(columns, promote_options="permissive")
    months = entries["epoch_time_ns"].to_numpy() // HISTORY_NS
    epoch = ds.field("epoch_time_ns")
    of_months = [
        published_as(identities, entries["norad_id"].filter(pa.array(months == month)).to_pylist())
        & (epoch > (month - 1) * HISTORY_NS)
        & (epoch < (month + 1) * HISTORY_NS)
        for month in np.unique(months).tolist()
    ]
    is_usable = ds.field("error_kind").is_null()
    is_usable &= ds.field(COMMIT_SEQUENCE) <= plan.window(ELEMENT_SETS).upto_sequence
    found = store.log(ELEMENT_SETS).rows(_COLUMNS, is_usable & reduce(or_, of_months, ds.scalar(value=False)))
    return identified(accepted(found, held_by(store, plan)), identities)


def _scales(entries: pa.Table, history: pa.Table) -> dict[str, pa.Array]:
    """HISTORY_COLUMNS of entries (n,): ones and no differences for objects without a history."""
    scale, number = np.ones((entries.num_rows, 3)), np.zeros(entries.num_rows, np.int64)
    ids = entries["norad_id"].to_numpy()
    if history.num_rows and len(ids):
        sets = history.filter(pc.not_equal(pc.fill_null(history["originator"], ""), OWN_ORIGINATOR))
        order = [("norad_id", "ascending"), *((name, "descending") for name in RANK_COLUMNS)]
        sets = sets.sort_by(order)
        elements = ElementSets.from_columns(arrays(sets, ELEMENT_COLUMNS))
        by_id = np.argsort(ids)
        place = np.minimum(np.searchsorted(ids, elements.norad_id, sorter=by_id), len(ids) - 1)
        entry = by_id[place]
        until_ns = entries["epoch_time_ns"].to_numpy()[entry]
        is_own = (ids[entry] == elements.norad_id) & (elements.epoch_time_ns <= until_ns)
        # Where the entry is a set of our own, other sets are older: they count by the entry's epoch as well.
        is_own &= elements.epoch_time_ns > until_ns - HISTORY_NS
        found, scales, counts = newest_scales(elements.take(np.flatnonzero(is_own)))
        rows = by_id[np.searchsorted(ids, found, sorter=by_id)]
        scale[rows], number[rows] = scales, counts
    return dict(zip(HISTORY_COLUMNS, [*(pa.array(column) for column in scale.T), pa.array(number)], strict=True))
