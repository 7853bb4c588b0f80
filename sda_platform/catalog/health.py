"""The state of the catalogue as a person sees it: ages, regimes, fragmentations, and jumps between element sets."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.held_lookup import newer_held_sets, why_held
from sda_platform.catalog.identity import SET_KEY, identified, identities_at
from sda_platform.catalog.lookup import UnknownObject, coverage, open_conflicts, with_orbits
from sda_platform.catalog.tables import ELEMENT_SETS, HELD, ORBITAL_CATALOG
from sda_platform.lake.lake import Lake
from sda_platform.orbits.element_jumps import KINDS, NONE, classify_jumps
from sda_platform.orbits.elements import FARTHEST_APOGEE_KM, ElementSets
from sda_platform.orchestration.materialization import in_ui, outcome_text, shown_table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.units import DAY_NS, SECOND_NS

KEY = dg.AssetKey(["reports", "catalogue"])
JUMP_DAYS = 30
"""How many days of element sets are searched for jumps."""
MOST_JUMPS_PER_1000 = 50.0
"""Jumps per thousand sets from which the check warns: real histories of debris have 6, of payloads 18."""
MOST_MEDIAN_AGE_DAYS = 3.0
"""Median age of a regime's sets from which the check warns: in a real catalogue it is 0.5 (GEO) to 1.1 days."""
LONGEST_HOLD_NS = 3 * DAY_NS
"""How long a newer set may be held before the check warns: within, most sets are followed by another."""
_SAME_SET_NS = 600 * SECOND_NS
_DEBRIS = re.compile(r"^(.+?) DEB\b")
_LEAST_FRAGMENTS = 20
_LEAST_OBJECTS = 20
_COLUMNS = [field.name for field in fields(ElementSets)]

_CHECKS = {
    "jumps_are_rare": "Few element sets of the last 30 days contradict the set before them.",
    "ages_are_usual": "In each regime half of the sets in force are younger than 3 days.",
    "orbits_are_possible": "No set in force has its perigee in the ground or its apogee out of the Earth's reach.",
    "held_sets_are_decided": "No object goes on with an older set for 3 days because a newer one is held.",
    "edits_are_founded": "No edit counts edits of its attribute that have not arrived.",
}


