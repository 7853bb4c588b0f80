"""Settings that decide what rows say: commits record them, and a replay takes them from there, not from today."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

import dagster as dg

from sda_platform.lake.errors import NotReplayable

Value = TypeVar("Value")


class RecordedResource(dg.ConfigurableResource[Value]):
    """A resource of such settings; whoever uses it has its plan record them (`Lake.plan`)."""

    _UNRECORDED: ClassVar[tuple[str, ...]] = ()
    """Fields that change how long something takes, and no row."""

    def recorded(self) -> dict[str, Any]:
        """What a checkpoint keeps: values that JSON knows."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in self._UNRECORDED}

    def as_recorded(self, settings: Mapping[str, Any]) -> Self:
        """This resource with the ``settings`` of a commit; what it has learned to record since then stays as it is.

        Raises NotReplayable where they cannot be had any more.
        """
        known = type(self).model_fields
        if unknown := sorted(set(settings) - set(known)):
            raise NotReplayable(
                f"this version of the platform has no setting {', '.join(unknown)} of {type(self).__name__}"
            )
        return type(self)(**{**{name: getattr(self, name) for name in known}, **settings})
