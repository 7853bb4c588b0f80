"""How fast a table grows, by the commits in its log: what rows that are kept for ever will need in a year."""

from collections.abc import Iterable

from sda_platform.lake import delta_log
from sda_platform.lake.log import TableLog

_YEAR_MS = 365.25 * 86_400_000
LEAST_SPAN_MS = 3_600_000
"""Over less than an hour of commits no rate is stated."""


def yearly_bytes(logs: Iterable[TableLog]) -> float | None:
    """Estimate bytes a year from the commits in the logs; None where no log has an hour of commits.

    Bytes are those of the files that appends added, before compaction. Tables whose rows are replaced do not count:
    their old files expire.
    """
    rates = [rate for log in logs if not log.table.replaces_rows and (rate := _rate(log)) is not None]
    return sum(rates) * _YEAR_MS if rates else None


def _rate(log: TableLog) -> float | None:
    """Bytes per ms, between the oldest and the newest commit that the log has."""
    times_ms, added = list[int](), list[int]()
    for _, text in log.versions():
        sizes = [int(add["size"]) for _, add in delta_log.actions(text, "add") if add.get("dataChange", True)]
        if sizes:
            times_ms.append(delta_log.timestamp_ms(text))
            added.append(sum(sizes))
    if not times_ms or times_ms[0] - times_ms[-1] < LEAST_SPAN_MS:
        return None
    return sum(added[:-1]) / (times_ms[0] - times_ms[-1])
