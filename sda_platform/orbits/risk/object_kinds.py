"""Kinds of objects, by what a satellite catalogue states or by their names, and the radius to assume of each."""

import re

HARD_BODY_RADIUS_M = {"payload": 5.0, "rocket body": 5.0, "debris": 0.5, "unknown": 1.0}
"""Assumed radius of an object of which only the kind is known; as used by public screening services."""
_DEBRIS = re.compile(r"\b(?:DEB|DEBRIS|FRAG|FRAGMENTS?|COOLANT)\b")


def object_type(object_name: str | None) -> str:
    """Kind of object by its name, as public catalogues name objects: payload, rocket body, debris or unknown."""
    name = (object_name or "").strip().upper()
    if not name or name.startswith(("UNKNOWN", "OBJECT ", "TBA", "TBD")):
        return "unknown"
    if _DEBRIS.search(name):
        return "debris"
    return "rocket body" if " R/B" in name or "(R/B" in name else "payload"


def stated_type(text: str) -> str:
    """Kind of object by the word of a satellite catalogue; one without a kind, such as TBA, is unknown."""
    kind = text.lower()
    return kind if kind in HARD_BODY_RADIUS_M else "unknown"
