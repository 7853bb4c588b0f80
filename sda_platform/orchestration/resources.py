"""The lake and the landing zones as Dagster resources."""

import getpass
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import dagster as dg
from pydantic import Field, PrivateAttr

from sda_platform.clock import MissionClock
from sda_platform.lake.lake import Lake
from sda_platform.lake.local_copies import LocalCopies
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import NO_RUN
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.setting_sections import IntakeSettings
from sda_platform.spark.session import SparkResource


class LakeResource(dg.ConfigurableResource[Lake]):
    """Hands a run the `Lake`, bound to its Spark session, its mission clock and its run id."""

    uri: str = Field(description="Where the tables are: a path or an object store's URI.")
    home: str = Field(description="The platform's home on this machine; its mission clock is read there.")
    spark: dg.ResourceDependency[SparkResource]
    _run_id: str = PrivateAttr(default=NO_RUN)
    _origin: dict[str, str] | None = PrivateAttr(default=None)
    _logs: dict[str, TableLog] = PrivateAttr(default_factory=dict)
    _copies: LocalCopies | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Remember the run for the manifests' sake."""
        self._logs, self._copies = {}, LocalCopies()
        if context.run is not None:
            self._run_id = context.run.run_id
            self._origin = origin_of(context.run.tags)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Remove the copies of files that the run made."""
        if self._copies is not None:
            self._copies.remove()

    def open(self) -> Lake:
        """Return the lake as this run sees it; starts no session."""
        clock = MissionClock.load(Path(self.home))
        lake = Lake(self.uri, clock, lambda: self.spark.spark_session, self._run_id, self._logs, self._copies)
        lake.origin = self._origin
        return lake


def origin_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Return what started a run with these tags, and who: a person states a name in the tag ``user``.

    Without one, the operator is the user of the process on its machine.
    """
    started = ((kind, tags.get(f"dagster/{kind}_name")) for kind in ("sensor", "schedule", "backfill"))
    trigger = next((f"{kind} {name}" for kind, name in started if name), "person")
    return {"trigger": trigger, "operator": tags.get("user") or f"{getpass.getuser()}@{socket.gethostname()}"}


class LandingResource(IntakeSettings, dg.ConfigurableResource["LandingResource"]):
    """The landing zones below one root."""

    root: str = Field(description="Where the landing zones are: a path or an object store's URI.")

    def zone(self, feed: str) -> LandingZone:
        """Open the zone of one feed."""
        return LandingZone(self.root, feed)

    def zones(self, feeds: Iterable[str]) -> list[LandingZone]:
        """Open the zones of several feeds."""
        return [self.zone(feed) for feed in feeds]

    def zones_of(self, table: Table) -> TableZones:
        """Return the zones of ``table``, as its asset empties them."""
        attempts = location(self.root) / ".decoding" / f"{table.name}.json"
        return TableZones(
            self.zones(table.zones),
            self.max_segments,
            self.max_bytes,
            attempts,
            orphaned_before_s=self.orphaned_before_s(),
        )

    def orphaned_before_s(self) -> float:
        """Return the wall time before which a lone file must have changed last to count as an orphan now."""
        return time.time() - self.orphan_grace_s
