"""Assets of package catalog: landing zone → element_sets → orbital_catalog; landing zone → ephemerides."""

from collections.abc import Collection, Sequence
from functools import cache, partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog import conflicts, decoding, edit_decoding, ephemeris_decoding, error_history, transforms
from sda_platform.catalog.checks import (
    CATALOGUE_IS_FRESH,
    EPOCHS_ARE_RECENT,
    MAX_ELEMENTS_AGE_S,
    catalog_balance,
    held_sets_have_landed,
    no_silent_winner,
)
from sda_platform.catalog.gate import accepted, held_by, objects_with_other_holds, planned_holds
from sda_platform.catalog.identities import Identities
from sda_platform.catalog.identity import SET_KEY, identified, identities_around, moved_entries
from sda_platform.catalog.names import renamed_objects, with_names
from sda_platform.catalog.orbits import catalogued, designated
from sda_platform.catalog.report import conflict_facts, held_facts
from sda_platform.catalog.satellites import (
    changed_satellites,
    decay_edits,
    known_decays,
    objects_with_other_decays,
    with_decays,
)
from sda_platform.catalog.satellites import decode as decode_satellites
from sda_platform.catalog.sites_resource import SitesResource
from sda_platform.catalog.tables import (
    CAME_INTO_FORCE,
    CATALOG_CONFLICTS,
    CATALOG_EDITS,
    EDITS_FEED,
    ELEMENT_SETS,
    ELEMENTS,
    ELEMENTS_FEED,
    EPHEMERIDES,
    EPHEMERIDES_FEED,
    HELD_ELEMENT_SETS,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
    SATELLITE_RECORDS,
    SATELLITES_FEED,
)
from sda_platform.lake.executors import Given, Stored, Transform, apply, fetched
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.decoding import one_by_one
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.orchestration.landing_table import Decoding, land, landing_asset
from sda_platform.orchestration.leases import LeaseResource, without_leases
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.zone_asset import ZoneContents, zone_asset


@landing_asset(
    ELEMENT_SETS,
    jobs=[CATALOG_TO_ALERTS],
    zones={
        ELEMENTS_FEED: ZoneContents(
            "Element sets as files: OMM in CSV, JSON, KVN or XML, two- and three-line sets.",
            replayable="yes",
            ordering="none",
        )
    },
    freshness=CATALOGUE_IS_FRESH,
)
def element_sets(_store: Lake) -> Decoding:
    """Every element set that arrived, kept without limit; an unusable one has its error."""
    return Decoding(one_by_one(decoding.decode))


@landing_asset(
    EPHEMERIDES,
    jobs=[CATALOG_TO_ALERTS],
    zones={
        EPHEMERIDES_FEED: ZoneContents(
            "Ephemerides of operators (CCSDS 502.0: OEM, OPM) in KVN or XML, and as tables (STK, MEME, CPF, SP3).",
            replayable="yes",
            ordering="none",
        )
    },
)
def ephemerides(store: Lake) -> Decoding:
    """Ephemerides as operators send them: states with their covariances, TEME and UTC, one row each.

    An ephemeris with an error in any state or covariance is refused as a whole; others of the same file are not. One
    with gaps is used between them, and a single state is propagated for a day.
    An object that is named by its international designator, or only by the file's name, is looked up in the catalogue.
    """
    catalogue = store.head(ORBITAL_CATALOG)
    numbers = designated(store, catalogue.version)
    known = cache(lambda: catalogued(store, catalogue.version))  # few ephemerides are named by their file alone
    decode = ephemeris_decoding.decoder(lambda designator: numbers.get(designator, ()), lambda n: n in known())
    return Decoding(one_by_one(decode), observed=((ORBITAL_CATALOG, catalogue),))


@landing_asset(
    SATELLITE_RECORDS,
    jobs=[CATALOG_TO_ALERTS],
    zones={
        SATELLITES_FEED: ZoneContents(
            "Satellite catalogues (SATCAT) and decay messages of CelesTrak and Space-Track, CSV or JSON.",
            replayable="yes",
            ordering="none",
        )
    },
    freshness=DataFreshness.unscheduled("objects are catalogued, and decay, as it happens"),
    priority=-10,
)
def satellite_records(_store: Lake) -> Decoding:
    """Every record of a satellite catalogue, and every decay message, kept without limit."""
    return Decoding(one_by_one(decode_satellites))


