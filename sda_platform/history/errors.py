"""Errors of queries of the past."""

from dataclasses import asdict, dataclass
from typing import Any

from sda_platform.clock import iso
from sda_platform.lake.errors import InvalidRequest, VersionGone


class QueryRefused(InvalidRequest):
    """A query cannot be run: it is not one SELECT, names what does not exist, or passes a limit."""


class UnknownMoment(InvalidRequest):
    """A text names no time, no alert and no versions."""


@dataclass
class VersionExpired(VersionGone):
    """A past state of ``table`` cannot be read any more; ``nearest_…`` name the oldest state that can, if any.

    ``requested`` is the requested version or time, as text. Times are commit times, Unix time in ms.
    """

    table: str
    requested: str
    reason: str
    nearest_version: int | None = None
    nearest_time_ms: int | None = None

    def __str__(self) -> str:
        if self.nearest_version is None:
            remedy = "no older state can be read"
        else:
            at = f" of {iso(self.nearest_time_ms * 1_000_000)}" if self.nearest_time_ms else ""
            remedy = f"the oldest that can be read is version {self.nearest_version}{at}"
        return f"{self.table}: {self.requested} cannot be read any more ({self.reason}); {remedy}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, as JSON has them."""
        return {"kind": "version_expired", "message": str(self), **asdict(self)}
