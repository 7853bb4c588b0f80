"""Which sources are silent, by what has arrived: also what no commit of the fusion has consumed."""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow.compute as pc

from sda_platform.formats.closures import Closure, closed_upto
from sda_platform.fusion.sources import AWAITED, HEARD, Silence, heard_marks, heard_sources, silences, unlisted
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.waiting import waiting_commits
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orchestration.backlog import Backlog
from sda_platform.units import SECOND_NS

# Of a longer standstill only the newest commits are read.
_LOOKED_BACK: Final = 50


def silent_now(
    lake: Lake,
    heard: Mapping[str, int],
    backlogs: Mapping[str, Backlog],
    now_ns: int,
    *,
    sensors: SensorNetwork | None = None,
    closures: Iterable[Closure] = (),
    all_after_ns: int = 0,
) -> list[Silence]:
    """Return which sources are silent, by `heard_by_now`; see `silences`.

    ``backlogs`` of the zones: what waits to be decoded is no silence. Nor is that of a sensor while it is closed, or of
    a ground sensor that the list ``sensors`` does not have (any more).
    """
    upto, excused = _known_upto(lake, backlogs, now_ns), closed_upto(closures, now_ns)
    if sensors is not None:
        excused |= dict.fromkeys(unlisted(heard_sources(heard), sensors), now_ns)
    return silences(heard, now_ns, known_upto=upto, excused_upto=excused, all_after_ns=all_after_ns)


def _known_upto(lake: Lake, backlogs: Mapping[str, Backlog], now_ns: int) -> dict[str, int]:
    """Return by feed until when arrivals are known, also of what the fusion has not consumed.

    What waits to be decoded, in a zone or as a record, is no silence.
    """
    decoded_ns = _decoded_upto_ns(lake, now_ns)
    return {
        feed: min(now_ns - round((backlog.oldest_s or 0.0) * SECOND_NS), decoded_ns)
        for feed, backlog in backlogs.items()
    }


def _decoded_upto_ns(lake: Lake, now_ns: int) -> int:
    """Until when arrivals are known as observations: where records wait, until the commit before the oldest of them.

    What a commit holds arrived since the one before.
    """
    waiting = waiting_commits(lake, RAW_RECORDS, OBSERVATIONS)
    if not waiting or not lake.log(OBSERVATIONS).head().commit:  # a table that was never made waits for its first run
        return now_ns
    oldest = waiting[-1].sequence
    before = lake.log(RAW_RECORDS).commits(None, after=oldest - 2)[-1]
    return before.manifest.as_of_ns if before.sequence < oldest else 0


def heard_by_now(lake: Lake, now_ns: int) -> dict[str, int]:
    """Read the marks of sources in the fusion's newest commit, and of observations that it has not consumed.

    Of a long standstill only the newest commits are read; before them, every source counts as heard.
    """
    commit = lake.log(FUSED_TRACKS).head().commit
    marks = dict(commit.manifest.watermarks) if commit else {}
    waiting = waiting_commits(lake, OBSERVATIONS, FUSED_TRACKS)
    if not waiting:
        return marks
    newest, earlier = waiting[:_LOOKED_BACK], waiting[_LOOKED_BACK:]
    if earlier:
        floor_ns = earlier[0].manifest.as_of_ns
        marks |= {name: max(at, floor_ns) for name, at in marks.items() if name.startswith(HEARD)}
    span = (newest[-1].sequence - 1, newest[0].sequence)
    rows = lake.log(OBSERVATIONS).rows_of(span, ["source_kind", "source_id", "sensor_time_ns"])
    rows = rows.filter(pc.is_valid(rows["source_id"]))
    came = {f"{AWAITED}{kind}" for kind in pc.unique(rows["source_kind"]).to_pylist()}
    marks |= heard_marks(marks, rows, now_ns)
    return {name: at for name, at in marks.items() if name not in came}