@dg.asset(
    key=KEY,
    group_name=ORBITAL_CATALOG.group,
    deps=[ORBITAL_CATALOG.name, ELEMENT_SETS.name],
    kinds={"matplotlib"},
    check_specs=[dg.AssetCheckSpec(name, asset=KEY, description=text) for name, text in _CHECKS.items()],
)
def catalogue_report(lake: LakeResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster accepts only the bare class as an annotation
    """Ages of element sets, objects by regime, altitude and inclination, the largest fragmentation, and jumps.

    A jump is a set that contradicts its predecessor: a manoeuvre, a bad fit or a set of another object (a cross-tag).
    On a month of real sets of debris, 2.3 manoeuvres, 3.7 bad fits and 0.1 cross-tags were reported per 1,000 sets.
    """
    return report(lake.open())


def report(store: Lake) -> dg.MaterializeResult[Any]:
    """Return the plots and tables as metadata, and the check."""
    try:
        rows = with_orbits(store)
    except UnknownObject as error:
        passed = [_check(name, True, str(error), {}) for name in _CHECKS]
        return dg.MaterializeResult(asset_key=KEY, metadata={"objects": 0}, check_results=passed)
    jumps, judged = recent_jumps(store)
    ages = coverage(rows)
    counts = Counter(row["kind"] for row in jumps)
    rate = 1000 * len(jumps) / judged if judged else 0.0
    facts: dict[str, Any] = {
        "objects": rows.num_rows,
        "coverage": shown_table(ages),
        **_plots(rows),
        "sets_judged": judged,
        **{f"jumps_{kind.replace(' ', '_').replace('-', '_')}": counts[kind] for kind in KINDS[1:]},
    }
    if jumps:
        facts["largest_jumps"] = shown_table(jumps[:20])
    is_rare = rate <= MOST_JUMPS_PER_1000
    summary = f"{len(jumps)} of {judged} sets contradict the one before ({rate:.1f} per 1,000)"
    results = [
        _check("jumps_are_rare", is_rare, summary, dict(counts)),
        ages_are_usual(ages),
        orbits_are_possible(rows),
        held_sets_are_decided(newer_held_sets(store), store.clock.now_ns()),
        edits_are_founded(open_conflicts(store)),
    ]
    return dg.MaterializeResult(asset_key=KEY, metadata=facts, check_results=results)


def ages_are_usual(ages: list[dict[str, Any]]) -> dg.AssetCheckResult:
    """Warns of regimes with a median age above MOST_MEDIAN_AGE_DAYS; ``ages`` as of `lookup.coverage`.

    Regimes of a few objects are not judged.
    """
    medians = {row["regime"]: row["median_age_days"] for row in ages if row["objects"] >= _LEAST_OBJECTS}
    late = [f"{name} {days:.1f} days" for name, days in medians.items() if days > MOST_MEDIAN_AGE_DAYS]
    text = (
        f"median age above {MOST_MEDIAN_AGE_DAYS:g} days: {', '.join(late)}" if late else "all regimes are up to date"
    )
    return _check("ages_are_usual", not late, text, medians)


def orbits_are_possible(rows: pa.Table) -> dg.AssetCheckResult:
    """Warns of sets in force whose orbit meets the ground or leaves the Earth; ``rows`` as of `lookup.with_orbits`."""
    impossible = pc.or_(pc.less(rows["perigee_km"], 0.0), pc.greater(rows["apogee_km"], FARTHEST_APOGEE_KM))
    numbers = rows["norad_id"].filter(impossible).to_pylist()
    shown = ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")
    text = f"impossible orbits: {shown}" if numbers else "every set in force is an orbit around the Earth"
    return _check("orbits_are_possible", not numbers, text, {"impossible": len(numbers)})


def held_sets_are_decided(held: list[dict[str, Any]], now_ns: int) -> dg.AssetCheckResult:
    """Warns of sets held for more than LONGEST_HOLD_NS that are newer than those in force: none follows that decides.

    ``held``: rows as of `held_lookup.newer_held_sets`.
    """
    late = [row for row in held if now_ns - row["held_since_ns"] > LONGEST_HOLD_NS]
    shown = "; ".join(f"{row['norad_id']}: {why_held(row)}" for row in late[:10])
    text = f"held for long: {shown}" if late else "no newer set has been held for long"
    return _check("held_sets_are_decided", not late, text, Counter(row["reason"] for row in held))


def edits_are_founded(claims: list[dict[str, Any]]) -> dg.AssetCheckResult:
    """Warns of edits that are held back: some edits that they count are on their way, or do not exist."""
    held = [row for row in claims if row["outcome"] == HELD]
    shown = "; ".join(
        f"{row['attribute']} of {row['norad_id']} at {row['origin']}: {row['reason']}" for row in held[:10]
    )
    text = f"held back: {shown}" if held else "every edit has what it claims to have seen"
    return _check("edits_are_founded", not held, text, {"held": len(held)})


def recent_jumps(store: Lake) -> tuple[list[dict[str, Any]], int]:
    """Return the jumps among the usable sets of the last JUMP_DAYS, the largest first, and how many sets were
    judged.
    """
    since_ns = store.clock.now_ns() - JUMP_DAYS * DAY_NS
    recent = (ds.field("epoch_time_ns") >= since_ns) & ds.field("error_kind").is_null()
    rows = store.log(ELEMENT_SETS).rows([*dict.fromkeys([*_COLUMNS, *SET_KEY]), "object_name", "originator"], recent)
    newest = store.log(ORBITAL_CATALOG).head().commit
    rows = identified(rows, identities_at(store, newest.manifest if newest else None))
    rows = rows.sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")])
    if not rows.num_rows:
        return [], 0
    ids, epochs = rows["norad_id"].to_numpy(), rows["epoch_time_ns"].to_numpy()
    is_new = np.append(True, (np.diff(ids) != 0) | (np.diff(epochs) > _SAME_SET_NS))
    rows = rows.filter(pa.array(is_new))
    found = classify_jumps(ElementSets.from_columns({name: rows[name].to_numpy() for name in _COLUMNS}))
    order = np.flatnonzero(found.kind != NONE)
    order = order[np.argsort(-found.score[order])]
    jumps = rows.select(["norad_id", "object_name", "epoch_time_ns", "originator"]).take(pa.array(order)).to_pylist()
    for row, place in zip(jumps, order.tolist(), strict=True):
        row |= {"kind": KINDS[found.kind[place]], "times_usual": float(found.score[place])}
    return jumps, int(found.is_judged.sum())


def _plots(rows: pa.Table) -> dict[str, Any]:
    # Drawing takes a second to import, which every run's process would spend.
    from sda_platform.catalog import plots

    perigee_km, apogee_km = rows["perigee_km"].to_numpy(), rows["apogee_km"].to_numpy()
    regime = np.asarray(rows["regime"].to_pylist(), np.str_)
    shown = {
        "ages": plots.ages(rows["age_days"].to_numpy(), regime),
        "altitude_by_inclination": plots.altitude_by_inclination(
            perigee_km, apogee_km, rows["inclination_deg"].to_numpy()
        ),
    }
    family = largest_family([name or "" for name in rows["object_name"].to_pylist()])
    if family:
        chosen = pc.starts_with(rows["object_name"], f"{family} DEB").fill_null(False).to_numpy(zero_copy_only=False)
        period_min = 1440 / rows["mean_motion_rev_per_day"].to_numpy()[chosen]
        shown["gabbard"] = plots.gabbard(family, period_min, perigee_km[chosen], apogee_km[chosen])
    return {name: in_ui(text) for name, text in shown.items()}


def largest_family(names: list[str]) -> str | None:
    """Return the parent with the most fragments in the catalogue, by their names; None where none has 20."""
    parents = Counter(found[1] for name in names if (found := _DEBRIS.match(name)))
    most = parents.most_common(1)
    return most[0][0] if most and most[0][1] >= _LEAST_FRAGMENTS else None


def _check(name: str, passed: bool, summary: str, facts: Mapping[str, Any]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=KEY,
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=outcome_text(summary),
        metadata=dict(facts),
    )
