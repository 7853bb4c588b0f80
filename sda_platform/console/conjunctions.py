"""The table of conjunctions: fleet by time, as a page and as CSV."""

import io
from collections.abc import Sequence
from typing import Any, Final

from sda_platform.conjunction.conjunction_csv import write_conjunctions
from sda_platform.conjunction.selection import first_places, sort_key
from sda_platform.console.conjunction_cells import table_row
from sda_platform.console.filters import Filters
from sda_platform.console.overview import Overview, Row
from sda_platform.foreign_text import Html
from sda_platform.html_elements import element, joined
from sda_platform.orbits.risk.levels import RISK_LEVELS

_COLUMNS: Final = (
    ("level", "Level"), ("", "Primary – secondary"), ("tca", "TCA (UTC)"), ("miss", "Miss km"), ("pc", "Pc"),
    ("", "Largest Pc"), ("speed", "Speed km/s"), ("", "Data age"), ("", "States from"), ("", "Received CDMs"),
    ("", "Acknowledged, assigned"),
)  # fmt: skip
"""The order that a header sorts by, where it does, and its title."""


def shown_rows(overview: Overview, filters: Filters, selection: Any) -> list[Row]:
    """Return the selected rows in the order that is asked for."""
    return sorted(filter(selection.has, overview.rows), key=lambda row: sort_key(filters.sort, row))


def conjunction_table(rows: Sequence[Row], now_ns: int, filters: Filters | None = None, root: str = "") -> Html:
    """Make the table of these rows; with ``filters`` its headers sort."""
    header = (_header(order, title, filters) for order, title in _COLUMNS)
    return element(
        "div",
        element(
            "table",
            element("caption", "Conjunctions"),
            element("thead", element("tr", *header)),
            element("tbody", *(table_row(row, now_ns, root) for row in rows)),
            class_="conjunctions",
        ),
        class_="wide",
        tabindex=0,
        role="region",
        aria_label="Conjunctions",
    )


def listed(overview: Overview, rows: Sequence[Row], filters: Filters) -> Html:
    """Make the table of the first rows, every red one included, with a line that counts what it shows."""
    first = [rows[place] for place in first_places((row["risk"] for row in rows), filters.limit)]
    counts = ", ".join(f"{sum(row['risk'] == level for row in rows):,} {level}" for level in reversed(RISK_LEVELS))
    of_all = f" of {len(overview.rows):,}" if len(rows) < len(overview.rows) else ""
    line = f"{len(rows):,}{of_all} conjunctions: {counts}."
    more = element("a", f"Show all {len(rows):,}", href=filters.query(limit=min(len(rows), 10_000)))
    return joined(
        element(
            "p",
            line,
            f" The first {len(first):,} are shown. " if len(first) < len(rows) else " ",
            more if len(first) < len(rows) else None,
            " ",
            element("a", "CSV of these", href=f"conjunctions.csv{filters.query()}"),
            class_="count",
        ),
        conjunction_table(first, overview.currency.now_ns, filters) if rows else _nothing(overview, filters),
    )


def _nothing(overview: Overview, filters: Filters) -> Html:
    if filters.is_any and overview.rows:
        return element("p", f"None of {len(overview.rows):,} conjunctions is selected by these filters.", class_="none")
    return element("p", "No conjunction is known. The lines above say what was screened.", class_="none")


def _header(order: str, title: str, filters: Filters | None) -> Html:
    if filters is None or not order:
        return element("th", title, scope="col")
    is_first = filters.sort == order
    link = element("a", title, href=filters.query(sort=order))
    return element(
        "th",
        link,
        scope="col",
        aria_sort=("ascending" if order in ("tca", "miss") else "descending") if is_first else None,
    )


def csv_of(rows: Sequence[Row], now_ns: int) -> str:
    """Return rows of the table as CSV, with the mark by which Excel reads it as UTF-8."""
    out = io.StringIO("\ufeff", newline="")
    out.seek(0, io.SEEK_END)
    write_conjunctions(rows, now_ns, out)
    return out.getvalue()
