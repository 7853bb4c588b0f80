"""The order in which a run executes steps that are ready at the same time: alerts first, reports last."""

_TAG = "dagster/priority"


def at_priority(priority: int) -> dict[str, str]:
    """Return the tag of a step; of steps that are ready, that of the highest priority is executed first
    (default: 0).
    """
    return {_TAG: str(priority)}


AFTER_ALERTS = at_priority(-20)
"""The tag of a check that blocks nothing: it is evaluated once no step on the way to the alerts is left."""
