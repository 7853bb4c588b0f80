"""An alert's report: one HTML page that holds everything, so that it can be read without a network."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from sda_platform.clock import iso
from sda_platform.conjunction.czml import czml
from sda_platform.conjunction.data_origins import STATE_KINDS, DataOrigin, Key
from sda_platform.conjunction.encounter_figures import history_figure, plane_figure
from sda_platform.conjunction.history import EventHistory
from sda_platform.conjunction.level_colours import LEVEL_COLOURS

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.6rem 0;width:100%}
td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left}
th{background:#f4f4f4}svg,canvas{max-width:100%;height:auto}canvas{border:1px solid #ccc;touch-action:none;cursor:grab}
.red,.green{color:#fff}.level{padding:.1rem .5rem;border-radius:.3rem}
#time{width:70%}.figures{display:flex;flex-wrap:wrap;gap:1rem}code{overflow-wrap:anywhere}
""" + "".join(f".{level}{{background:{colour}}}" for level, colour in LEVEL_COLOURS.items())
_PROBABILITIES = ("collision_probability", "stated_probability")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class AlertReport:
    """What the page of an alert shows.

    ``entries`` are its rows of `conjunction_alerts`; ``lineage`` names what it rests on, down to segments;
    ``origins`` whose data that is.
    """

    alert_id: str
    entries: Sequence[Row]
    history: EventHistory
    acknowledgements: Sequence[Row] = ()
    lineage: Sequence[str] = ()
    origins: Mapping[Key, DataOrigin] = field(default_factory=dict)

    def html(self) -> str:
        """Write the report as an HTML page."""
        last, alert = self.history.last, max(self.entries, key=lambda row: (row["sequence"], row["op"]))
        names = " – ".join(f"{last[f'object_name_{n}'] or 'unnamed'} ({last[f'norad_id_{n}']})" for n in (1, 2))
        is_active = alert["op"] == "insert"
        status = (alert["status"] or "open") if is_active else "withdrawn"
        level = f'<span class="level {escape(alert["risk"])}">{escape(alert["risk"])}</span>'
        parts = [
            f"<h1>{escape(names)}</h1><p>{level} {escape(status)}, alert <code>{escape(self.alert_id)}</code></p>",
            "<h2>Encounter</h2>",
            _pairs(_encounter(last)),
            "<h2>Objects and data used</h2>",
            _table(("", "primary", "secondary"), _objects(last, self.origins)),
            "<h2>Risk and miss over time</h2>",
            history_figure(self.history),
        ]
        if last["state_1"]:
            parts += ["<h2>Encounter plane</h2>", plane_figure(last), "<h2>Orbits about TCA</h2>", _viewer(last)]
        parts += [
            "<h2>What changed and why</h2>",
            _table(
                ("as of (UTC)", "revision", "entry", "level", "why", "own Pc", "stated Pc", "miss km", "TCA (UTC)"),
                self._changes(),
            ),
            "<h2>Acknowledgements</h2>",
            _table(("by", "revision", "at (UTC)", "comment"), map(_acknowledgement, self.acknowledgements)),
            "<h2>Lineage</h2>",
            "<ul>" + "".join(f"<li><code>{escape(line.strip())}</code></li>" for line in self.lineage) + "</ul>",
        ]
        head = f'<meta charset="utf-8"><title>{escape(names)}</title><style>{_STYLE}</style>'
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'

    def czml(self) -> str:
        """Both orbits about TCA as CZML."""
        return json.dumps(czml(self.history.last), indent=1)

    def _changes(self) -> Iterable[Sequence[str]]:
        for row in sorted(self.entries, key=lambda each: (each["sequence"], each["op"])):
            why = (row["change"] or "") if row["op"] == "insert" else ""
            yield (
                iso(row["as_of_ns"]),
                str(row["sequence"]),
                row["op"],
                row["risk"],
                f"{why.replace(',', ', ')}{' by ' + row['rule'] if why and row['rule'] else ''}",
                *("" if row[name] is None else f"{row[name]:.2e}" for name in _PROBABILITIES),
                f"{row['miss_distance_km']:.3f}",
                iso(row["tca_time_ns"]),
            )


def _encounter(last: Row) -> dict[str, str]:
    components = ", ".join(
        f"{name.replace('_', '-')} {last[f'{name}_miss_km']:+.3f}" for name in ("radial", "in_track", "cross_track")
    )
    return {
        "TCA (UTC)": iso(last["tca_time_ns"]),
        "miss": f"{last['miss_distance_km']:.3f} km ({components})",
        "relative speed": f"{last['relative_speed_km_s']:.3f} km/s",
        "our Pc": f"{last['collision_probability']:.3e} by {last['probability_method'] or 'unknown'}",
        "largest Pc over scalings": f"{last['maximum_probability']:.3e}",
        "miss in sigmas": f"{last['mahalanobis_distance']:.2f}",
        "hard-body radius": _radii(last),
        "flags": last["risk_flags"] or "none",
        "assessed as of": iso(last["as_of_ns"]),
    }


def _radii(last: Row) -> str:
    parts = [f"{last[f'radius_{n}_m']:g} m" for n in (1, 2)] if last["radius_source_1"] else []
    return f"{last['hard_body_radius_m']:g} m, both objects" + (f" ({' + '.join(parts)})" if parts else "")


def _objects(last: Row, origins: Mapping[Key, DataOrigin]) -> list[tuple[str, ...]]:
    shown = {
        "name": "object_name",
        "catalogue number": "norad_id",
        "type": "object_type",
        "radius from": "radius_source",
        "state from": "state_source",
        "newest window of the track": "track_id",
        "ephemeris": "ephemeris_id",
    }
    both = {title: [str(last[f"{column}_{n}"] or "") for n in (1, 2)] for title, column in shown.items()}
    both["state from"] = [STATE_KINDS.get(text, text) for text in both["state from"]]
    known = [origins.get((last["event_id"], n)) for n in (1, 2)]
    both["data of"] = [each.data or "not recorded" if each else "not recorded" for each in known]
    moved = [last[f"manoeuvre_time_{n}_ns"] for n in (1, 2)]
    if any(moved):
        both["suspected of a manoeuvre at or since (UTC), not in its elements"] = [
            iso(at) if at else "" for at in moved
        ]
    return [(title, *texts) for title, texts in both.items()]


def _acknowledgement(row: Row) -> tuple[str, str, str, str]:
    return row["acknowledged_by"], str(row["revision"]), iso(row["acknowledged_time_ns"]), row["comment"]


def _viewer(last: Row) -> str:
    # A "<" inside a script element could end it.
    packets = json.dumps(czml(last)).replace("<", "\\u003c")
    script = Path(__file__).with_name("orbit_view.js").read_text(encoding="utf-8")
    return (
        '<canvas id="orbits" width="960" height="560"></canvas><p><button id="play">play</button> '
        '<button id="whole">whole orbits</button> <button id="pair">encounter</button> '
        '<input id="time" type="range" min="-1000" max="1000" value="0" aria-label="time about TCA"></p>'
        '<p id="when"></p><p>Drag to turn, scroll to zoom.</p>'
        f'<script type="application/json" id="czml">{packets}</script><script>{script}</script>'
    )


def _pairs(facts: Mapping[str, str]) -> str:
    return _table((), ((name, value) for name, value in facts.items()))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "<tr>" + "".join(f"<th>{escape(name)}</th>" for name in header) + "</tr>" if header else ""
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{top}{body}</table>" if body else "<p>none</p>"
