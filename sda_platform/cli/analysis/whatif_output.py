"""What `sda whatif` prints: events before and after a plan, and the least burn."""

from typing import Any

from sda_platform.cli.listing import grid, number, words
from sda_platform.cli.people import console


def print_outcome(found: dict[str, Any], goal: float | None, most: float, least: float) -> None:
    """Print the events of Pc ``least`` and more, before and after a plan.

    With a ``goal`` also the least burn, of at most ``most`` m/s, that brings Pc to it.
    """
    begin, until = (_minute(each) for each in found["span"])
    console.print(f"screened from {begin} to {until} UTC")
    pairs = found.get("plan") or [{"before": each, "after": None} for each in found["before"]]
    _grid("before and after the plan" if "plan" in found else "without a plan", pairs, least)
    if unknown := [pair for pair in pairs if not _is_planned(pair)]:
        worst = max(pair["before"]["probability"] for pair in unknown)
        count = "1 event is" if len(unknown) == 1 else f"{len(unknown)} events are"
        begin, end = map(_minute, found["plan_covers"])
        console.print(
            f"{count} not covered by the plan ({begin} to {end}), with a Pc of up to {worst:.2e} before it: nothing is "
            "known of the risk after it, and the sums leave them out"
        )
    if goal is None:
        return
    if not found["is_burn_needed"]:
        console.print(f"no burn is needed: without one no later event until {until} has a Pc above {goal:g}")
        return
    best, obstacle = found["avoidance"], found.get("obstacle", {})
    if best is not None:
        console.print(f"least burn: {best['dv_m_s']:.4f} m/s at {_burn_text(best['burn'])}")
        sums = f"{best['total_before']:.2e} before, {best['total_after']:.2e} after"
        console.print(f"sum of Pc of later events: {sums}; of earlier ones {best['unaffected']:.2e}")
        _grid("after this burn", [{"before": None, "after": each} for each in best["after"]], least)
        return
    console.print(f"no burn of at most {most:g} m/s was found that brings every later Pc to {goal:g}")
    when = f"the nearest, at {_burn_text(obstacle['burn'])},"
    what = f"{obstacle['norad_id']} {obstacle['name']} at {obstacle['tca_utc'][:19].replace('T', ' ')}"
    reason = "raises the sum of Pc, most by" if obstacle["raises_total"] else "leaves"
    console.print(f"{when} {reason} {what}, Pc {obstacle['probability']:.2e}")


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")


def _burn_text(burn: dict[str, Any]) -> str:
    from sda_platform.clock import iso

    parts = ", ".join(f"{part:+.4f}" for part in burn["dv_rtn_m_s"])
    return f"{iso(burn['time_ns'])}, RTN {parts} m/s"


def _grid(title: str, pairs: list[dict[str, Any]], least: float) -> None:
    """Events from ``least`` on, the largest Pc first, then the number of others and the sums of all."""

    def worst(pair: dict[str, Any]) -> float:
        return max(float(pair[side]["probability"]) for side in ("before", "after") if pair[side])

    shown = sorted((pair for pair in pairs if worst(pair) >= least), key=worst, reverse=True)
    console.print(
        grid(_COLUMNS, map(_row, shown), title=title) if shown else f"{title}: no approach with Pc {least:g} or more"
    )
    sums = [
        f"{sum(pair[side]['probability'] for pair in pairs if pair[side] and _is_planned(pair)):.2e} {side}"
        for side in ("before", "after")
        if any(pair[side] for pair in pairs)
    ]
    rest = f"{len(pairs) - len(shown)} more below {least:g}"
    console.print(f"{rest}; sum of Pc {', '.join(sums) or '0'}")


def _row(pair: dict[str, Any]) -> dict[str, str]:
    known = pair["before"] or pair["after"]
    row = {"secondary": f"{known['norad_id']} {known['name']}", "TCA (UTC)": known["tca_utc"][:19].replace("T", " ")}
    for side, names in (("before", ("miss km", "Pc")), ("after", ("miss after", "Pc after"))):
        each = pair[side]
        none = "––" if _is_planned(pair) else "??"
        row |= dict(zip(names, (f"{each['miss_km']:.3f}", f"{each['probability']:.2e}") if each else none, strict=True))
    return {**row, "by": f"{known['primary_state']}; {known['secondary_state']}"}


def _is_planned(pair: dict[str, Any]) -> bool:
    """Whether the plan covers an event; without a plan, every event counts."""
    return bool(pair.get("is_planned", True))


_NUMBERS = ("miss km", "Pc", "miss after", "Pc after")
_COLUMNS = (*(words(n, n) for n in ("secondary", "TCA (UTC)")), *(number(n, n) for n in _NUMBERS), words("by", "by"))
