"""Assets of conjunctions: catalogue → candidates → assessments (with tracks) → alerts; landing zone → received_cdms."""

from collections import Counter
from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import catalogue_ahead, designated, identities_in, sets_ahead
from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG, SATELLITE_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction import acknowledgement_decoding, cdm_decoding, planning, review, screen
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.checks import (
    SCREENING_IS_FRESH,
    alerts_follow_assessments,
    assessments_follow_candidates,
    risks_follow_probabilities,
)
from sda_platform.conjunction.manoeuvred_paths import paths_by_tracks, suspected_tracks
from sda_platform.conjunction.operator_ephemerides import ephemerides_read, objects_with_new_ephemerides
from sda_platform.conjunction.refined_ephemerides import (
    objects_with_new_refined,
    of_fleet,
    refined_ephemerides,
    refined_read,
)
from sda_platform.conjunction.resource import AlertingResource, ScreeningResource
from sda_platform.conjunction.stated_encounters import as_rows, named_by_messages, statements
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.conjunction.tables import (
    ACKNOWLEDGEMENTS_FEED,
    ALERT_ACKNOWLEDGEMENTS,
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    MESSAGES_FEED,
    RECEIVED_CDMS,
)
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.conjunction.transforms import (
    ASSESSMENT_COLUMNS,
    EVENT,
    PAIR,
    REVIEWED_BEFORE_NS,
    alert_corrections,
    assessment_corrections,
    candidate_corrections,
    with_pair,
)
from sda_platform.fusion.tables import ALIVE, TRACKS
from sda_platform.lake.executors import Given, Stored, apply, prepared
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import sequence_read, snapshot_of
from sda_platform.lake.selections import Above, OneOf
from sda_platform.landing.decoding import one_by_one
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.landing_table import Decoding, landing_asset
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.zone_asset import ZoneContents
from sda_platform.recovery.verification import broken_correction_logs, current_keys

# In raw records (`executors.apply`).
_WORK_OF_A_CANDIDATE, _WORK_OF_AN_EVENT = 4, 40


@landing_asset(
    RECEIVED_CDMS,
    jobs=[CATALOG_TO_ALERTS],
    zones={
        MESSAGES_FEED: ZoneContents(
            "Conjunction data messages (CCSDS 508.0) of other organisations, in KVN or XML.",
            replayable="yes",
            ordering="none",
        )
    },
)
def received_cdms(store: Lake) -> Decoding:
    """Conjunction data messages of other organisations, each with its stated and its computed Pc.

    A message and an event are one encounter if pair and TCA agree. `sda alert show` and the plots then show both. The
    check `others_agree` compares their risk with ours. An object that is named by its international designator is
    looked up in the catalogue.
    """
    catalogue = store.head(ORBITAL_CATALOG)
    numbers = designated(store, catalogue.version)
    decoder = one_by_one(cdm_decoding.decoder(lambda designator: numbers.get(designator, ())))
    return Decoding(decoder, observed=((ORBITAL_CATALOG, catalogue),))


@landing_asset(
    ALERT_ACKNOWLEDGEMENTS,
    jobs=[CATALOG_TO_ALERTS],
    zones={
        ACKNOWLEDGEMENTS_FEED: ZoneContents(
            "Acknowledgements of alerts as lines of JSON, made by `sda alert ack`.", replayable="yes", ordering="none"
        )
    },
    freshness=DataFreshness.unscheduled("people acknowledge when they want to"),
    priority=-10,
)
def alert_acknowledgements(_store: Lake) -> Decoding:
    """Who acknowledged which revision of which alert, and what that person remarked; kept for ever.

    `sda alert ack` makes them. They change no alert, and are not sent to the subscriber.
    """
    return Decoding(one_by_one(acknowledgement_decoding.decode))


