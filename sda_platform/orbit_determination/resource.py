"""How many tracks are refined at a time and whose, as a Dagster resource whose settings commits record."""

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from sda_platform.lake.lake import Lake
from sda_platform.orchestration.recorded_settings import RecordedResource
from sda_platform.setting_sections import RefinementSettings


class RefinementResource(RefinementSettings, RecordedResource["RefinementResource"]):
    """How many tracks a run refines, and which objects come first. Commits record these objects by value.

    A package that can name objects of interest provides a subclass; without one, all objects are alike.
    """

    _UNRECORDED = ("fleet",)

    first: list[int] | None = Field(
        default=None, description="Catalogue numbers of objects that come first; null: the objects of interest."
    )

    def objects_of_interest(self, store: Lake) -> Sequence[int]:  # noqa: ARG002
        """Catalogue numbers of the objects that come first now."""
        return ()

    def at_present(self, store: Lake) -> Self:
        """Return this resource with the prioritized objects by value: a replay has those of its commit."""
        return self if self.first is not None else self.model_copy(update={"first": [*self.objects_of_interest(store)]})
