"""The tables of docs/reference/access.md."""

from pathlib import Path
from typing import Final

PAGE: Final = (Path(__file__).parents[2] / "docs/reference/access.md").read_text()


def rows(heading: str, page: str = PAGE) -> list[list[str]]:
    """The cells of the table below a heading of ``page``, without its head."""
    lines = page.partition(f"## {heading}\n")[2].partition("\n##")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")][1:]
