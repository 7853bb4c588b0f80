"""Recorded settings: a commit records the settings that its rows depend on, and a replay uses the recorded ones."""

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

import dagster as dg

from sda_platform.formats.listings import ListingError
from sda_platform.lake.errors import NotReplayable

Value = TypeVar("Value")
_LISTS = "lists_sha256"


class RecordedResource(dg.ConfigurableResource[Value]):
    """A resource with such settings; an asset that uses it passes them to its plan (`Lake.plan`)."""

    _UNRECORDED: ClassVar[tuple[str, ...]] = ()
    """Fields that change how long something takes, and no row."""

    def listed(self) -> object:
        """Return the contents of the files that the settings name, of which a hash is recorded; None where they name
        none.

        Raises ListingError where a file cannot be used.
        """
        return None

    def lists(self) -> str:
        """Return the files that the settings name, for a message."""
        return ""

    def recorded(self) -> dict[str, Any]:
        """Return what a commit manifest keeps: values that JSON can hold, and a hash of what is listed in files."""
        values = {name: getattr(self, name) for name in type(self).model_fields if name not in self._UNRECORDED}
        return values if (listed := self.listed()) is None else {**values, _LISTS: _sha256(listed)}

    def as_recorded(self, settings: Mapping[str, Any]) -> Self:
        """Return this resource with the ``settings`` of a commit; a newer setting keeps its value.

        Raises NotReplayable where a setting no longer exists, or a file lists other entries than it did.
        """
        known = type(self).model_fields
        if unknown := sorted(set(settings) - {*known, _LISTS}):
            raise NotReplayable(
                f"this version of the platform has no setting {', '.join(unknown)} of {type(self).__name__}"
            )
        values = {name: value for name, value in settings.items() if name != _LISTS}
        then = type(self)(**{**{name: getattr(self, name) for name in known}, **values})
        try:
            is_same = _LISTS not in settings or _sha256(then.listed()) == settings[_LISTS]
        except ListingError as error:
            raise NotReplayable(str(error)) from error
        if not is_same:
            raise NotReplayable(
                f"{then.lists()} lists other entries than when this was committed: restore what it listed then"
            )
        return then

    def as_unrecorded(self) -> Self:
        """Return this resource for a commit that recorded none of its settings: one of an earlier release."""
        return self


def _sha256(listed: object) -> str:
    return hashlib.sha256(repr(listed).encode()).hexdigest()
