"""Who holds whom for what, as a picture: a cut network shows as blocks, a failed member as a column."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sda_platform.protocols.membership import STATUS_NAMES

_COLOURS: Final = ("#eeeeee", "#66bb6a", "#f9a825", "#c62828", "#90a4ae")
_NAMES: Final = ("no claim", *STATUS_NAMES)
_MOST_LABELS: Final = 40


def views_picture(fleet: Sequence[Mapping[str, Any]]) -> str | None:
    """Markdown of the newest claim of each observer (rows) about each member (columns); None without any claim."""
    members = [row["member"] for row in fleet]
    views = {row["member"]: json.loads(row["views"]) for row in fleet}
    observers = sorted({observer for each in views.values() for observer in each})
    if not observers:
        return None
    held = np.zeros((len(observers), len(members)), dtype=int)
    for column, member in enumerate(members):
        for observer, (_, status, *_) in views[member].items():
            held[observers.index(observer), column] = 1 + status
    figure = Figure(figsize=(9.0, min(1.6 + 0.22 * len(observers), 9.0)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(held, cmap=ListedColormap(_COLOURS), vmin=0, vmax=len(_COLOURS) - 1, aspect="auto")
    axes.set_xticks(*_ticks(members), rotation=90)
    axes.set_yticks(*_ticks(observers))
    axes.set_xlabel("member")
    axes.set_ylabel("observer")
    patches = [Patch(color=colour, label=name) for colour, name in zip(_COLOURS, _NAMES, strict=True)]
    figure.legend(handles=patches, ncols=len(patches), loc="outside upper left", fontsize=7)
    out = io.BytesIO()
    with mpl.rc_context({"font.size": 8}):
        figure.savefig(out, format="png", dpi=80, metadata={"Software": None})
    return f"![views of the fleet's members](data:image/png;base64,{base64.b64encode(out.getvalue()).decode()})"


def _ticks(names: Sequence[str]) -> tuple[range, list[str]]:
    """Places and labels, as many as can be read."""
    places = range(0, len(names), -(-len(names) // _MOST_LABELS))
    return places, [names[place] for place in places]
