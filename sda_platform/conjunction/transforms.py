"""Transforms of package conjunction: DataFrames in, a DataFrame out."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, SENT, alerter
from sda_platform.conjunction.assess import Kernel
from sda_platform.conjunction.identity import identified
from sda_platform.conjunction.planning import Screening
from sda_platform.conjunction.stated_encounters import STATED
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
)
from sda_platform.lake.correction_log import content, corrections, current_rows, fact_types
from sda_platform.units import DAY_NS

# Entries of one event lie nearer together than this, so that all of an event that a screening can move are read.
_REVIEWED_BEFORE_NS = DAY_NS


def candidate_corrections(
    found: DataFrame, entries: DataFrame, named: DataFrame, screening: Screening, *, as_of_ns: int
) -> DataFrame:
    """Compute the entries that a screening adds: new and moved events, and retracts of the ones not found again.

    ``named`` has the events that have an id by a received message only (`stated_encounters.named_by_messages`).
    """
    spanned = F.col("tca_time_ns") >= F.lit(screening.start_ns - _REVIEWED_BEFORE_NS)
    last_tca = F.max_by("tca_time_ns", F.struct("sequence", "op")).over(Window.partitionBy("event_id"))
    near = entries.where(spanned).where(_is_screened(screening)).withColumn("last_tca", last_tca)
    fresh = _identified(found, near, named)
    # An event whose TCA moved into the span keeps its id, like an event that was inside.
    again = fresh.select("event_id", F.lit(True).alias("found"))
    covered = F.col("last_tca").between(F.lit(screening.start_ns), F.lit(screening.end_ns - 1))
    reviewed = near.join(again, "event_id", "left").where(covered | F.col("found")).drop("found", "last_tca")
    return corrections(reviewed, fresh, key="event_id", content=content(CONJUNCTION_CANDIDATES), as_of_ns=as_of_ns)


def assessment_corrections(
    candidates: DataFrame, entries: DataFrame, assess: Kernel, *, under_review: DataFrame, as_of_ns: int
) -> DataFrame:
    """Assess the events ``under_review`` (column event_id) anew; retract events without a current candidate."""
    open_events = current_rows(candidates, "event_id").join(under_review, "event_id", "left_semi")
    fresh = open_events.mapInArrow(assess, fact_types(CONJUNCTION_ASSESSMENTS))
    known = entries.join(under_review, "event_id", "left_semi")
    return corrections(known, fresh, key="event_id", content=content(CONJUNCTION_ASSESSMENTS), as_of_ns=as_of_ns)


def alert_corrections(
    assessments: DataFrame,
    entries: DataFrame,
    stated: DataFrame,
    policy: AlertPolicy,
    *,
    under_review: DataFrame,
    as_of_ns: int,
) -> DataFrame:
    """Bring the alerts of the events ``under_review`` (column event_id) to what ``policy`` says at ``as_of_ns``.

    ``stated`` has what received messages state of some of them: event_id and `STATED`.
    """
    known = entries.join(under_review, "event_id", "left_semi")
    columns = content(CONJUNCTION_ALERTS)
    last = current_rows(known, "event_id").select("event_id", F.struct(*columns).alias(SENT))
    reviewed = current_rows(assessments, "event_id").join(under_review, "event_id", "left_semi")
    known_here = reviewed.select(*ASSESSED_COLUMNS).join(stated, "event_id", "full_outer")
    both = known_here.join(last, "event_id", "full_outer").select(*ASSESSED_COLUMNS, STATED, SENT)
    fresh = both.mapInArrow(alerter(policy, as_of_ns), fact_types(CONJUNCTION_ALERTS))
    return corrections(known, fresh, key="event_id", content=columns, as_of_ns=as_of_ns)


def _identified(found: DataFrame, entries: DataFrame, named: DataFrame) -> DataFrame:
    """The approaches ``found``, each with its ``event_id``.

    ``entries`` are those of known events (`last_tca`), ``named`` has the events that only messages name.
    """
    pair = ("norad_id_1", "norad_id_2")
    known = entries.groupBy("event_id", *pair).agg(F.max("last_tca").alias("tca_time_ns")).unionByName(named)
    unnamed = found.withColumn("event_id", F.lit(None).cast("string"))
    both = unnamed.unionByName(known, allowMissingColumns=True)
    whole_pairs = both.repartition(F.least(*pair), F.greatest(*pair))
    types = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in both.schema.fields)
    return whole_pairs.mapInArrow(identified, types).drop("slot_ns")


def _is_screened(screening: Screening) -> Column:
    if screening.changed is None:
        return F.lit(True)
    changed = sorted(screening.changed)
    return F.col("norad_id_1").isin(changed) | F.col("norad_id_2").isin(changed)
