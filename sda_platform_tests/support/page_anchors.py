"""The text of a page of the documentation, and the anchors that its headings make."""

import re
from pathlib import Path
from typing import Final

_CODE: Final = re.compile(r"```.*?```", re.DOTALL)


def text_of(page: Path) -> str:
    """The text of a page without its fenced blocks, whose contents are examples."""
    return _CODE.sub("", page.read_text())


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
