"""The sensors as they are now: what each observed last, whether it is silent, and whether it is listed."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from sda_platform.formats.closures import Closure
from sda_platform.fusion.silence import heard_by_now, silent_now
from sda_platform.fusion.sources import Silence, heard_sources, unlisted
from sda_platform.history.query_views import SILENCE
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orchestration.backlog import backlog_of
from sda_platform.units import SECOND_NS


@dataclass(frozen=True)
class SensorState:
    """A source of observations. ``heard_ns``: its newest observation; ``silence``: where it lasts too long.

    ``is_listed``: whether fits can use it; a ground sensor has to be in the list. ``closure``: why it observes nothing
    now, and until when.
    """

    source_id: str
    heard_ns: int | None
    silence: Silence | None
    is_listed: bool = True
    closure: Closure | None = None

    @property
    def kind(self) -> str:
        """Its kind: radar, optical, isl."""
        return self.source_id.partition("-")[0]


def sensor_states(
    lake: Lake, landing_root: str, sensors: SensorNetwork, closures: Iterable[Closure] = ()
) -> list[SensorState]:
    """Return every source that reported or is listed: silent ones and those not listed first, then by kind and name.

    Silence is that of the vital `sources_report`.
    """
    wall_s = time.time()  # deterministic: shown to people; no row of the lake holds it
    now_ns = lake.clock.now_ns(round(wall_s * SECOND_NS))
    marks = heard_by_now(lake, now_ns)
    backlogs = {feed.name: backlog_of(LandingZone(landing_root, feed.name), wall_s) for feed in OBSERVATION_FEEDS}
    found = silent_now(lake, marks, backlogs, now_ns, sensors=sensors, closures=closures)
    silent, heard = {each.source: each for each in found}, heard_sources(marks)
    closed = {each.source_id: each for each in closures if each.start_ns <= now_ns < each.end_ns}
    lacking = unlisted(heard, sensors)
    states = [
        SensorState(name, heard.get(name), silent.get(name), name not in lacking, closed.get(name))
        for name in {*heard, *sensors}
    ]
    return sorted(states, key=lambda s: (s.silence is None and s.is_listed, s.heard_ns is None, s.kind, s.source_id))


def silences_among(observations: pa.Table, now_ns: int) -> pa.Table:
    """Return the rows of the view `sensors.silence` over ``observations``, in any columns that it reads."""
    import duckdb  # which most processes that load this do without

    with duckdb.connect(":memory:") as connection:
        connection.register("observations", observations)
        return connection.sql(f"SELECT * FROM ({SILENCE.in_duckdb(now_ns)}) ORDER BY lasted_s DESC").to_arrow_table()