@table_asset(
    CONJUNCTION_CANDIDATES,
    jobs=[CATALOG_TO_ALERTS],
    balance=[broken_correction_logs],
    freshness=SCREENING_IS_FRESH,
)
def conjunction_candidates(
    lake: LakeResource, screening: ScreeningResource, weather: SpaceWeatherResource
) -> dg.MaterializeResult[Any]:
    """Every approach within the screening volume and the horizon: of the fleet, or of all objects.

    At each time of the horizon the set in force then counts: a set with a later epoch takes over at its epoch. An
    operator's ephemeris with covariances takes the place of the sets within its usable span, and its object is screened
    like one of the fleet. Our own ephemerides of members of the fleet take the place of their sets for a day, below
    those of operators. Objects with new sets or ephemerides are screened at once. An object whose track shows a
    suspected manoeuvre is screened on the track for a day, within sigmas of its covariance. All objects are screened
    again when the horizon has moved.
    """
    store = lake.open()
    here = weather.near(store.clock.now_ns())
    settings = {planning.SETTINGS: screening.recorded(), "weather": here.recorded()}
    plan = store.plan(CONJUNCTION_CANDIDATES, settings=settings)
    changed = set(store.new_rows(plan, ORBITAL_CATALOG, ["norad_id"]).column("norad_id").to_pylist())
    fleet = screening.fleet_norad_ids()
    changed |= {*objects_with_new_ephemerides(store, plan), *(set(objects_with_new_refined(store, plan)) & set(fleet))}
    upto_ns, sets = plan.as_of_ns + screening.horizon_ns, planning.sets_read(plan)
    version = plan.window(ORBITAL_CATALOG).upto_version
    catalogue, identities = catalogue_ahead(store, version, sets, upto_ns), identities_in(store, version)
    new_after = sequence_read(plan.previous, ELEMENT_SETS)
    ahead = sets_ahead(store, ["norad_id"], sets, plan.as_of_ns, upto_ns, new_after=new_after, identities=identities)
    # A merged satellite has left the catalogue: its events go with it.
    changed |= {*ahead.column("norad_id").to_pylist(), *identities.merges}
    suspected, newly = suspected_tracks(store, plan, is_wanted=screening.manoeuvre_sigmas > 0)
    bounds = {"horizon_ns": screening.horizon_ns, "refresh_ns": screening.refresh_ns}
    task = planning.decide(plan, changed, catalogue.objects, manoeuvred=newly, **bounds)
    if task is None:
        return nothing_new(store, plan)
    refined = refined_ephemerides(of_fleet(refined_read(store, plan), fleet), catalogue, suspected, plan.as_of_ns)
    stated = refined.and_paths(ephemerides_read(store, plan))
    by_tracks = paths_by_tracks(suspected, catalogue, stated, here.dynamics(), plan.as_of_ns)
    paths = StatedPaths.of(catalogue, stated, by_tracks)
    work = screen.sweeps(
        paths,
        fleet,
        task.changed,
        scope=screening.scope,
        volumes=screening.screening_volumes(),
        objects_per_task=screening.objects_per_task,
        manoeuvre_sigmas=screening.manoeuvre_sigmas,
        reach_km=screening.reach_km,
    )
    found = screen.findings(
        store.session,
        paths,
        work,
        fleet,
        start_ns=task.start_ns,
        end_ns=task.end_ns,
        fleet_internal=screening.fleet_internal,
        at_once=screening.at_once,
    ).persist()
    try:
        approaches = screen.approaches(found)
        reviewed = Above("tca_time_ns", task.start_ns - REVIEWED_BEFORE_NS)
        entries = apply(
            store,
            plan,
            partial(candidate_corrections, screening=task, as_of_ns=plan.as_of_ns),
            Given(prepared(approaches, with_pair), PAIR),
            Stored(CONJUNCTION_CANDIDATES, PAIR, where=reviewed, prepare=with_pair),
            Given(with_pair(named_by_messages(store, plan, task.start_ns)), PAIR),
            work=_WORK_OF_A_CANDIDATE * approaches.count(),
        )
        counts = {
            "objects": catalogue.objects,
            "changed": len(changed),
            "fleet": len(fleet),
            "with_refined_ephemeris": len(refined.norad_id),
            "with_ephemeris": len(paths.margins_km.keys() - paths.manoeuvred),
            "manoeuvred": len(paths.manoeuvred),
        }
        receipt = store.append(plan, entries, counts=counts, watermarks=planning.marks_after(plan, task))
        further = screen.further_results(found)
    finally:
        found.unpersist()
    return materialized(
        store,
        receipt,
        screening="full" if task.is_full else "changed objects",
        span=f"{iso(task.start_ns)} to {iso(task.end_ns)}",
        who="all against all" if screening.scope == "all" else "the fleet against all",
        within=screening.how_near,
        **further,
        **counts,
    )


