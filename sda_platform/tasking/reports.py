"""What materializations of tasking show: service by class and owner, use and outcomes of each sensor, pictures."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sda_platform.clock import iso
from sda_platform.formats.closures import Closure
from sda_platform.orchestration.materialization import in_ui, shown_table
from sda_platform.tasking.tables import EXECUTED, FAILED, MISSED, OBSERVED, SCHEDULED
from sda_platform.units import MINUTE_NS


def shown_schedule(
    rows: Sequence[Mapping[str, Any]], windows: Sequence[Mapping[str, Any]], as_of_ns: int
) -> dict[str, Any]:
    """Return the metadata of a schedule for the UI: ``rows`` of `pass_schedule`, and the ``windows`` that it
    could use.
    """
    from sda_platform.plots import figure_in_markdown
    from sda_platform.tasking.pictures import coverage_map, gantt_chart, sky_plot

    scheduled = [row for row in rows if row["status"] == SCHEDULED]
    requested = Counter(row["priority_class"] for row in rows)
    served = Counter(row["priority_class"] for row in scheduled)
    facts: dict[str, Any] = {f"class_{c}_served": f"{served[c]} of {requested[c]}" for c in sorted(requested)}
    reasons = Counter(row["unserved_reason"] for row in rows if row["status"] != SCHEDULED)
    facts |= {f"unserved_{reason}": count for reason, count in reasons.items()}
    drawn = {}
    if rows:
        facts["fairness"] = shown_table(owner_shares(rows))
    if windows:
        facts["coverage"] = shown_table(sensor_use(windows, scheduled))
        drawn["coverage_map"] = coverage_map(windows, scheduled, as_of_ns), "coverage of the requested objects"
    if scheduled:
        drawn["gantt_chart"] = gantt_chart(scheduled, as_of_ns), "observations of each sensor"
        drawn["sky_plot"] = sky_plot(scheduled), "directions of the observations"
    return facts | {name: in_ui(figure_in_markdown(*each)) for name, each in drawn.items()}


def shown_outcomes(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metadata of `task_outcomes` for the UI: ``rows`` of the table."""
    from sda_platform.plots import figure_in_markdown
    from sda_platform.tasking.pictures import gains_plot

    facts: dict[str, Any] = {f"now_{state}": count for state, count in Counter(row["state"] for row in rows).items()}
    if rows:
        facts["sensors"] = shown_table(outcomes_by_sensor(rows))
    if any(row["realised_gain"] for row in rows):
        picture = figure_in_markdown(gains_plot(rows), "realised against expected gain")
        facts["gains"] = in_ui(picture)
    return facts


def words_of_task(row: Mapping[str, Any]) -> str:
    """Say what became of a task, row of `task_outcomes`, and of its request."""
    seen = f"{row['observations']} observations" if row["observations"] else row["detail"]
    realised = row["realised_gain"]
    gain = "" if realised is None else f", gain {realised:.2f} of {row['expected_gain']:.2f} expected"
    return f"{row['state']}{f' ({seen})' if seen else ''}{gain}; request {row['request']}"


def outcomes_by_sensor(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Report for each sensor what became of its tasks (rows of `task_outcomes`), and realised against expected gain.

    Gains are sums over the tasks that have ended and whose gain is known; missed tasks realise 0.
    """
    by_sensor: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_sensor[row["source_id"]].append(row)
    found = []
    for sensor, mine in sorted(by_sensor.items()):
        states = Counter(row["state"] for row in mine)
        ended = [row for row in mine if row["realised_gain"] is not None]
        expected, realised = (sum(row[f"{name}_gain"] for row in ended) for name in ("expected", "realised"))
        share = f"{100 * realised / expected:.0f} %" if expected else ""
        counts = {"tasks": len(mine), **{state: states[state] for state in (OBSERVED, EXECUTED, FAILED, MISSED)}}
        gains = {"expected gain": f"{expected:.2f}", "realised gain": f"{realised:.2f}", "realised share": share}
        found.append({"sensor": sensor, **counts, **gains})
    return found


def owner_shares(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Report for each owner its requests, the served ones and its share of antenna time; worst served first."""
    by_owner: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_owner[row["owner"]].append(row)
    minutes = {owner: _minutes(mine) for owner, mine in by_owner.items()}
    total = sum(minutes.values()) or 1.0
    found = [
        {
            "owner": owner,
            "requests": len(mine),
            "served": (served := sum(row["status"] == SCHEDULED for row in mine)),
            "served share": f"{100 * served / len(mine):.0f} %",
            "antenna time": f"{minutes[owner]:.0f} min",
            "share of the antenna time": f"{100 * minutes[owner] / total:.0f} %",
        }
        for owner, mine in by_owner.items()
    ]
    return sorted(found, key=lambda each: (each["served"] / each["requests"], -each["requests"], each["owner"]))


def sensor_use(windows: Iterable[Mapping[str, Any]], scheduled: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Report for each sensor the windows ahead on requested objects, the objects, and the booked observations."""
    offered: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for window in windows:
        offered[window["source_id"]].append(window)
    booked: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in scheduled:
        booked[row["source_id"]].append(row)
    return [
        {
            "sensor": name,
            "windows": len(offered[name]),
            "objects in view": len({window["norad_id"] for window in offered[name]}),
            "observations": len(booked[name]),
            "objects observed": len({row["norad_id"] for row in booked[name]}),
            "booked": f"{_minutes(booked[name]):.0f} min",
        }
        for name in sorted(offered.keys() | booked.keys())
    ]


def _minutes(rows: Iterable[Mapping[str, Any]]) -> float:
    """Antenna time of the rows that are scheduled, minutes."""
    times_ns = (row["end_time_ns"] - row["start_time_ns"] for row in rows if row["status"] == SCHEDULED)
    return float(sum(times_ns)) / MINUTE_NS


def shown_closures(closures: Iterable[Closure], from_ns: int, until_ns: int) -> list[dict[str, Any]]:
    """Return a line for each closure in an interval."""
    return [
        {"sensor": each.source_id, "from": iso(each.start_ns), "to": iso(each.end_ns), "reason": each.reason}
        for each in closures
        if each.start_ns < until_ns and each.end_ns > from_ns
    ]
