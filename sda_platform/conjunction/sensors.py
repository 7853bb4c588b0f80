"""What starts a screening although no element set has come: tracks that show a suspected manoeuvre, other settings."""

import hashlib
import json
import time

import dagster as dg
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.conjunction.manoeuvred_paths import SUSPECTED
from sda_platform.conjunction.planning import SETTINGS, settings_changed
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.formats.listings import ListingError
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import sequence_read
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orchestration.attempts import Attempts, coming_run
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.orchestration.resources import LakeResource
from sda_platform.units import SECOND_NS

# At each round of Dagster's sensor loop, which takes five seconds.
_INTERVAL_S = 4
_SETTINGS_S = 30
_AGAIN_NS = 30 * SECOND_NS
_AGAIN_SHARE = 0.25
"""A path is screened again as it becomes known better: after this part of the time since the manoeuvre."""


@dg.sensor(
    name="suspected_manoeuvres",
    job_name=CATALOG_TO_ALERTS.name,
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a screening when tracks show suspected manoeuvres that the last screening does not know.",
)
def suspected_manoeuvres(
    context: dg.SensorEvaluationContext, lake: LakeResource, screening: ScreeningResource
) -> dg.RunRequest | dg.SkipReason:
    if not screening.manoeuvre_sigmas:
        return dg.SkipReason("objects are screened by their element sets only")
    return request_screening(context, lake.open())


def request_screening(
    context: dg.SensorEvaluationContext, store: Lake, *, wall_s: float | None = None
) -> dg.RunRequest | dg.SkipReason:
    """Request a run for tracks with a suspected manoeuvre since the last screening, unless one is queued."""
    commit = store.head(CONJUNCTION_CANDIDATES).commit
    if commit is None:
        return dg.SkipReason("nothing was screened yet")
    head, known = store.readable(TRACKS).head, sequence_read(commit.manifest, TRACKS)
    if head.sequence <= known:
        return dg.SkipReason("no track is new")
    is_new = (ds.field(COMMIT_SEQUENCE) > known) & (ds.field(COMMIT_SEQUENCE) <= head.sequence)
    rows = store.log(TRACKS).rows(["manoeuvre_time_ns", "state_since_ns"], SUSPECTED & is_new)
    if not rows.num_rows:
        return dg.SkipReason("no track with a suspected manoeuvre is new")
    now_ns, before_ns = store.clock.now_ns(), commit.manifest.as_of_ns
    # A manoeuvre before the track's first window is dated by the element set, and known only since the track is live.
    newest_ns = pc.max(pc.max_element_wise(rows["manoeuvre_time_ns"], rows["state_since_ns"])).as_py()
    due_ns = before_ns + max(_AGAIN_NS, round(_AGAIN_SHARE * (now_ns - newest_ns)))
    suspected = f"{rows.num_rows} objects with a suspected manoeuvre"
    if now_ns < due_ns:
        return dg.SkipReason(f"{suspected}: screened again in {(due_ns - now_ns) / SECOND_NS:.0f} s")
    batch = f"manoeuvres {known}-{head.sequence}"
    coming = coming_run(context.instance, CATALOG_TO_ALERTS, batch)
    if coming:
        return dg.SkipReason(f"{suspected}: run {coming[:8]} will screen them")
    attempts = Attempts.of(context.instance, CATALOG_TO_ALERTS, batch)
    refusal = attempts.refusal(time.time() if wall_s is None else wall_s)
    if refusal:
        return dg.SkipReason(f"{suspected}; {refusal}")
    return attempts.next_run(CATALOG_TO_ALERTS)


@dg.sensor(
    name="screening_settings",
    job_name=CATALOG_TO_ALERTS.name,
    minimum_interval_seconds=_SETTINGS_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a full screening when fleet, volumes, horizon or another setting of it differ from the last.",
)
def screening_settings(
    context: dg.SensorEvaluationContext, lake: LakeResource, screening: ScreeningResource
) -> dg.RunRequest | dg.SkipReason:
    return request_screening_anew(context, lake.open(), screening)


def request_screening_anew(
    context: dg.SensorEvaluationContext, store: Lake, screening: ScreeningResource, *, wall_s: float | None = None
) -> dg.RunRequest | dg.SkipReason:
    """Request a run where the last screening was under other settings than ``screening``, unless one is queued."""
    commit = store.head(CONJUNCTION_CANDIDATES).commit
    if commit is None:
        return dg.SkipReason("nothing was screened yet")
    try:
        recorded = screening.recorded()
    except ListingError as error:
        return dg.SkipReason(f"the settings cannot be used: {error}")
    if not settings_changed(commit.manifest, {SETTINGS: recorded}):
        return dg.SkipReason("the last screening was under these settings")
    batch = f"settings {hashlib.sha256(json.dumps(recorded, sort_keys=True).encode()).hexdigest()[:16]}"
    coming = coming_run(context.instance, CATALOG_TO_ALERTS, batch)
    if coming:
        return dg.SkipReason(f"the settings changed: run {coming[:8]} will screen everything")
    attempts = Attempts.of(context.instance, CATALOG_TO_ALERTS, batch)
    refusal = attempts.refusal(time.time() if wall_s is None else wall_s)
    return dg.SkipReason(f"the settings changed; {refusal}") if refusal else attempts.next_run(CATALOG_TO_ALERTS)
