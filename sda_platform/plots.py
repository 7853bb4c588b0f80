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
    out = io.BytesIO()
    with _DRAWING, mpl.rc_context({"font.size": 8}):
        figure.savefig(out, format="png", dpi=80, metadata={"Software": None})
    return picture_in_markdown(out.getvalue(), caption)


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