@table_asset(SATELLITE_CATALOG, jobs=[CATALOG_TO_ALERTS], max_wait_s=MAX_ELEMENTS_AGE_S, priority=-5)
def satellite_catalog(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Type, owner, launch, decay, size and status of each object: of each fact what was stated last.

    An edit decides on a decay, whatever sources state (`sda catalog retire`, `sda catalog restore`).
    """
    store = lake.open()
    plan = store.plan(SATELLITE_CATALOG)
    if plan.is_empty:
        return nothing_new(store, plan)
    records = [row for row in store.new_rows(plan, SATELLITE_RECORDS).to_pylist() if row["error_kind"] is None]
    rows = changed_satellites(store.current_rows(plan).to_pylist(), records, decay_edits(store, plan))
    return materialized(store, store.replace(plan, pa.Table.from_pylist(rows, SATELLITE_CATALOG.content_schema)))


@table_asset(
    HELD_ELEMENT_SETS,
    jobs=[CATALOG_TO_ALERTS],
    balance=[held_sets_have_landed],
    max_wait_s=MAX_ELEMENTS_AGE_S,
)
def held_element_sets(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Element sets that are not merged: implausible ones, plans of manoeuvres, and what contradicts an object's past.

    A set far off those before it is held until the next one agrees with it: the object has manoeuvred. Otherwise it is
    a bad fit, or of another object (a cross-tag). Meanwhile the object goes on with its last accepted set.
    """
    store = lake.open()
    plan = store.plan(HELD_ELEMENT_SETS)
    if plan.is_empty:
        return nothing_new(store, plan)
    changed, moved = planned_holds(store, plan)
    receipt = store.replace(plan, changed, removed=moved)
    return materialized(store, receipt, **held_facts(store.log(HELD_ELEMENT_SETS)))


@table_asset(
    ORBITAL_CATALOG,
    jobs=[CATALOG_TO_ALERTS],
    balance=[catalog_balance],
    freshness=EPOCHS_ARE_RECENT,
    stand_ins=without_leases,
)
def orbital_catalog(lake: LakeResource, leases: LeaseResource) -> dg.MaterializeResult[Any]:
    """The element set in force of each object: the latest epoch that has come, then source priority and set number.

    With it, how large the errors of the object's sets are, from their own history of 30 days before that epoch.

    Edits name objects, and decide which object a set is of: those of a merged satellite count for the one that it is,
    and corrected ones for the right object (`sda catalog edit`). Decays are those of the satellite catalogue: from then
    on an object is neither screened nor tasked.

    All sets stay in `element_sets`, as published. The catalogue of any moment is an earlier version of this table. A
    set with a later epoch comes into force with the first run after it, at least hourly; the manifest counts these.

    Of several platforms the one that holds the lease merges; the table refuses a former holder.
    """
    with leases.guarded(lake.open(), ORBITAL_CATALOG.name) as store:
        return _merged(store)


def _merged(store: Lake) -> dg.MaterializeResult[Any]:
    plan = store.plan(ORBITAL_CATALOG)
    came_into_force = _came_into_force(store, plan)
    if plan.is_empty and not came_into_force:
        return nothing_new(store, plan)
    before, identities = identities_around(store, plan)
    changed, moved = changed_entries(store, plan, before, identities)
    if plan.is_empty and not changed.num_rows:
        return nothing_new(store, plan, "nothing new upstream, and no better set came into force")
    counts = {CAME_INTO_FORCE: came_into_force}
    return materialized(store, store.replace(plan, changed, removed=moved, counts=counts), **counts)


def changed_entries(store: Lake, plan: Plan, before: Identities, identities: Identities) -> tuple[pa.Table, pa.Table]:
    """Return the entries of the catalogue that a plan changes or adds, and those that edits gave or took sets."""
    known, moved = moved_entries(store.current_rows(plan), identities, before)
    decays = known_decays(store, plan)
    again = objects_with_other_decays(store, plan, known, decays) | objects_with_other_holds(store, plan)
    again |= renamed_objects(store, plan)
    known, _ = moved_entries(known, identities, identities, again)
    improvements = partial(transforms.improvements, as_of_ns=plan.as_of_ns)
    sets = _applied(store, plan, improvements, transforms.SET_COLUMNS, known, (before, identities), again)
    found = with_names(store, plan, with_decays(sets, decays))
    return error_history.with_error_scales(store, plan, found, known, identities), moved


def _applied(
    store: Lake,
    plan: Plan,
    transform: Transform,
    columns: Sequence[str],
    current: pa.Table,
    identities: tuple[Identities, Identities],
    again: Collection[int] = (),
) -> pa.Table:
    """Apply ``transform`` to the element sets that the plan judges and the ``current`` rows of its table.

    The sets have the numbers of the objects that they are of. ``identities``: those before the plan, and with it. Of
    the objects ``again`` all sets are judged.
    """
    before, now = identities
    held = held_by(store, plan)
    in_play = transforms.in_play(
        after_sequence=plan.window(ELEMENT_SETS).after_sequence,
        previous_as_of_ns=plan.previous.as_of_ns if plan.previous else None,
        as_of_ns=plan.as_of_ns,
        again=now.sources(now.changed(before) | set(again)),
    )
    number = SET_KEY[0]
    read = tuple(dict.fromkeys([*columns, *SET_KEY]))
    sets = Stored(ELEMENT_SETS, number, read, in_play, prepare=partial(_admitted, identities=now, held=held))
    judged = store.snapshot_rows(plan, ELEMENT_SETS, [number], in_play.expression()).num_rows
    return fetched(apply(store, plan, transform, sets, Given(current, number), work=judged + current.num_rows))


def _admitted(sets: pa.Table, identities: Identities, held: pa.Table) -> pa.Table:
    return identified(accepted(sets, held), identities)


_EDITS = ZoneContents(
    "Edits of catalogue objects as lines of JSON, made here or at another site.", replayable="yes", ordering="none"
)


@table_asset(
    CATALOG_EDITS,
    jobs=[CATALOG_TO_ALERTS],
    zones=[zone_asset(EDITS_FEED, _EDITS, CATALOG_EDITS, CATALOG_TO_ALERTS)],
    freshness=DataFreshness.unscheduled("edits follow no schedule"),
    priority=-10,
)
def catalog_edits(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource, sites: SitesResource
) -> dg.MaterializeResult[Any]:
    """Every edit of a catalogue object that an analyst made, here or at another site, kept for ever.

    Edits carry the site that made them and a version vector. Which of them hold is in `catalog_conflicts`. Where sites
    have keys (`SDA_SITES`), an edit that is not signed by its site is a row with an error.
    """
    keys = sites.known()
    decoder = one_by_one(edit_decoding.decoder(keys))
    recorded = {"sites": sites.recorded()} if keys else None
    return land(lake, landing, CATALOG_EDITS, decoder, report=context.log_event, settings=recorded)


@table_asset(
    CATALOG_CONFLICTS,
    jobs=[CATALOG_TO_ALERTS],
    balance=[no_silent_winner],
    max_wait_s=MAX_ELEMENTS_AGE_S,
    priority=-10,
)
def catalog_conflicts(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """What each source and each edit claims of an object, and why it does not hold where it does not.

    Of several sources one is in force, by the catalogue's total order, whatever originators their sets name; the others
    have lost, each with its reason. Edits that were made apart and differ are concurrent: none wins until a person
    decides (`sda catalog resolve`).
    """
    store = lake.open()
    plan = store.plan(CATALOG_CONFLICTS)
    came_into_force = _came_into_force(store, plan)
    if plan.is_empty and not came_into_force:
        return nothing_new(store, plan)
    before, identities = identities_around(store, plan)
    current = store.current_rows(plan)
    edits = conflicts.edit_claims(store.new_rows(plan, CATALOG_EDITS), current)
    again = objects_with_other_holds(store, plan) | conflicts.objects_of_earlier_claims(current)
    known, moved = moved_entries(current.filter(pc.equal(current["attribute"], ELEMENTS)), identities, before, again)
    claims = partial(conflicts.element_claims, as_of_ns=plan.as_of_ns)
    elements = _applied(store, plan, claims, conflicts.SET_COLUMNS, known, (before, identities), again)
    changed = pa.concat_tables([elements.cast(edits.schema), edits])
    if plan.is_empty and not changed.num_rows:
        return nothing_new(store, plan, "nothing new upstream, and no better set came into force")
    counts = {CAME_INTO_FORCE: came_into_force}
    receipt = store.replace(plan, changed, removed=moved, counts=counts)
    return materialized(store, receipt, **counts, **conflict_facts(store.log(CATALOG_CONFLICTS)))


def _came_into_force(store: Lake, plan: Plan) -> int:
    """Return the number of usable sets, consumed by an earlier commit, that came into force since the last commit.

    It is read from the stored table, without the engine.
    """
    if plan.previous is None:
        return 0
    epoch = ds.field("epoch_time_ns")
    since_ns, until_ns = (time_ns + EPOCH_TOLERANCE_NS for time_ns in (plan.previous.as_of_ns, plan.as_of_ns))
    is_consumed = ds.field(COMMIT_SEQUENCE) <= plan.window(ELEMENT_SETS).after_sequence
    is_due = is_consumed & (epoch > since_ns) & (epoch <= until_ns) & ds.field("error_kind").is_null()
    return int(store.log(ELEMENT_SETS).rows(["norad_id"], is_due).num_rows)
