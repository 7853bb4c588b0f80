"""The gate before the merge: what a commit of `held_element_sets` reads, and the sets that it holds for others."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.edit_decoding import edit_of
from sda_platform.catalog.edits import settled
from sda_platform.catalog.held_model import PLANNED
from sda_platform.catalog.holds import SET_COLUMNS, SetId, changed_holds, objects_to_judge
from sda_platform.catalog.identities import Identities
from sda_platform.catalog.identity import SET_KEY, identified, identities_around, moved_entries
from sda_platform.catalog.tables import CATALOG_EDITS, ELEMENT_SETS, HELD, HELD_ELEMENT_SETS
from sda_platform.formats.edits import RELEASE, released_sets_of
from sda_platform.lake.executors import MOST_IN_PROCESS, Given, Stored, apply, fetched
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.selections import Above, AllOf, AnyOf, OneOf, Selection
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.element_history import HISTORY_NS
from sda_platform.orbits.element_jumps import KINDS, UNSETTLED
from sda_platform.units import DAY_NS

_RECENT_NS: Final = 7 * DAY_NS
"""Most objects have had a set so long before a new one."""
_MOST_JUDGED: Final = 5_000_000
"""Of a commit with more new sets, only those of the last 60 days of mission time are judged."""


def planned_holds(store: Lake, plan: Plan) -> tuple[pa.Table, pa.Table]:
    """Return the rows of `held_element_sets` that a plan changes or adds, and those of objects that edits changed."""
    before, identities = identities_around(store, plan)
    known, moved = moved_entries(store.current_rows(plan), identities, before)
    released_before, released = _releases_around(store, plan)
    decided = {key for key, _ in released_before.items() ^ released.items()}
    again = identities.changed(before) | {
        row["norad_id"]
        for row in known.select(list(SET_KEY)).to_pylist()
        if (row["segment_sha256"], row["record_number"]) in decided
    }
    new = identified(store.new_rows(plan, ELEMENT_SETS, [*SET_KEY, "epoch_time_ns", "error_kind"]), identities)
    new = new.filter(pc.is_null(new["error_kind"]))
    if new.num_rows > _MOST_JUDGED:
        new = new.filter(pc.greater(new["epoch_time_ns"], plan.as_of_ns - 2 * HISTORY_NS))
    where = _selection(store, plan, new, known, identities, again)
    if where is None:
        return HELD_ELEMENT_SETS.content_schema.empty_table(), moved
    transform = partial(
        changed_holds,
        after_sequence=plan.window(ELEMENT_SETS).after_sequence,
        again=frozenset(again),
        released=released,
        as_of_ns=plan.as_of_ns,
    )
    number = SET_KEY[0]
    sets = Stored(ELEMENT_SETS, number, SET_COLUMNS, where, prepare=partial(identified, identities=identities))
    work = store.snapshot_rows(plan, ELEMENT_SETS, [number], where.expression()).num_rows
    return fetched(apply(store, plan, transform, sets, Given(known, number), work=work)), moved


def _selection(
    store: Lake, plan: Plan, new: pa.Table, known: pa.Table, identities: Identities, again: set[int]
) -> Selection | None:
    """Select the element sets that `changed_holds` has to see; None: no set needs to be judged.

    ``new``: number and epoch of the new sets. Of their objects it selects the 60 days before the first new set, and
    what follows up to 60 days after the last. Most objects are left out: their new sets agree with those before them.
    """
    parts: list[Selection] = []
    if again:
        parts.append(OneOf("norad_id", pa.array(sorted(identities.sources(again)), pa.int64())))
    if new.num_rows > MOST_IN_PROCESS:
        span = pc.min_max(new["epoch_time_ns"]).as_py()
        parts.append(Above("epoch_time_ns", span["min"] - 2 * HISTORY_NS, span["max"] + 2 * HISTORY_NS))
    elif new.num_rows:
        wanted = _doubtful(store, plan, new, identities) | _undecided(known)
        parts += _histories(new.filter(pc.is_in(new["norad_id"], pa.array(sorted(wanted), pa.int64()))), identities)
    return AnyOf(tuple(parts)) if parts else None


def _undecided(known: pa.Table) -> set[int]:
    """Return the objects with held sets that the next set may bear out."""
    is_open = pc.is_in(known["reason"], pa.array([PLANNED, KINDS[UNSETTLED]]))
    return set(known["norad_id"].filter(pc.and_(pc.equal(known["outcome"], HELD), is_open)).to_pylist())


def _doubtful(store: Lake, plan: Plan, new: pa.Table, identities: Identities) -> set[int]:
    after, upto = plan.window(ELEMENT_SETS).after_sequence, plan.window(ELEMENT_SETS).upto_sequence
    is_recent = ds.field("epoch_time_ns") > pc.min(new["epoch_time_ns"]).as_py() - _RECENT_NS
    is_read = is_recent & (ds.field(COMMIT_SEQUENCE) <= upto) & ds.field("error_kind").is_null()
    rows = identified(store.log(ELEMENT_SETS).rows(list(SET_COLUMNS), is_read), identities)
    rows = rows.filter(pc.is_in(rows["norad_id"], pc.unique(new["norad_id"])))
    return objects_to_judge(rows, after)


def _histories(new: pa.Table, identities: Identities) -> Iterator[Selection]:
    """Yield selections of the histories of ``new`` sets, by the months of an object's first and last one.

    So an object with an old set does not extend the others' histories.
    """
    spans = new.group_by("norad_id").aggregate([("epoch_time_ns", "min"), ("epoch_time_ns", "max")])
    months = [spans[f"epoch_time_ns_{end}"].to_numpy() // HISTORY_NS for end in ("min", "max")]
    for first, last in np.unique(months, axis=1).T.tolist():
        numbers = spans["norad_id"].filter(pa.array((months[0] == first) & (months[1] == last))).to_pylist()
        sources = OneOf("norad_id", pa.array(sorted(identities.sources(numbers)), pa.int64()))
        yield AllOf((Above("epoch_time_ns", (first - 2) * HISTORY_NS, (last + 3) * HISTORY_NS), sources))


def _releases_around(store: Lake, plan: Plan) -> tuple[dict[SetId, str], dict[SetId, str]]:
    """Return who has released which sets, before ``plan`` and with the edits that it consumes."""
    window = plan.window(CATALOG_EDITS)
    now = _releases(store, window.upto_sequence)
    return (now if window.is_empty else _releases(store, window.after_sequence)), now


def _releases(store: Lake, sequence: int) -> dict[SetId, str]:
    if not sequence:
        return {}
    where = (ds.field(COMMIT_SEQUENCE) <= sequence) & ds.field("error_kind").is_null()
    rows = store.log(CATALOG_EDITS).rows(None, where & (ds.field("attribute") == RELEASE)).to_pylist()
    found: dict[SetId, str] = {}
    for edit in settled(map(edit_of, rows)):
        found |= dict.fromkeys(released_sets_of(edit.value), edit.editor or edit.origin)
    return found


def held_upto(store: Lake, manifest: CommitManifest | None) -> pa.Table:
    """Return SET_KEY of the sets that were held for a commit that consumes `held_element_sets`; none without one."""
    window = manifest.window(HELD_ELEMENT_SETS.name) if manifest else None
    return _held(store, window.upto_version if window else -1)


def held_by(store: Lake, plan: Plan) -> pa.Table:
    """Return SET_KEY of the sets that are held for a plan; none for one that repeats a commit from before the gate."""
    window = next((each for each in plan.windows if each.table == HELD_ELEMENT_SETS.name), None)
    return _held(store, window.upto_version if window else -1)


def objects_with_other_holds(store: Lake, plan: Plan) -> set[int]:
    """Return the objects of which the plan's window on `held_element_sets` holds, or no longer holds, sets."""
    if all(each.table != HELD_ELEMENT_SETS.name for each in plan.windows):
        return set()
    return set(store.new_rows(plan, HELD_ELEMENT_SETS, ["norad_id"])["norad_id"].to_pylist())


def accepted(sets: pa.Table, held: pa.Table) -> pa.Table:
    """``sets`` without those that are ``held``; both have segment and record."""
    return sets.filter(pc.invert(are_held(sets, held)))


def are_held(sets: pa.Table, held: pa.Table) -> pa.Array:
    """Return whether each of ``sets`` is among those ``held``."""
    # Few sets are held: only those of their segments are compared by both.
    of_segment = pc.is_in(sets["segment_sha256"].combine_chunks(), held["segment_sha256"].combine_chunks())
    return pc.is_in(_keys(sets), _keys(held)) if pc.any(of_segment).as_py() else of_segment


def _keys(sets: pa.Table) -> pa.Array:
    records = pc.cast(sets["record_number"].combine_chunks(), pa.string())
    return pc.binary_join_element_wise(sets["segment_sha256"].combine_chunks(), records, ":")


def _held(store: Lake, version: int) -> pa.Table:
    is_held = ds.field("outcome") == HELD
    return store.log(HELD_ELEMENT_SETS).rows(list(SET_KEY), is_held, version)
