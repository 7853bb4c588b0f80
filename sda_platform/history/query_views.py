"""Views for people's SQL: what is asked most often, with timestamps, and with one name for an id in all of them.

One text serves DuckDB and Spark. In it ``TIME(x)`` is the timestamp of nanoseconds since 1970, and ``NOW_NS`` the
mission time. ``EACH(x)`` is a row for each element of a list, ``active.TABLE`` the rows of a correction log that hold.
In Spark, whose temporary views are in no schema, ``.`` becomes ``_``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sda_platform.conjunction.tables import (
    ALERT_ACKNOWLEDGEMENTS,
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
)
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.acknowledgements import ACKNOWLEDGE
from sda_platform.formats.markings import MARKS
from sda_platform.fusion.sources import ORBITING
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.units import DAY_NS

SCHEMAS: Final = ("active", "fleet", "sensors")
_TIME: Final = re.compile(r"TIME\(([\w.]+)\)")
_EACH: Final = "EACH("
_QUALIFIED: Final = re.compile(rf"\b({'|'.join(SCHEMAS)})\.(\w+)")


@dataclass(frozen=True)
class QueryView:
    """A view of ``tables``: ``columns`` are (name, expression, meaning), ``source`` is what follows FROM."""

    schema: str
    name: str
    meaning: str
    tables: tuple[Table, ...]
    columns: tuple[tuple[str, str, str], ...]
    source: str

    def is_named_in(self, words: set[str]) -> bool:
        """Return whether a query of these words, in lower case, may read the view."""
        return {self.schema, self.name} <= words or self.name_in_spark in words

    @property
    def name_in_spark(self) -> str:
        """The name of the temporary view."""
        return f"{self.schema}_{self.name}"

    def in_duckdb(self, now_ns: int) -> str:
        """Return the SELECT in DuckDB's SQL, at the mission time ``now_ns``."""
        return _TIME.sub(r"make_timestamp(\1 // 1000)", self._text(now_ns)).replace(_EACH, "unnest(")

    def in_spark(self, now_ns: int) -> str:
        """Return the SELECT in Spark's SQL, at the mission time ``now_ns``."""
        text = _TIME.sub(r"timestamp_micros(\1 DIV 1000)", self._text(now_ns)).replace(_EACH, "explode(")
        return _QUALIFIED.sub(r"\1_\2", text)

    def _text(self, now_ns: int) -> str:
        columns = ", ".join(f"{expression} AS {name}" for name, expression, _ in self.columns)
        return f"SELECT {columns} FROM {self.source}".replace("NOW_NS", str(now_ns))


