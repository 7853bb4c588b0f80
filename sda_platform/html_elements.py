"""Pages of HTML made of elements: text is escaped where it becomes a part of one; no page has to remember it."""

from collections.abc import Iterable, Sequence
from typing import Final

from sda_platform.foreign_text import Html, in_html

_EMPTY: Final = frozenset({"br", "img", "input", "link", "meta"})


def element(tag: str, /, *content: object, **attributes: object) -> Html:
    """Make an element of HTML. Content that is None is left out.

    Of an attribute's name a final underscore is removed, and others are hyphens: ``class_``, ``data_label``. True
    writes its name alone; None and False leave it out.
    """
    stated = {each.rstrip("_").replace("_", "-"): value for each, value in attributes.items()}
    written = "".join(
        f" {each}" if value is True else f' {each}="{in_html(value)}"'
        for each, value in stated.items()
        if value is not None and value is not False
    )
    if tag in _EMPTY:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(*content)}</{tag}>")


def joined(*content: object) -> Html:
    """Join parts of a page; those that are None are left out."""
    return Html("".join(in_html(each) for each in content if each is not None))


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], class_: str | None = None) -> Html:
    """Make a table whose rows begin with their header; ``header`` may be empty. Without rows it is the word none."""
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in others))
        for first, *others in rows
    ]
    if not body:
        return element("p", "none")
    top = element("thead", element("tr", *(element("th", name, scope="col") for name in header))) if header else None
    shown = element(
        "table", element("caption", caption) if caption else None, top, element("tbody", *body), class_=class_
    )
    return element("div", shown, class_="wide", tabindex=0, role="region", aria_label=caption or "table")


def labelled(text: str, control: Html) -> Html:
    """Make a control of a form with its label."""
    return element("label", element("span", text), control)


def section(title: str, *content: object, class_: str | None = None) -> Html:
    """Make a section with a heading."""
    return element("section", element("h2", title), *content, class_=class_)
