"""Kinds of objects by their catalogue names, and the radius to assume of each."""

HARD_BODY_RADIUS_M = {"payload": 5.0, "rocket body": 5.0, "debris": 0.5, "unknown": 1.0}
"""Assumed radius of an object of which only the kind is known; as used by public screening services."""


def object_type(object_name: str | None) -> str:
    """Kind of object by its catalogue name: payload, rocket body, debris or unknown."""
    name = (object_name or "").strip().upper()
    if not name or name.startswith(("UNKNOWN", "OBJECT ", "TBA", "TBD")):
        return "unknown"
    if " DEB" in name or "COOLANT" in name or name == "DEB":
        return "debris"
    return "rocket body" if " R/B" in name or "(R/B" in name else "payload"
