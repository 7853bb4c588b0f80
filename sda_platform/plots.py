"""Pictures: inside Markdown, as Dagster's UI shows them, and as SVG, for pages."""

import io
from threading import Lock

import matplotlib as mpl
from matplotlib.figure import Figure

from sda_platform.foreign_text import Markdown
from sda_platform.markdown_elements import picture

_DRAWING = Lock()
"""Matplotlib shares its fonts between threads."""


def figure_in_markdown(figure: Figure, caption: str) -> Markdown:
    """``figure`` as a PNG inside Markdown; equal figures give equal text."""
    with _DRAWING, mpl.rc_context({"font.size": 8}):
        png = _png(figure, 80)
    return picture(png, caption)


def png_of(figure: Figure) -> bytes:
    """Return ``figure`` as a PNG; equal figures give equal bytes."""
    with _DRAWING:
        return _png(figure, figure.dpi)


def svg_of(figure: Figure) -> str:
    """Return ``figure`` as an element of a page."""
    out = io.StringIO()
    with _DRAWING:
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _png(figure: Figure, dpi: float) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()
