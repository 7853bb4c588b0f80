"""What satellite catalogues, messages about decays and edits say of objects, for the served catalogue; now and then."""

from functools import lru_cache
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.catalog.names import names_upto
from sda_platform.catalog.tables import CATALOG_EDITS, SATELLITE_CATALOG, SATELLITE_RECORDS
from sda_platform.formats.satcat import FACTS, PREDICTION
from sda_platform.lake.errors import VersionGone
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.runtime.current_rows import version_at
from sda_platform.serving.kept_views import NotKept
from sda_platform.serving.satellites import NO_SATELLITES, Facts, Satellites

_COLUMNS: Final = [*FACTS, "received_time_ns", COMMIT_SEQUENCE]


class ServedSatellites:
    """Versions of `satellite_catalog`; the newest is the same object while it does not change."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._newest: tuple[Commit | None, Satellites] = None, NO_SATELLITES
        self._predicted: dict[tuple[Any, ...], Facts] = {}
        self._predicted_upto = 0
        self._of_version = lru_cache(maxsize=1)(self._at_version)  # a version takes as much memory as the newest one

    def newest(self, commit: Commit) -> Satellites:
        """Return the facts at ``commit``, which may be read."""
        if self._newest[1].identity != commit.manifest_sha256:
            self._newest = commit, self._read(commit)
        return self._newest[1]

    def at(self, as_of_ns: int) -> Satellites:
        """Return the facts as they were known at a mission time; of a version that is not kept, those of now."""
        newest, known = self._newest
        if newest is None or newest.manifest.as_of_ns <= as_of_ns:
            return known
        try:
            return self._of_version(version_at(self._lake, SATELLITE_CATALOG, as_of_ns))
        except (NotKept, VersionGone):
            return known

    def _at_version(self, version: int) -> Satellites:
        commit = self._lake.log(SATELLITE_CATALOG).commit_at(version) if version >= 0 else None
        return self._read(commit) if commit else NO_SATELLITES

    def _read(self, commit: Commit) -> Satellites:
        manifest = commit.manifest
        rows = self._lake.log(SATELLITE_CATALOG).rows(_COLUMNS, version=commit.version).to_pylist()
        written = {row["norad_id"]: row.pop(COMMIT_SEQUENCE) for row in rows}
        facts = {row["norad_id"]: row for row in rows}
        edits = manifest.window(CATALOG_EDITS.name)
        names = names_upto(self._lake, edits.upto_sequence if edits else 0)
        for number, name in names.at(FOREVER_NS).items():
            if name and number in facts:
                facts[number]["object_name"] = name
        predictions = self._predictions(manifest.window(SATELLITE_RECORDS.name))
        return Satellites(commit.manifest_sha256, facts, manifest.sequence, written, predictions, names.at, self.at)

    def _predictions(self, consumed: TableWindow | None) -> tuple[Facts, ...]:
        """Return every prediction of a decay that the satellite catalogue has consumed, as it came first."""
        after, upto = self._predicted_upto, consumed.upto_sequence if consumed else 0
        is_one = ds.field("error_kind").is_null() & ds.field("predicted_decay_time_ns").is_valid()
        if upto > after:  # of a past version all are known already; readers have the times at which they came
            log = self._lake.log(SATELLITE_RECORDS)
            rows = log.rows_of((after, upto), [*FACTS, "received_time_ns"], where=is_one)
            for row in rows.sort_by("received_time_ns").to_pylist():
                self._predicted.setdefault((row["norad_id"], *(row[name] for name in PREDICTION)), row)
            self._predicted_upto = upto
        return tuple(self._predicted.values())
