"""The platform's side of the ingest benchmarks: files sealed into a zone, and the assets' own code that takes them."""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.clock import MissionClock
from sda_platform.formats.observations import decode_segments
from sda_platform.formats.optical import OpticalRecord, encode_optical_record
from sda_platform.formats.segments import SegmentMeta, describe_segment
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.landing.orphans import orphaned_names
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.landing_table import land
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.setting_sections import IntakeSettings
from sda_platform.spark.session import SparkResource

START_NS = 1_730_419_200_000_000_000
_MILLISECOND_NS = 1_000_000
SEALED_NS = START_NS + 10**15


def optical_file(number: int, records: int, seed: int = 1) -> bytes:
    """NDJSON of ``records`` observations that differ from those of every other ``number``."""
    chance = np.random.default_rng([seed, number])
    first_ns = START_NS + number * records * _MILLISECOND_NS
    spans = ((0.0, 2 * np.pi), (-1.5, 1.5), (0.3, 3.0))
    values = (chance.uniform(low, high, records).tolist() for low, high in spans)
    lines = [
        encode_optical_record(
            OpticalRecord(f"m-{number}-{i}", first_ns + i * _MILLISECOND_NS, ra, dec, sigma, "maui", first_ns + 10**9)
        )
        for i, (ra, dec, sigma) in enumerate(zip(*values, strict=True))
    ]
    return b"\n".join(lines) + b"\n"


class Inputs:
    """The same files twice: plain in a directory for the peers, and sealed in a landing zone for the platform."""

    def __init__(self, directory: Path, files: int, records: int) -> None:
        self.plain = directory / "plain"
        self.plain.mkdir(parents=True)
        self.metas: dict[str, SegmentMeta] = {}
        self._zones = directory / "sealed"
        zone = LandingZone(str(self._zones), "optical")
        for number in range(files):
            data = optical_file(number, records)
            name = f"{number:06d}.jsonl"
            (self.plain / name).write_bytes(data)
            meta = describe_segment(
                data,
                feed="optical",
                segment_format="optical-jsonl",
                sealed_time_ns=SEALED_NS + number,
                sealed_wall_time_ns=SEALED_NS,
            )
            zone.seal(name, data, meta)
            self.metas[name] = meta

    def names(self) -> list[str]:
        """The files' names in order."""
        return sorted(path.name for path in self.plain.iterdir())

    def seal_in(self, root: Path, names: Sequence[str] | None = None) -> None:
        """Have the sealed files (or some of them) wait below ``root``, as links."""
        pending = root / "optical" / "pending"
        pending.mkdir(parents=True, exist_ok=True)
        for name in self.names() if names is None else names:
            for part in (name, f"{name}.meta.json"):
                os.link(self._zones / "optical" / "pending" / part, pending / part)


class PlatformIngest:
    """A lake and a landing zone below ``home``, on a running engine."""

    def __init__(self, home: Path, spark: SparkResource, *, max_segments: int = 10**6, max_bytes: int = 2**31) -> None:
        shutil.rmtree(home, ignore_errors=True)
        (home / "lake").mkdir(parents=True)
        clock = MissionClock(SEALED_NS, 0, 0.0)
        clock.save(home)
        self.landing_root = home / "landing"
        self.lake = Lake(str(home / "lake"), clock, lambda: spark.spark_session, "benchmark")
        # The bodies of assets run here without the checks that would verify what they write, and outside of a run.
        Lake.reads_unverified, Lake.requires_lineage = True, False
        self._lake_resource = LakeResource(uri=str(home / "lake"), home=str(home), spark=spark)
        self._landing = LandingResource(
            root=str(self.landing_root),
            **IntakeSettings(
                max_segments=max_segments, max_bytes=max_bytes, orphan_grace_s=60.0, backlog_max_age_s=600.0
            ).model_dump(),
        )

    def land(self) -> None:
        """What a run of `raw_records` does."""
        landed = replace(RAW_RECORDS, zones=("optical",))
        land(self._lake_resource, self._landing, landed, decode_segments, report=lambda _: None)

    def observe(self) -> None:
        """What a run of `observations` does."""
        declared(OBSERVATIONS).body(lake=self._lake_resource)

    def look(self) -> list[LoadedSegment]:
        """What a tick of the sensor and a run of `raw_records` look at before anything is decoded."""
        (zone,) = self._landing.zones(["optical"])
        orphaned_before_s = self._landing.orphaned_before_s()
        zone.waiting([*zone.pending_names(), *orphaned_names(zone, orphaned_before_s)])
        head = self.lake.head(RAW_RECORDS)
        inputs = self._landing.zones_of(replace(RAW_RECORDS, zones=("optical",)))
        return inputs.take(self.lake.log(RAW_RECORDS), head)


def archive_of(directory: Path, count: int) -> Path:
    """An archive of ``count`` consumed segments, empty but for their names."""
    directory.mkdir(parents=True)
    for number in range(count):
        os.mknod(directory / hashlib.sha256(str(number).encode()).hexdigest())
    return directory
