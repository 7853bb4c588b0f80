"""A timeline as one HTML file that needs nothing else: bars over a time axis, and a table of the same figures."""

from html import escape

from sda_platform.clock import iso
from sda_platform.observability.timeline import AlertTimeline, TimelineSpan

_WIDTH, _NAME, _ROW = 1100, 250, 26
_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 2em; color: #1b1f24; background: #fff; }
table { border-collapse: collapse; margin-top: 1em; } td, th { padding: 3px 10px; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } tr:nth-child(even) { background: #f4f6f8; }
rect { fill: #2f6fab; } rect.wait { fill: #d08a2e; } text { font: 12px system-ui, sans-serif; }
line { stroke: #d5dae0; }
@media (prefers-color-scheme: dark) { body { color: #e3e8ee; background: #14181d; } text { fill: #e3e8ee; }
tr:nth-child(even) { background: #1d232b; } line { stroke: #39424d; } }
"""


def page(found: list[AlertTimeline], alert: str) -> str:
    """Return the timelines of the deliveries of one alert; ``alert`` describes it in one line."""
    sections = "\n".join(_section(each) for each in found) or "<p>The alert was not delivered yet.</p>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(alert)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(alert)}</h1>\n"
        "<p>Orange: received and pending until a run took it. Blue: from a table's plan to its commit.</p>\n"
        f"{sections}</body></html>\n"
    )


def _section(found: AlertTimeline) -> str:
    first_ns = min(span.began_ns for span in found.spans)
    rows = "\n".join(_row(span, first_ns) for span in found.spans)
    return (
        f"<h2>{escape(found.delivery)}: {found.total_s:,.2f} s from reception to subscriber</h2>\n{_chart(found)}\n"
        "<table><tr><th>stage</th><th>begins (UTC)</th><th>after s</th><th>takes s</th><th>facts</th></tr>\n"
        f"{rows}</table>\n"
    )


def _chart(found: AlertTimeline) -> str:
    first_ns, total_s = min(span.began_ns for span in found.spans), found.total_s or 1.0
    scale = (_WIDTH - _NAME - 60) / total_s
    height = _ROW * len(found.spans) + 24
    parts = [f'<svg role="img" aria-label="timeline" viewBox="0 0 {_WIDTH} {height}" width="100%">']
    for tick in range(5):
        x, at_s = _NAME + scale * total_s * tick / 4, total_s * tick / 4
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height - 20}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle">{at_s:.3g} s</text>')
    for number, span in enumerate(found.spans):
        y, x = _ROW * number, _NAME + scale * (span.began_ns - first_ns) / 1e9
        kind = ' class="wait"' if "segments" in span.facts else ""
        parts.append(f'<text x="0" y="{y + 17}">{escape(span.name)}</text>')
        parts.append(f'<rect{kind} x="{x:.1f}" y="{y + 4}" width="{max(scale * span.duration_s, 2):.1f}" height="18"/>')
    return "".join([*parts, "</svg>"])


def _row(span: TimelineSpan, first_ns: int) -> str:
    facts = "; ".join(f"{name} {value}" for name, value in span.facts.items() if value != "")
    return (
        f"<tr><td>{escape(span.name)}</td><td>{iso(span.began_ns)}</td>"
        f'<td class="n">{(span.began_ns - first_ns) / 1e9:,.3f}</td><td class="n">{span.duration_s:,.3f}</td>'
        f"<td>{escape(facts)}</td></tr>"
    )
