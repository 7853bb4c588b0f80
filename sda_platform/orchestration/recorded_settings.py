"""Recorded settings: a commit records the settings that its rows depend on, and a replay uses the recorded ones."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import dagster as dg
from upath import UPath

from sda_platform.formats.listings import ListingError
from sda_platform.lake import durable
from sda_platform.lake.errors import NotReplayable
from sda_platform.list_settings import KEPT_LISTS, LISTS, HomeLists

Value = TypeVar("Value")
_LISTS = "lists_sha256"
_PLACES = tuple(HomeLists.model_fields)


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
        left_out = (*self._UNRECORDED, *_PLACES)
        values = {name: getattr(self, name) for name in type(self).model_fields if name not in left_out}
        if (listed := self.listed()) is None:
            return values
        self._keep(digest := _sha256(listed))
        return {**values, _LISTS: digest}

    def as_recorded(self, settings: Mapping[str, Any]) -> Self:
        """Return this resource with the ``settings`` of a commit; a newer setting keeps its value.

        Lists are those that were kept, wherever the home is now; else the files as they are, or the shipped ones.
        Raises NotReplayable where a setting no longer exists, or a file lists other entries than it did.
        """
        known = type(self).model_fields
        if unknown := sorted(set(settings) - {*known, _LISTS}):
            raise NotReplayable(
                f"this version of the platform has no setting {', '.join(unknown)} of {type(self).__name__}"
            )
        values = {name: value for name, value in settings.items() if name != _LISTS}
        present, digest = {name: getattr(self, name) for name in known}, settings.get(_LISTS)
        then, why = type(self)(**{**present, **values}), ""
        for place in self._places(digest):
            found = type(self)(**{**present, **values, **place})
            try:
                if ((listed := found.listed()) is None and digest is None) or (digest and _sha256(listed) == digest):
                    return found
            except ListingError as error:
                why = why or str(error)
        if digest is None:  # of an earlier release, which recorded no hash of its lists
            return then
        raise NotReplayable(
            why or f"{then.lists()} lists other entries than when this was committed: restore what it listed then"
        )

    def _places(self, digest: str | None) -> Iterator[dict[str, str]]:
        """Yield where the lists of a commit may be, by field."""
        home = getattr(self, "lists_in", "")
        if home and digest and Path(home, KEPT_LISTS, digest).exists():
            yield {"lists_kept": str(Path(home, KEPT_LISTS, digest))}
        yield {}
        if home:
            yield {"lists_in": ""}

    def _keep(self, digest: str) -> None:
        """Copy the lists in use, so that commits can be replayed when people have changed them."""
        own: Any = self
        if not isinstance(own, HomeLists) or not own.lists_in or own.lists_kept:
            return
        for name in LISTS:
            kept = UPath(own.lists_in, KEPT_LISTS, digest, f"{name}.csv")
            if name in type(self).model_fields and (used := own.place_of(name)) and not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                durable.write(kept, Path(used).read_bytes())

    def as_unrecorded(self) -> Self:
        """Return this resource for a commit that recorded none of its settings: one of an earlier release."""
        return self


def _sha256(listed: object) -> str:
    return hashlib.sha256(repr(listed).encode()).hexdigest()
