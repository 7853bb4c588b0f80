"""Tables of package membership: what agents claim of each other, and the merged state of each member."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.formats.membership_events import REGISTRY_EVENTS
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import LandingColumns, Provenance, Table, TableModel
from sda_platform.protocols.membership import STATUS_NAMES

MEMBERSHIP_FEED = "membership"
"""The landing zone of agents' views and of the registry's changes."""


class MembershipObservation(Provenance, LandingColumns):
    """Bronze: one row per claim or change of the registry, for ever; one that cannot be used has an error."""

    observer: T.StringType = pa.Field(
        nullable=True, description="The agent that claims it; of the registry: who asked."
    )
    member: T.StringType = pa.Field(nullable=True, description="The agent that it is about.")
    event: T.StringType = pa.Field(
        nullable=True, isin=[*STATUS_NAMES, *REGISTRY_EVENTS], description="The claimed status, or admitted, removed."
    )
    event_time_ns: T.LongType = quantity("ns", "When, by the clock of the observer.", nullable=True)
    generation: T.LongType = pa.Field(
        nullable=True, ge=0, description="Of the member as the observer saw it: one more with each of its starts."
    )
    number: T.LongType = pa.Field(nullable=True, ge=0, description="Order of the events of an observer.")
    address: T.StringType = pa.Field(nullable=True, description="Where the member gossips; empty: not stated.")
    role: T.StringType = pa.Field(nullable=True, description="What it says that it is, such as station.")


class FleetMember(TableModel):
    """One agent: the merged status, and what the merge is made of."""

    member: T.StringType = pa.Field(description="Name of the agent: that of its station, uplink or source.")
    is_registered: T.BooleanType = pa.Field(description="Whether the registry lists it; gossip alone admits nobody.")
    status: T.StringType = pa.Field(
        nullable=True, isin=list(STATUS_NAMES), description="By (generation, status) the greatest claim; null: none."
    )
    generation: T.LongType = pa.Field(ge=0, description="That of the status.")
    since_time_ns: T.LongType = quantity("ns", "Since when the status is claimed.")
    role: T.StringType = pa.Field(description="What it says that it is; empty: nothing.")
    address: T.StringType = pa.Field(description="Where it gossips; empty: not stated.")
    alive_views: T.LongType = pa.Field(ge=0, description="Current observers, itself included, that hold it alive.")
    other_views: T.LongType = pa.Field(ge=0, description="Current observers that hold it suspected, failed or left.")
    own_report_time_ns: T.LongType = quantity("ns", "When it last reported; null: it does not report.", nullable=True)
    views: T.StringType = pa.Field(
        description="JSON: the newest claim of each observer as [generation, status, number, since_time_ns]."
    )


MEMBERSHIP_OBSERVATIONS = Table(
    "membership_observations",
    "ground_segment",
    MembershipObservation,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(MEMBERSHIP_FEED,),
)
FLEET_MEMBERSHIP = Table(
    "fleet_membership",
    "ground_segment",
    FleetMember,
    ("member",),
    "since_time_ns",
    lineage={
        **{name: [("membership_observations", name)] for name in ("member", "generation", "role", "address")},
        **{name: [("membership_observations", "event")] for name in ("is_registered", "status")},
        **{name: [("membership_observations", "event_time_ns")] for name in ("since_time_ns", "own_report_time_ns")},
        **{name: [("membership_observations", "observer")] for name in ("alive_views", "other_views")},
        "views": [("membership_observations", "observer"), ("membership_observations", "event")],
    },
    replaces_rows=True,
    consumes=(MEMBERSHIP_OBSERVATIONS,),
)
TABLES = (MEMBERSHIP_OBSERVATIONS, FLEET_MEMBERSHIP)
