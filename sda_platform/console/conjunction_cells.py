"""A row of the table of conjunctions, cell by cell."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sda_platform.clock import iso
from sda_platform.conjunction.cdm_comparison import reported_probability
from sda_platform.conjunction.currency import words_of
from sda_platform.conjunction.data_origins import SHORT_KINDS, of_whom
from sda_platform.console.overview import Row
from sda_platform.console.page import ahead, badge
from sda_platform.foreign_text import Html
from sda_platform.formats.markings import Marking
from sda_platform.html_elements import element, joined
from sda_platform.orbits.risk.levels import probability_text
from sda_platform.units import SECOND_NS

NONE: Final = "–"


def table_row(row: Row, now_ns: int, root: str = "") -> Html:
    """Make the row of a conjunction; ``root`` leads to the console's first page."""
    cells = (
        _level(row), element("th", *_pair(row, root), scope="row", data_label="Pair"), _tca(row, now_ns), _miss(row),
        _number(row["collision_probability"], _pc, "Pc"),
        _number(row["maximum_probability"], _pc, "Largest Pc"),
        _number(row["relative_speed_km_s"], "{:.2f}".format, "Speed km/s"),
        _cell("Data age", *_lines(_age(row, n, now_ns) for n in (1, 2))),
        _cell("States from", *_lines(_source(row, n) for n in (1, 2))),
        _cell("Received CDMs", *_lines(_received(row))),
        _cell("Acknowledged, assigned", *_lines(_people(row)), title=row["comment"] or None),
    )  # fmt: skip
    return element("tr", *cells, id=f"c-{row['event_id']}")


def _level(row: Row) -> Html:
    rule = (row["rule"] or "").replace("_", " ")
    return _cell("Level", badge(row["risk"]), element("small", rule) if rule and rule != "probability" else None)


def _pair(row: Row, root: str) -> tuple[object, ...]:
    names = " – ".join(row[f"object_name_{n}"] or "unnamed" for n in (1, 2))
    event = element("a", names, href=f"{root}conjunctions/{row['event_id']}", class_="event")
    numbers = [
        element("a", number, href=f"{root}objects/{number}") if (number := row[f"norad_id_{n}"]) else NONE
        for n in (1, 2)
    ]
    marks = [" ", element("strong", f"[{shown}]")] if (shown := Marking.of(row).shown) else []
    return event, element("small", numbers[0], " – ", numbers[1], *marks)


def _tca(row: Row, now_ns: int) -> Html:
    when = iso(row["tca_time_ns"])
    time = element("time", f"{when[:10]} {when[11:19]}", datetime=when)
    return _cell("TCA (UTC)", time, element("small", ahead(row["tca_time_ns"], now_ns)), class_="time")


def _miss(row: Row) -> Html:
    parts = [row[f"{name}_miss_km"] for name in ("radial", "in_track", "cross_track")]
    rtn = "R T N " + " ".join(f"{part:+.2f}" for part in parts) if None not in parts else "as stated"
    return _cell("Miss km", f"{row['miss_distance_km']:.3f}", element("small", rtn), class_="number")


def _age(row: Row, n: int, now_ns: int) -> str:
    time_ns = row[f"data_time_{n}_ns"]
    return NONE if time_ns is None else words_of((now_ns - time_ns) / SECOND_NS)


def _source(row: Row, n: int) -> str:
    kind = row[f"state_source_{n}"]
    if not kind:
        return str(row["why_unassessed"]) if n == 1 else ""
    return f"{SHORT_KINDS.get(kind, kind)} {of_whom(row[f'data_of_{n}'] or '')}".rstrip()


def _received(row: Row) -> list[object]:
    """Name what each originator states, and whether it agrees with ours."""
    found: list[object] = []
    for opinion in row["received"]:
        stated = reported_probability(opinion.message)
        text = f"{opinion.message['originator'] or 'unknown'} {NONE if stated is None else _pc(stated)}"
        agrees = "no Pc" if stated is None else "differs" if opinion.disagreement else "agrees"
        # The judgement comes first: the end of a long line is cut.
        found.append(joined(element("em", agrees, class_=agrees), " ", text))
    if not found and row["stated_by"]:
        found.append(f"{row['stated_by']} {_pc(row['stated_probability'])}")
    return found or [NONE]


def _people(row: Row) -> list[str]:
    """Name who acknowledged it, and to whom it is assigned."""
    seen = f"{row['acknowledged_by']}{', revised since' if row['is_revised_since'] else ''}"
    return [*filter(None, (seen, row["assigned_to"] and f"→ {row['assigned_to']}"))] or [NONE]


def _number(value: float | None, text: Callable[[float], str], label: str) -> Html:
    return _cell(label, NONE if value is None else text(value), class_="number")


def _pc(probability: float) -> str:
    return probability_text(probability, 1)


def _lines(parts: Iterable[object]) -> Sequence[Html]:
    return [element("span", part, class_="line", title=part if type(part) is str else None) for part in parts]


def _cell(label: str, *content: object, **attributes: object) -> Html:
    return element("td", *content, data_label=label, **attributes)
