"""Tables of package ground: commands to stations and uplinks, and the fleet of agents with the status of each."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.formats.ground_events import COMMAND_EVENTS, HEARTBEATS, LINK_EVENTS, STATION_TIMES
from sda_platform.formats.membership_events import REGISTRY_EVENTS, STATUS_NAMES
from sda_platform.ground.commands import PRIORITY
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import LandingColumns, Provenance, Table, TableModel

GROUND_FEED = "ground"
"""The landing zone of events of commands and uplinks: the log from which an uplink rebuilds its queue."""
MEMBERSHIP_FEED = "membership"
"""The landing zone of agents' views and of the registry's changes."""

GAME_DAY_FEED = "game_days"
"""The landing zone of the outcomes of rehearsed faults."""


class GroundEventRow(Provenance, LandingColumns):
    """Bronze: one row per event, for ever; one that cannot be used has an error."""

    station: T.StringType = pa.Field(nullable=True, description="The commanded station.")
    event: T.StringType = pa.Field(
        nullable=True,
        isin=[*COMMAND_EVENTS, *LINK_EVENTS, HEARTBEATS],
        description="What happened to a command or an uplink; or that heartbeats were recorded.",
    )
    event_time_ns: T.LongType = quantity("ns", "When, by the clock of who reports it.", nullable=True)
    uplink: T.StringType = pa.Field(nullable=True, description="Who reports it; empty: the issuer of a command.")
    token: T.LongType = pa.Field(nullable=True, ge=0, description="Fencing token under which the uplink acted.")
    number: T.LongType = pa.Field(nullable=True, ge=0, description="Order of the events of an uplink and token.")
    command_id: T.StringType = pa.Field(nullable=True, description="The command; empty: an event of the uplink.")
    kind: T.StringType = pa.Field(nullable=True, description="Kind of the command, which gives its priority.")
    issued_time_ns: T.LongType = quantity("ns", "When the command was issued; 0: no command.", nullable=True)
    expires_time_ns: T.LongType = quantity("ns", "From when on it must not be executed.", nullable=True)
    detail: T.StringType = pa.Field(
        nullable=True, description="The station's answer, the reason, or the recorded gaps."
    )
    azimuth_deg: T.DoubleType = quantity("deg", "Where the command points, from north by east.", nullable=True)
    elevation_deg: T.DoubleType = quantity(
        "deg", "Where the command points above the horizon; null: no direction.", nullable=True
    )
    person: T.StringType = pa.Field(nullable=True, description="Who issues or confirms the command; empty: not stated.")
    signature: T.StringType = pa.Field(
        nullable=True,
        description="That of the person, or of the uplink; hexadecimal.",
    )
    station_accepted_time_ns: T.LongType = quantity(
        "ns", "When the station accepted the command, by its own clock; 0: not stated.", nullable=True
    )
    station_started_time_ns: T.LongType = quantity("ns", "When its execution began there.", nullable=True)
    station_finished_time_ns: T.LongType = quantity(
        "ns", "When it completed, failed or was refused there.", nullable=True
    )


class GroundCommand(TableModel):
    """The state of one command, and when it reached each."""

    command_id: T.StringType = pa.Field(description="Unique for ever.")
    station: T.StringType = pa.Field(description="The station that executes it.")
    kind: T.StringType = pa.Field(isin=sorted(PRIORITY), description="What it does.")
    priority: T.LongType = pa.Field(ge=0, le=255, description="That of its kind; higher goes first.")
    state: T.StringType = pa.Field(isin=list(COMMAND_EVENTS), description="Its newest event.")
    issued_time_ns: T.LongType = quantity("ns", "When it was issued.")
    expires_time_ns: T.LongType = quantity("ns", "From when on it must not be executed.")
    issued_by: T.StringType = pa.Field(
        nullable=True, description="Who issued it, by name; null: not stated. It is what the log claims, not verified."
    )
    confirmed_by: T.StringType = pa.Field(
        nullable=True,
        description="Who confirmed it, by name: an emergency needs a second person. Also what the log claims.",
    )
    confirmed_time_ns: T.LongType = quantity("ns", "When that person did.", nullable=True)
    accepted_time_ns: T.LongType = quantity("ns", "When an uplink first took it.", nullable=True)
    dispatched_time_ns: T.LongType = quantity("ns", "When it was first sent.", nullable=True)
    finished_time_ns: T.LongType = quantity(
        "ns", "When it was acknowledged, rejected or lost, or failed or expired.", nullable=True
    )
    station_accepted_time_ns: T.LongType = quantity(
        "ns", "When the station accepted it, by the station's clock.", nullable=True
    )
    station_started_time_ns: T.LongType = quantity("ns", "When its execution began there.", nullable=True)
    station_finished_time_ns: T.LongType = quantity(
        "ns", "When it completed, failed or was refused there.", nullable=True
    )
    uplink: T.StringType = pa.Field(nullable=True, description="Who reported the newest event.")
    token: T.LongType = pa.Field(ge=0, description="Its fencing token.")
    executions: T.LongType = pa.Field(ge=0, description="Answers `executed` of the station: at most one.")
    detail: T.StringType = pa.Field(nullable=True, description="The station's answer, or the reason.")
    azimuth_deg: T.DoubleType = quantity("deg", "Where it points, from north by east.", nullable=True)
    elevation_deg: T.DoubleType = quantity(
        "deg", "Where the command points above the horizon; null: no direction.", nullable=True
    )


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


class GameDayRow(Provenance, LandingColumns):
    """Bronze: one row per rehearsed fault, for ever; one that cannot be used has an error."""

    fault: T.StringType = pa.Field(nullable=True, description="What struck the rehearsed part of the ground segment.")
    started_time_ns: T.LongType = quantity("ns", "When it struck, Unix time UTC.", nullable=True)
    detected_after_s: T.DoubleType = quantity(
        "s", "Until the platform detected it; null: not in time.", nullable=True, ge=0
    )
    recovered_after_s: T.DoubleType = quantity(
        "s", "Until the part worked again, such as a command was executed; null: not in time.", nullable=True, ge=0
    )
    detect_within_s: T.DoubleType = quantity(
        "s", "The bound of the first; 0: no failure, and not to be declared one.", nullable=True, ge=0
    )
    recover_within_s: T.DoubleType = quantity("s", "The bound of the second.", nullable=True, ge=0)
    skipped: T.StringType = pa.Field(nullable=True, description="Why it was not rehearsed; empty: it was.")


GROUND_EVENTS = Table(
    "ground_events",
    "ground_segment",
    GroundEventRow,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(GROUND_FEED,),
)
GROUND_COMMANDS = Table(
    "ground_commands",
    "ground_segment",
    GroundCommand,
    ("command_id",),
    "issued_time_ns",
    lineage={
        **{
            name: [("ground_events", name)]
            for name in ("command_id", "station", "kind", "issued_time_ns", "expires_time_ns", "uplink", "token")
        },
        **{name: [("ground_events", name)] for name in ("detail", "azimuth_deg", "elevation_deg")},
        "priority": [("ground_events", "kind")],
        **{name: [("ground_events", "person")] for name in ("issued_by", "confirmed_by")},
        **{name: [("ground_events", name)] for name in STATION_TIMES},
        **{name: [("ground_events", "event")] for name in ("state", "executions")},
        **{
            name: [("ground_events", "event_time_ns")]
            for name in ("confirmed_time_ns", "accepted_time_ns", "dispatched_time_ns", "finished_time_ns")
        },
    },
    replaces_rows=True,
    consumes=(GROUND_EVENTS,),
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
GAME_DAYS = Table(
    "game_days",
    "ground_segment",
    GameDayRow,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(GAME_DAY_FEED,),
)
TABLES = (GAME_DAYS, GROUND_EVENTS, GROUND_COMMANDS, MEMBERSHIP_OBSERVATIONS, FLEET_MEMBERSHIP)
