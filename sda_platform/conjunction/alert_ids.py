"""Alerts by the beginning of their id, as people type them."""

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.lake import Lake


class UnknownAlert(LookupError):
    """No alert has this id."""


def complete_alert_id(lake: Lake, prefix: str) -> str:
    """Return the id that begins with ``prefix``. Raises UnknownAlert when none, or more than one, does."""
    alert, at, revision = prefix.partition("@")
    if at:
        raise UnknownAlert(
            f"{prefix!r} names a revision, and this takes the whole alert: {alert}; "
            f"`sda alert explain {alert}@{revision}` takes a revision, and so does --as-of"
        )
    known: set[str] = set(lake.log(CONJUNCTION_ALERTS).rows(["event_id"]).column("event_id").to_pylist())
    matching = sorted(name for name in known if name.startswith(prefix))
    if not matching:
        raise UnknownAlert(f"no alert begins with {prefix!r}, of {len(known)}; `sda alert list` lists the active ones")
    if len(matching) > 1:
        raise UnknownAlert(f"{len(matching)} alerts begin with {prefix!r}: {', '.join(m[:12] for m in matching[:5])}…")
    return matching[0]
