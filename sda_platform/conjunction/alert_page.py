"""An alert's report: one HTML page that holds everything, so that it can be read without a network.

The console shows the same sections, with pictures and scripts as files of its own.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sda_platform.clock import iso
from sda_platform.conjunction.alert_policy import why_level
from sda_platform.conjunction.czml import czml
from sda_platform.conjunction.data_origins import DataOrigin, Key
from sda_platform.conjunction.encounter_facts import action_row, encounter_rows, message_row, object_rows
from sda_platform.conjunction.encounter_figures import dilution_figure, history_figure, plane_figure
from sda_platform.conjunction.globe import ORBIT_VIEW, orbit_viewer
from sda_platform.conjunction.history import EventHistory
from sda_platform.conjunction.level_colours import LEVEL_COLOURS
from sda_platform.foreign_text import Html
from sda_platform.formats.markings import Marking, of_event
from sda_platform.html_elements import element, joined, section, table
from sda_platform.orbits.risk.levels import probability_text

_STYLE: Final = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.6rem 0;width:100%}
td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left}
th{background:#f4f4f4}svg,canvas{max-width:100%;height:auto}canvas{border:1px solid #ccc;touch-action:none;cursor:grab}
.red,.green{color:#fff}.level{padding:.1rem .5rem;border-radius:.3rem}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
#time{width:70%}code{overflow-wrap:anywhere}
""" + "".join(f".{level}{{background:{colour}}}" for level, colour in LEVEL_COLOURS.items())
_OF_MESSAGE: Final = (
    "created (UTC)", "originator", "TCA differs s", "miss km", "stated Pc", "recomputed Pc", "message", "superseded",
)  # fmt: skip
OF_ACTIONS: Final = ("at (UTC)", "by", "what", "comment")
"""The header of a table of `action_row`."""
_OF_ENTRY: Final = (
    "as of (UTC)", "revision", "entry", "level", "own Pc", "stated Pc", "miss km", "TCA (UTC)", "changed", "level by",
)  # fmt: skip
_OF_OBJECTS: Final = ("", "primary", "secondary")
_TITLES: Final = {"plane": "Encounter plane", "dilution": "Pc by scale of the covariance", "orbits": "Orbits about TCA"}
_PROBABILITIES: Final = ("collision_probability", "stated_probability")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class AlertReport:
    """What the page of an alert, or of another conjunction, shows.

    ``entries`` are its rows of `conjunction_alerts`, none where it was no alert; ``lineage`` names what it rests on,
    down to segments, and ``rests_on`` counts it; ``origins`` whose data that is; ``objects`` what else is known of
    either object, by title; ``actions`` what people did about it; ``more`` further sections, by title.
    """

    alert_id: str
    entries: Sequence[Row]
    history: EventHistory
    actions: Sequence[Row] = ()
    lineage: Sequence[str] = ()
    rests_on: str = ""
    origins: Mapping[Key, DataOrigin] = field(default_factory=dict)
    objects: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    more: Mapping[str, Html] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """Both objects, with their numbers."""
        last = self.history.last
        return " – ".join(f"{last[f'object_name_{n}'] or 'unnamed'} ({last[f'norad_id_{n}']})" for n in (1, 2))

    @property
    def state(self) -> tuple[str, str]:
        """The level, and open, closed, withdrawn, or no alert."""
        if not self.entries:
            return self.history.levels[-1], "no alert" if self.history.is_current else "withdrawn"
        alert = self.entries_in_order[-1]
        return alert["risk"], (alert["status"] or "open") if alert["op"] == "insert" else "withdrawn"

    @property
    def why(self) -> str:
        """By which rule the alert has its level; empty for what is no alert, or is withdrawn."""
        return why_level(self.entries_in_order[-1]) if self.entries and self.state[1] != "withdrawn" else ""

    @property
    def marking(self) -> Marking:
        """What marks the data of the last assessment, and of the message that the alert names."""
        return of_event(self.history.last, *self.entries_in_order[-1:])

    @property
    def entries_in_order(self) -> list[Row]:
        """The alert's entries by revision; the retract of one, if it has one, comes after its insert."""
        return sorted(self.entries, key=lambda row: (row["sequence"], row["op"]))

    def html(self) -> str:
        """Write the report as an HTML page."""
        level, status = self.state
        pictures = {"history": Html(history_figure(self.history))}
        if self.has_states:
            # A "<" inside a script element could end it.
            script = Html(f"<script>{ORBIT_VIEW.read_text(encoding='utf-8')}</script>")
            pictures |= {
                "plane": Html(plane_figure(self.history.last)),
                "dilution": Html(dilution_figure(self.history)),
                "orbits": joined(orbit_viewer(self.history.last), script),
            }
        head = joined(element("meta", charset="utf-8"), element("title", self.names), Html(f"<style>{_STYLE}</style>"))
        badge = element("span", level, class_=f"level {level}")
        marks = (element("strong", f"[{shown}] "),) if (shown := self.marking.shown) else ()
        top = element(
            "p",
            *marks,
            badge,
            f" {self.why}; " if self.why else " ",
            f"{status}, alert ",
            element("code", self.alert_id),
        )
        body = element("body", element("h1", self.names), top, self.sections(pictures))
        return f'<!doctype html><html lang="en">{element("head", head)}{body}</html>\n'

    @property
    def has_states(self) -> bool:
        """Whether the last assessment has the states that pictures of the encounter are drawn from."""
        return bool(self.history.last["state_1"])

    def sections(self, pictures: Mapping[str, Html]) -> Html:
        """Make the sections of the page; ``pictures``: history, and of an event with states those of _TITLES."""
        last = self.history.last
        messages = (message_row(message, last["tca_time_ns"]) for message in self.history.opinions)
        objects = object_rows(last, self.origins, self.objects)
        parts = [
            section("Encounter", table("Encounter", (), encounter_rows(last))),
            section("Risk and miss over time", pictures["history"], *_note_on_levels(self.history)),
            section("Objects and data used", table("Objects", _OF_OBJECTS, objects), class_="tall"),
            *(section(_TITLES[name], pictures[name]) for name in _TITLES if name in pictures),
            *(section(title, content, class_="whole") for title, content in self.more.items()),
            _long("Received conjunction data messages", _OF_MESSAGE, messages),
            _long("What changed and why", _OF_ENTRY, self._changes()),
            _long("Hand-over log", OF_ACTIONS, map(action_row, self.actions)),
            section("Lineage", self._lineage(), class_="whole"),
        ]
        return element("div", *parts, class_="report")

    def czml(self) -> str:
        """Both orbits about TCA as CZML."""
        return json.dumps(czml(self.history.last), indent=1)

    def _lineage(self) -> Html:
        lines = (element("li", element("code", line.strip())) for line in self.lineage)
        summary = f"{self.rests_on or f'{len(self.lineage)} lines'}: segments and records"
        return element("details", element("summary", summary), element("ul", *lines))

    def _changes(self) -> Iterable[Sequence[str]]:
        revised = {row["sequence"] - 1 for row in self.entries if row["op"] == "insert"}
        for row in self.entries_in_order:
            if row["op"] == "retract" and row["sequence"] in revised:
                continue  # its insert is the line that shows the change
            why = (row["change"] or "") if row["op"] == "insert" else ""
            yield (
                iso(row["as_of_ns"]),
                str(row["sequence"]),
                row["op"],
                row["risk"],
                *("" if row[name] is None else probability_text(row[name]) for name in _PROBABILITIES),
                f"{row['miss_distance_km']:.3f}",
                iso(row["tca_time_ns"]),
                why.replace(",", ", ").replace("_", " "),
                (row["rule"] or "").replace("_", " ") if why else "",
            )


def _long(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """Make the section of a table of times, which has the whole width."""
    return section(title, table(title, header, rows, class_="times"), class_="whole")


def _note_on_levels(history: EventHistory) -> Iterable[Html]:
    levels = ", ".join(f"{level} from {pc:g}" for level, pc in history.thresholds.items())
    yield element(
        "p", f"Levels of this pair by the alert policy in force, by Pc: {levels}. Other rules may raise them."
    )
    if not history.is_current:
        yield element("p", "The event is gone: no screening finds it any more.")
