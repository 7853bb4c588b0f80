"""The sites that may edit the catalogue, as a Dagster resource: commits of edits record the keys that judged them."""

from typing import Any, Self

from pydantic import Field
from typing_extensions import override

from sda_platform.access_settings import SitesFile
from sda_platform.catalog.sites import SiteKeys, site_keys
from sda_platform.orchestration.recorded_settings import RecordedResource


class SitesResource(SitesFile, RecordedResource["SitesResource"]):
    """The keys by which edits are judged. A site that joins later changes no replay."""

    known_keys: dict[str, str] | None = Field(
        default=None, description="Public keys by site, hexadecimal; null: those of the file."
    )

    def known(self) -> SiteKeys:
        """Return the keys. Raises SitesError, UnusableKey and OSError where the file cannot be used."""
        return site_keys(self.sites) if self.known_keys is None else self.known_keys

    @override
    def recorded(self) -> dict[str, Any]:
        return {"known_keys": dict(self.known())}

    @override
    def as_unrecorded(self) -> Self:
        """Return the resource of a commit of an earlier release: it judged no signatures."""
        return self.as_recorded({"known_keys": {}})
