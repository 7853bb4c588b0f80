"""Markdown for Dagster's UI: text is escaped where it becomes a part of it; no asset has to remember it."""

import base64
from collections.abc import Iterable, Sequence

from sda_platform.foreign_text import Markdown, in_markdown

NOTHING = Markdown("nothing")


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: int = 0) -> Markdown:
    """Make a table; its last ``numbers`` columns are aligned to the right."""
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    return Markdown("\n".join([line(header), f"|{'|'.join(rule)}|", *map(line, rows)]))


def line(cells: Iterable[object]) -> Markdown:
    """Make a line of a table."""
    return Markdown(f"| {' | '.join(map(in_markdown, cells))} |")


def bullets(lines: Iterable[object]) -> Markdown:
    """Make a list; without lines it is the word nothing."""
    return Markdown("\n".join(f"- {in_markdown(each)}" for each in lines)) or NOTHING


def picture(png: bytes, caption: str) -> Markdown:
    """Embed a PNG."""
    return Markdown(f"![{in_markdown(caption)}](data:image/png;base64,{base64.b64encode(png).decode()})")
