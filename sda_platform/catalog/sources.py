"""Sources of element sets: how they rank at equal epochs, and which sets assume a manoeuvre that is planned."""

from sda_platform.formats.element_set import OWN_ORIGINATOR

SOURCE_PRIORITY = {"OWNER/OPERATOR": 30, "18 SPCS": 20, "18 SDS": 20, OWN_ORIGINATOR: 15, "CELESTRAK": 10}
"""Originators by rank: the higher wins at equal epochs; all others have rank 0.

It is of sets whose origin is not known: of files that `sda screen` reads, and of segments that earlier versions of the
platform sealed. Landed sets rank by the source that brought them.
"""
OWN_RANK = SOURCE_PRIORITY[OWN_ORIGINATOR]
"""The rank of the sets that the platform determines itself."""

_PLANNED_MANOEUVRE = "[PM]"


def source_priority(originator: str | None) -> int:
    """Return the rank of an originator's element sets."""
    return SOURCE_PRIORITY.get((originator or "").upper(), 0)


def assumes_planned_manoeuvre(object_name: str | None) -> bool:
    """Return whether the name marks a set that assumes a planned manoeuvre, as in CelesTrak's supplemental data: "X
    [PM]".
    """
    return _PLANNED_MANOEUVRE in (object_name or "").upper()
