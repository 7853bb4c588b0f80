"""The formats of what the platform, its sites and its people state, as lines of JSON."""

from typing import Final

from sda_platform.formats.acknowledgements import encode_acknowledgements, read_acknowledgement
from sda_platform.formats.edits import encode_edits, read_edit
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.framing.lines import LINES
from sda_platform.formats.game_days import encode_game_days, read_game_day
from sda_platform.formats.ground_events import encode_ground_events, read_ground_event
from sda_platform.formats.membership_events import encode_membership_events, read_membership_event
from sda_platform.formats.metric_values import encode_metric_values, read_metric_value

OWN_FORMATS: Final = (
    RecordFormat(
        name="edits-jsonl",
        title="Edits of catalogue objects, JSON, one a line",
        content="edit",
        zone="edits",
        suffixes=(".edits",),
        framing=LINES,
        row_column="attribute",
        read=read_edit,
        write=encode_edits,
    ),
    RecordFormat(
        name="ground-events-jsonl",
        title="Events of ground commands and uplinks, JSON, one a line",
        content="ground event",
        zone="ground",
        suffixes=(".ground",),
        framing=LINES,
        row_column="command_id",
        read=read_ground_event,
        write=encode_ground_events,
    ),
    RecordFormat(
        name="membership-jsonl",
        title="Views of the fleet's agents and changes of its registry, JSON, one a line",
        content="membership event",
        zone="membership",
        suffixes=(".membership",),
        framing=LINES,
        row_column="member",
        read=read_membership_event,
        write=encode_membership_events,
    ),
    RecordFormat(
        name="acknowledgements-jsonl",
        title="Acknowledgements of alerts, JSON, one a line",
        content="acknowledgement",
        zone="acknowledgements",
        suffixes=(".acks",),
        framing=LINES,
        row_column="alert_id",
        read=read_acknowledgement,
        write=encode_acknowledgements,
    ),
    RecordFormat(
        name="metrics-jsonl",
        title="Values of the platform's metrics, JSON, one a line",
        content="metric value",
        zone="metrics",
        suffixes=(".metrics",),
        framing=LINES,
        row_column="sample",
        read=read_metric_value,
        write=encode_metric_values,
    ),
    RecordFormat(
        name="game-days-jsonl",
        title="Outcomes of rehearsed faults, JSON, one a line",
        content="rehearsed fault",
        zone="game_days",
        suffixes=(".gameday",),
        framing=LINES,
        row_column="fault",
        read=read_game_day,
        write=encode_game_days,
    ),
)