_PAIR: Final = (
    ("norad_id_1", "e.norad_id_1", "catalogue number of the primary"),
    ("object_name_1", "e.object_name_1", "its name"),
    ("norad_id_2", "e.norad_id_2", "catalogue number of the secondary"),
    ("object_name_2", "e.object_name_2", "its name"),
)
_RISK: Final = (
    ("collision_probability", "e.collision_probability", "Pc"),
    ("maximum_probability", "e.maximum_probability", "largest Pc over all scales of the covariance"),
    ("miss_distance_km", "e.miss_distance_km", "miss distance"),
    ("relative_speed_km_s", "e.relative_speed_km_s", "relative speed"),
)
ACTIVE_ALERTS: Final = QueryView(
    "active",
    "alerts",
    "The alerts whose closest approach is ahead.",
    (CONJUNCTION_ALERTS, ALERT_ACKNOWLEDGEMENTS),
    (
        ("event_id", "e.event_id", "id of the alert and of its event"),
        ("level", "e.risk", "alert level"),
        ("tca", "TIME(e.tca_time_ns)", "closest approach, UTC"),
        *_PAIR,
        *_RISK,
        ("stated_probability", "e.stated_probability", "largest Pc that received messages state"),
        ("stated_by", "e.stated_by", "who states it"),
        ("rule", "e.rule", "rule of the alert policy"),
        ("classification", "e.classification", "classification; null: not known"),
        ("data_mode", "e.data_mode", "data mode; null: not known"),
        ("revision", "e.sequence", "revision"),
        ("as_of", "TIME(e.as_of_ns)", "mission time of the revision, UTC"),
        ("acknowledged_by", "k.acknowledged_by", "who acknowledged this revision, last"),
    ),
    "active.conjunction_alerts e LEFT JOIN (SELECT alert_id, revision, max_by(acknowledged_by, acknowledged_time_ns) "
    f"AS acknowledged_by FROM alert_acknowledgements WHERE coalesce(action, '{ACKNOWLEDGE}') = '{ACKNOWLEDGE}' AND "
    "error_kind IS NULL GROUP BY alert_id, revision) k ON k.alert_id = e.event_id AND k.revision = e.sequence "
    "WHERE coalesce(e.status, '') <> 'closed'",
)
FLEET_EVENTS: Final = QueryView(
    "fleet",
    "events",
    "Every assessed event, also below the levels of the alert policy.",
    (CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS),
    (
        ("event_id", "e.event_id", "id of the event"),
        ("tca", "TIME(e.tca_time_ns)", "closest approach, UTC"),
        *_PAIR,
        ("level", "a.risk", "level of its alert; null: it has none"),
        ("assessed_risk", "e.risk", "assessed risk"),
        *_RISK,
        ("radial_miss_km", "e.radial_miss_km", "miss, radial"),
        ("in_track_miss_km", "e.in_track_miss_km", "miss, in-track"),
        ("cross_track_miss_km", "e.cross_track_miss_km", "miss, cross-track"),
        ("hard_body_radius_m", "e.hard_body_radius_m", "sum of both radii"),
        ("state_source_1", "e.state_source_1", "source of the state of the primary"),
        ("state_source_2", "e.state_source_2", "source of the state of the secondary"),
        *(
            (f"{name}_{n}", f"e.{name}_{n}", f"{what} of the data of the {who}; null: not known")
            for name, what in zip(MARKS, ("classification", "data mode"), strict=True)
            for n, who in ((1, "primary"), (2, "secondary"))
        ),
        ("as_of", "TIME(e.as_of_ns)", "mission time of the assessment, UTC"),
    ),
    "active.conjunction_assessments e LEFT JOIN active.conjunction_alerts a ON a.event_id = e.event_id",
)
_LONGEST: Final = " ".join(f"WHEN '{feed.name}' THEN {feed.max_silence_ns}" for feed in OBSERVATION_FEEDS)
_IN_ORDER: Final = "PARTITION BY source_id ORDER BY received_ns, heard_ns"
SILENCE: Final = QueryView(
    "sensors",
    "silence",
    "The times in which all that had been received of a sensor was older than its kind allows.",
    (OBSERVATIONS,),
    (
        ("source_id", "s.source_id", "sensor"),
        ("source_kind", "s.source_kind", "its kind"),
        ("silent_from", "TIME(s.heard_ns)", "newest observation by then, UTC"),
        ("silent_until", "TIME(s.next_ns)", "reception of a new one, UTC; null: it lasts"),
        ("lasted_s", "(coalesce(s.next_ns, NOW_NS) - s.heard_ns) / 1e9", "length, or up to now, s"),
    ),
    # As the vital `sources_report` judges: what was itself too old when it came, after a cut link, ends no silence.
    "(SELECT source_id, source_kind, heard_ns, limit_ns, lead(received_ns) OVER "
    f"({_IN_ORDER}) AS next_ns FROM (SELECT source_id, source_kind, received_ns, limit_ns, row_number() OVER "
    f"({_IN_ORDER}) AS place, max(heard_ns) OVER ({_IN_ORDER} ROWS UNBOUNDED PRECEDING) AS heard_ns FROM (SELECT "
    f"CASE WHEN source_id LIKE '{ORBITING}%' THEN '{ORBITING}' ELSE source_id END AS source_id, source_kind, "
    "coalesce(received_time_ns, sensor_time_ns) AS received_ns, least(sensor_time_ns, coalesce(received_time_ns, "
    f"sensor_time_ns)) AS heard_ns, CASE source_kind {_LONGEST} ELSE {DAY_NS} END AS limit_ns FROM observations) o) m "
    "WHERE place = 1 OR received_ns - heard_ns <= limit_ns) s WHERE coalesce(s.next_ns, NOW_NS) - s.heard_ns > "
    "s.limit_ns",
)
_USED: Final = (
    "CASE WHEN f.norad_id IS NOT NULL THEN 'fit' WHEN p.norad_id IS NOT NULL THEN 'provisional orbit' WHEN "
    "l.record_number IS NOT NULL THEN 'late' WHEN o.sensor_time_ns >= n.newest_ns THEN 'not yet' ELSE 'no' END"
)
_USES: Final = (
    "fit: in the window fit of an object; provisional orbit: in that of an unknown one; late: its window was closed; "
    "not yet: no later window is fitted; no"
)
USAGE: Final = QueryView(
    "sensors",
    "usage",
    "What became of each observation.",
    (OBSERVATIONS, FUSED_TRACKS, PROVISIONAL_ELEMENTS, DEAD_LETTERS),
    (
        ("source_id", "o.source_id", "sensor"),
        ("measured", "TIME(o.sensor_time_ns)", "time of the measurement, UTC"),
        ("received", "TIME(o.received_time_ns)", "time of the reception, UTC"),
        ("used", _USED, f"{_USES}: [why](../how-to/add-a-sensor.md#4-check-it)"),
        ("norad_id", "coalesce(f.norad_id, p.norad_id)", "the object"),
        ("observation_id", "o.observation_id", "the observation"),
        ("segment_name", "o.segment_name", "segment with its record"),
        ("record_number", "o.record_number", "number of the record in it, from 0"),
    ),
    "observations o LEFT JOIN (SELECT norad_id, EACH(observation_ids) AS observation_id FROM active.fused_tracks) f ON "
    "f.observation_id = o.observation_id LEFT JOIN (SELECT max(norad_id) AS norad_id, observation_id FROM (SELECT "
    "norad_id, EACH(observation_ids) AS observation_id FROM provisional_elements) e GROUP BY observation_id) p ON "
    "p.observation_id = o.observation_id LEFT JOIN (SELECT DISTINCT segment_sha256, record_number FROM dead_letters "
    "WHERE error_kind = 'late_observation') l ON l.segment_sha256 = o.segment_sha256 AND l.record_number = "
    "o.record_number CROSS JOIN (SELECT coalesce(max(window_start_ns), 0) AS newest_ns FROM fused_tracks) n",
)
QUERY_VIEWS: Final = (ACTIVE_ALERTS, FLEET_EVENTS, SILENCE, USAGE)


def views_in(words: set[str], known: Mapping[str, object]) -> list[QueryView]:
    """Return the views that a query of these words may read, if all their tables are ``known``."""
    return [v for v in QUERY_VIEWS if v.is_named_in(words) and all(table.name in known for table in v.tables)]
