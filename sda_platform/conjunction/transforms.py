"""Transforms of package conjunction: Arrow in, Arrow out, no Spark."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, alerts_of, events_table
from sda_platform.conjunction.identity import identified
from sda_platform.conjunction.planning import Screening
from sda_platform.conjunction.stated_encounters import STATED
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
)
from sda_platform.lake.correction_log import content, corrected, current_rows, fact_names, last_rows
from sda_platform.units import DAY_NS

EVENT, PAIR = "event_id", "pair"
REVIEWED_BEFORE_NS = DAY_NS
"""Entries of one event lie nearer together than this, so that all of an event that a screening can move are read."""
ASSESSMENT_COLUMNS = (*ASSESSED_COLUMNS, "sequence", "op")
"""The columns of `conjunction_assessments` that `alert_corrections` takes."""
Assess = Callable[[pa.Table], pa.Table]
"""Assesses candidates; see `assess.assessor`."""


def with_pair(events: pa.Table) -> pa.Table:
    """``events`` with PAIR, which is the same whichever of its objects comes first."""
    one, other = events["norad_id_1"], events["norad_id_2"]
    ends = (pc.cast(each(one, other), pa.string()) for each in (pc.min_element_wise, pc.max_element_wise))
    return events.append_column(PAIR, pc.binary_join_element_wise(*ends, "/"))


def candidate_corrections(
    found: pa.Table, entries: pa.Table, named: pa.Table, *, screening: Screening, as_of_ns: int
) -> pa.Table:
    """Compute the entries that a screening adds: new and moved events, and retracts of the ones not found again.

    ``found`` has the approaches (`screen.approaches`), ``entries`` those of `conjunction_candidates` after
    REVIEWED_BEFORE_NS before the span. ``named`` has the events that have an id by a received message only
    (`stated_encounters.named_by_messages`). Each has all rows of its pairs.
    """
    near = entries.filter(_is_screened(entries, screening))
    last = last_rows(near, EVENT)
    known = pa.concat_tables([each.select(_IDENTIFYING) for each in (last, named)], promote_options="permissive")
    fresh = identified(found, known)
    # An event whose TCA moved into the span keeps its id, like an event that was inside.
    is_covered = pc.and_(
        pc.greater_equal(last["tca_time_ns"], screening.start_ns), pc.less(last["tca_time_ns"], screening.end_ns)
    )
    reviewed = pc.or_(is_covered, pc.is_in(last[EVENT], value_set=fresh[EVENT].combine_chunks()))
    ids = last[EVENT].filter(reviewed).combine_chunks()
    return corrected(
        CONJUNCTION_CANDIDATES,
        near.filter(pc.is_in(near[EVENT], value_set=ids)),
        fresh.select(fact_names(CONJUNCTION_CANDIDATES)),
        as_of_ns=as_of_ns,
    )


_IDENTIFYING = (EVENT, "norad_id_1", "norad_id_2", "tca_time_ns")


def assessment_corrections(candidates: pa.Table, entries: pa.Table, *, assess: Assess, as_of_ns: int) -> pa.Table:
    """Assess the current ``candidates`` anew; retract events of ``entries`` without one."""
    fresh = assess(current_rows(candidates, EVENT))
    return corrected(CONJUNCTION_ASSESSMENTS, entries, fresh, as_of_ns=as_of_ns)


def alert_corrections(
    assessments: pa.Table, entries: pa.Table, stated: pa.Table, *, policy: AlertPolicy, as_of_ns: int
) -> pa.Table:
    """Bring the alerts of some events to what ``policy`` says at ``as_of_ns``.

    ``assessments`` (ASSESSMENT_COLUMNS) and ``entries`` are all of these events; ``stated`` has what received messages
    state of some of them: EVENT and `STATED`.
    """
    assessed = _by_event(current_rows(assessments, EVENT), ASSESSED_COLUMNS)
    sent = _by_event(current_rows(entries, EVENT), content(CONJUNCTION_ALERTS))
    messages = dict(zip(stated[EVENT].to_pylist(), stated[STATED].to_pylist(), strict=True))
    fresh = alerts_of(events_table(assessed, messages, sent), policy, as_of_ns)
    return corrected(CONJUNCTION_ALERTS, entries, fresh, as_of_ns=as_of_ns)


def _by_event(rows: pa.Table, columns: Collection[str]) -> dict[str, dict[str, Any]]:
    facts = rows.select([name for name in columns if name != EVENT]).to_pylist()
    return dict(zip(rows[EVENT].to_pylist(), facts, strict=True))


def _is_screened(entries: pa.Table, screening: Screening) -> pa.ChunkedArray | pa.Array:
    if screening.changed is None:
        return pa.array(np.ones(entries.num_rows, np.bool_))
    changed = pa.array(sorted(screening.changed), pa.int64())
    return pc.or_(*(pc.is_in(entries[f"norad_id_{number}"], value_set=changed) for number in (1, 2)))