@table_asset(
    CONJUNCTION_ASSESSMENTS,
    jobs=[OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS],
    balance=[broken_correction_logs, assessments_follow_candidates, risks_follow_probabilities],
)
def conjunction_assessments(
    lake: LakeResource, screening: ScreeningResource, weather: SpaceWeatherResource
) -> dg.MaterializeResult[Any]:
    """Each candidate with the best known states: geometry in RTN at the refined TCA, Pc, risk level.

    A confirmed track replaces the element set if its covariance at TCA is smaller. An operator's ephemeris with
    covariances replaces both inside its usable span, unless the track's covariance is smaller. Without one, our own
    ephemeris of a tracked object does. When a track or an ephemeris is new, every open event of its object is assessed
    again.
    """
    store = lake.open()
    here = weather.near(store.clock.now_ns())
    plan = store.plan(
        CONJUNCTION_ASSESSMENTS, settings={planning.SETTINGS: screening.recorded(), "weather": here.recorded()}
    )
    if plan.is_empty:
        return nothing_new(store, plan)
    tracked = pc.unique(store.new_rows(plan, TRACKS, ["norad_id"]).column("norad_id")).to_pylist()
    announced = [*objects_with_new_ephemerides(store, plan), *objects_with_new_refined(store, plan)]
    alive = ds.field("state").isin(ALIVE)
    tracks = store.log(TRACKS).rows(TRACK_COLUMNS, alive, version=plan.window(TRACKS).upto_version)
    upto_ns, version = plan.as_of_ns + screening.horizon_ns, plan.snapshot(ORBITAL_CATALOG).version
    catalogue = catalogue_ahead(store, version, planning.sets_read(plan), upto_ns, finds_docked=False)
    refined = refined_ephemerides(refined_read(store, plan), catalogue, tracks, plan.as_of_ns)
    assess = partial(
        assess_candidates,
        catalogue=catalogue,
        tracks=Tracks.of(tracks, here.dynamics()),
        ephemerides=refined.and_paths(ephemerides_read(store, plan)),
        volumes=screening.screening_volumes(),
        sizes=screening.sizes().with_table(store, snapshot_of(plan, SATELLITE_CATALOG).version),
        keeps_markings=screening.keeps_markings,
    )
    events = pa.array(review.events_to_assess(store, plan, [*tracked, *announced]), pa.string())
    entries = apply(
        store,
        plan,
        partial(assessment_corrections, assess=assess, as_of_ns=plan.as_of_ns),
        Stored(CONJUNCTION_CANDIDATES, EVENT, where=OneOf(EVENT, events)),
        Stored(CONJUNCTION_ASSESSMENTS, EVENT, where=OneOf(EVENT, events)),
        work=_WORK_OF_AN_EVENT * len(events),
    )
    counts = {"objects_tracked": len(tracked), "objects_with_new_ephemerides": len(announced)}
    receipt = store.append(plan, entries, counts=counts)
    written = store.written_rows(receipt, ["op", "risk"])
    risks = Counter(written.filter(pc.equal(written.column("op"), "insert")).column("risk").to_pylist())
    return materialized(store, receipt, risks=dict(risks), space_weather=here.stated(), **counts)


@table_asset(
    CONJUNCTION_ALERTS,
    jobs=[OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS],
    balance=[broken_correction_logs, alerts_follow_assessments],
    priority=10,
)
def conjunction_alerts(lake: LakeResource, alerting: AlertingResource) -> dg.MaterializeResult[Any]:
    """Alerts for subscribers: the assessed and stated events that the alert policy selects, as inserts and retracts.

    A received CDM above the policy's levels is an alert, too, also of an event that only the message has.

    The table is a correction log: its row count includes corrections; `open_alerts` counts those whose TCA is ahead.
    Revisions of one alert rise strictly, and each says in `change` why it was sent. A withdrawn alert ends with a
    retract. An alert whose TCA has passed is closed by the next run; the manifest of such a commit may have an empty
    window.
    """
    store = lake.open()
    recorded = alerting.recorded()
    plan = store.plan(CONJUNCTION_ALERTS, settings={"alerting": recorded})
    policy = alerting.as_recorded(recorded).policy()  # without a second look at the fleet file, which may change
    due = review.due_events(store, plan, policy)
    if plan.is_empty and not due:
        return nothing_new(store, plan)
    judged = review.events_to_judge(store, plan, due)
    stated = statements(store, plan, judged, due)
    events = pa.array(sorted({*judged, *stated}), pa.string())
    entries = apply(
        store,
        plan,
        partial(alert_corrections, policy=policy, as_of_ns=plan.as_of_ns),
        Stored(CONJUNCTION_ASSESSMENTS, EVENT, ASSESSMENT_COLUMNS, OneOf(EVENT, events)),
        Stored(CONJUNCTION_ALERTS, EVENT, where=OneOf(EVENT, events)),
        Given(as_rows(stated), EVENT),
        work=_WORK_OF_AN_EVENT * len(events),
    )
    receipt = store.append(plan, entries, counts={"due": len(due)})
    written = store.written_rows(receipt, ["op", "change"])
    operations = Counter(written.column("op").to_pylist())
    changes = Counter(name for text in written.column("change").to_pylist() for name in (text or "").split(","))
    current = current_keys(store.log(CONJUNCTION_ALERTS), ["risk", "status"])
    is_open = pc.fill_null(pc.not_equal(current.column("status"), "closed"), True)
    ahead = Counter(current.filter(is_open).column("risk").to_pylist())
    return materialized(
        store,
        receipt,
        inserts=operations["insert"],
        retracts=operations["retract"],
        changes=dict(changes),
        open_alerts=ahead.total(),
        **ahead,
    )
