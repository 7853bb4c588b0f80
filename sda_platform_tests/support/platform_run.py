"""A whole platform in a directory: its definitions with test resources, its clock, its landing zones, its tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
from pyspark.sql import SparkSession

from sda_platform.clock import MissionClock
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.definitions import build_defs
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.landing.zone import LandingZone
from sda_platform.settings import Settings
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Platform:
    """The platform below ``home``; mission time is stopped until `at` moves it.

    Lake and landing zones are there too, or below the address ``store``; ``session`` is of the engine at ``remote``.
    """

    def __init__(
        self,
        home: Path,
        session: SparkSession,
        now_ns: int,
        screening: ScreeningResource | None = None,
        *,
        remote: str = "local",
        store: str = "",
    ) -> None:
        self.home = home
        self._session = session
        # The scenes are small and short: telescopes may see nothing in them, and high risks are rare.
        settings = Settings(
            home=home,
            spark_remote=remote,
            lake=f"{store}/lake" if store else "",
            landing=f"{store}/landing" if store else "",
            intake={"orphan_grace_s": 0.0},
            fusion={"sources": ["radar", "isl"]},
            alerting={"yellow_pc": 1e-7},
        )
        self.settings = settings
        self.definitions = build_defs({"screening": screening or ScreeningResource(horizon_h=2.0)}, settings)
        self.instance = dg.DagsterInstance.ephemeral()
        self.subscriber = SqliteSubscriber(home / "subscriber.sqlite")
        self.at(now_ns)

    def at(self, now_ns: int) -> None:
        """Set mission time for everything that follows."""
        self.clock = MissionClock(now_ns, 0, 0.0)
        self.clock.save(self.home)

    @property
    def lake(self) -> Lake:
        """The tables."""
        return Lake(self.settings.lake_uri, self.clock, lambda: self._session, "test")

    def zone(self, feed: str) -> LandingZone:
        """The landing zone of one feed."""
        return LandingZone(self.settings.landing_uri, feed)

    def land(self, segments: Iterable[SimulatedSegment]) -> None:
        """Seal simulated segments into their zones, named by when they were sealed; repeats are welcome."""
        for segment in segments:
            name = f"{segment.feed}-{segment.available_time_ns}.seg"
            self.zone(segment.feed).seal(name, segment.data, replace(segment.meta))

    def run(
        self, job: str, *, must_succeed: bool = True, only: Sequence[str] = (), ops: Any = None
    ) -> dg.ExecuteInProcessResult:
        """Run a pool's job, or ``only`` some of its assets, in this process; fails the test where a step failed."""
        result = self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance,
            raise_on_error=False,
            tags={POOL_TAG: Pool.ALERTS},  # a warm one: an engine does not open a closed session again
            run_config={**_QUIET, **({"ops": ops} if ops else {})},
            asset_selection=[dg.AssetKey(name) for name in only] or None,
        )
        failures = [e.step_failure_data.error_display_string[-2000:] for e in result.all_events if e.is_step_failure]
        assert result.success or not must_succeed, "\n".join(failures)
        return result

    def rows(self, table: Table, *columns: str) -> pa.Table:
        """The stored rows of a table."""
        return self.lake.log(table).rows(columns or None)

    def versions(self, tables: Iterable[Table]) -> dict[str, int]:
        """The Delta version of each table."""
        return {table.name: self.lake.log(table).version() for table in tables}


def checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """Outcome of every asset check of a run, by ``asset:check``."""
    told: dict[str, bool] = {}
    for event in result.all_events:
        if event.event_type_value == "ASSET_CHECK_EVALUATION":
            data: Any = event.event_specific_data
            told[f"{data.asset_key.to_user_string()}:{data.check_name}"] = data.passed
    return told


def correctness(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    """The same without freshness and silence, which mean little with a stopped clock."""
    told = checks(result).items()
    return {name: passed for name, passed in told if "fresh" not in name and "sources_report" not in name}


def written(result: dg.ExecuteInProcessResult) -> dict[str, int]:
    """Rows that each asset of a run states it wrote."""
    return {
        event.asset_key.to_user_string(): int(event.materialization.metadata["rows_written"].value)  # type: ignore[union-attr,arg-type]
        for event in result.get_asset_materialization_events()
    }
