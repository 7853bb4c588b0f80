"""Pictures: inside Markdown, as Dagster's UI shows them, and as SVG, for pages."""

import base64
import io
from threading import Lock

import matplotlib as mpl
from matplotlib.figure import Figure

_DRAWING = Lock()
"""Matplotlib shares its fonts between threads."""


def figure_in_markdown(figure: Figure, caption: str) -> str:
    """``figure`` as a PNG inside Markdown; equal figures give equal text."""
    with _DRAWING, mpl.rc_context({"font.size": 8}):
        png = _png(figure, 80)
    return picture_in_markdown(png, caption)


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


def picture_in_markdown(png: bytes, caption: str) -> str:
    """Embed a PNG in Markdown."""
    return f"![{caption}](data:image/png;base64,{base64.b64encode(png).decode()})"


def _png(figure: Figure, dpi: float) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()
