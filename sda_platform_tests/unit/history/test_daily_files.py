"""The files of a day: whole or absent, with checksums that hold, and what the lake has."""

import json
import subprocess
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.definitions import build_defs
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.history.daily_files import CHECKSUMS, DIRECTORY, LATEST, MANIFEST, write_daily_files
from sda_platform.lake import durable
from sda_platform.lake.lake import Lake
from sda_platform.lake.retention import Retention
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.small_catalogue import committed, sets_of

_COVARIANCE = [1e-4 if n in {0, 2, 5, 9, 14, 20} else 0.0 for n in range(21)]
_STATES = {
    "state_1": [7000.0, 0, 0, 0, 7.5, 0], "state_2": [7000.1, 0, 0, 0, 0, 7.5],
    "covariance_1": _COVARIANCE, "covariance_2": _COVARIANCE,
}  # fmt: skip
_MISS = dict.fromkeys((c.name for c in CONJUNCTION_ASSESSMENTS.columns if "relative_velocity_" in c.name), 1.0)
_KINDS = {"object_type_1": "payload", "object_type_2": "debris", "probability_method": "FOSTER-1992"}
_EVENT = {"norad_id_1": 25544, "norad_id_2": 5, "tca_time_ns": after(3600), "object_name_1": "<b>ISS</b>"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three objects; an open alert with states, an open one of a received message, and a closed one."""
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")
    committed(lake, sets_of([5, 11, 25544]))
    assessed = {**_EVENT, **_STATES, **_KINDS, **_MISS, "op": "insert"}
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**assessed, "event_id": event} for event in ("open", "closed")])
    statuses = (("open", "open"), ("stated", "open"), ("closed", "closed"))
    alerts = [{**_EVENT, "event_id": event, "status": status, "op": "insert"} for event, status in statuses]
    commit(lake, CONJUNCTION_ALERTS, alerts)
    return lake


def test_the_day_is_written_with_checksums_that_hold__44_8(lake: Lake, tmp_path: Path) -> None:
    written = write_daily_files(lake, tmp_path)
    assert (written.objects, written.alerts, written.messages) == (3, 2, 1)
    assert written.path == tmp_path / DIRECTORY / "2024-11-01"
    day = tmp_path / DIRECTORY / LATEST
    assert day.is_symlink() and day.resolve() == written.path
    subprocess.run(["sha256sum", "--quiet", "--check", CHECKSUMS], cwd=day, check=True)
    manifest = json.loads((day / MANIFEST).read_text())
    listed = {str(path.relative_to(day)) for path in day.rglob("*") if path.is_file()}
    assert listed == {*manifest["files"], CHECKSUMS, MANIFEST}
    assert manifest["commits"][ORBITAL_CATALOG.name]["commit_sequence"] == 1
    for name, segment_format in (("json", "omm-json"), ("csv", "omm-csv"), ("3le", "tle")):
        sets = decode_element_sets((day / f"catalogue.{name}").read_bytes(), segment_format=segment_format)
        assert sets.column("norad_id").to_pylist() == [5, 11, 25544]
    assert [row["event_id"] for row in json.loads((day / "alerts.json").read_text())] == ["open", "stated"]
    message = read_cdm((day / "cdms/open.cdm").read_bytes())
    assert [each.fields["OBJECT_DESIGNATOR"] for each in message.objects] == ["25544", "5"]


def test_a_reader_sees_the_former_or_the_new_files_of_a_day__44_8(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_daily_files(lake, tmp_path)
    committed(lake, sets_of([11], epoch_time_ns=START_NS, segment_sha256="cd" * 32, object_name="NEWER"))

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken, pytest.raises(OSError, match="the disk is full"):
        broken.setattr(durable, "sync", fail)
        write_daily_files(lake, tmp_path)
    day = tmp_path / DIRECTORY / LATEST
    assert "NEWER" not in (day / "catalogue.json").read_text()
    write_daily_files(lake, tmp_path)
    assert "NEWER" in (day / "catalogue.json").read_text()
    assert [path.name for path in sorted((tmp_path / DIRECTORY).iterdir())] == ["2024-11-01", LATEST]


def test_files_of_a_day_survive_a_kill_while_others_take_their_place__44_8(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_daily_files(lake, tmp_path)
    rename = Path.rename

    def killed(self: Path, target: Path) -> Path:
        if self.suffix == ".partial" and self.is_dir():
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(Path, "rename", killed)
        write_daily_files(lake, tmp_path)
    write_daily_files(lake_at(lake.uri, now_ns=START_NS + DAY_NS), tmp_path)
    names = [path.name for path in sorted((tmp_path / DIRECTORY).iterdir())]
    assert names == ["2024-11-01", "2024-11-02", LATEST]


def test_as_many_days_are_kept_as_the_retention_states__44_8(lake: Lake, tmp_path: Path) -> None:
    for day in range(32):
        write_daily_files(lake_at(lake.uri, now_ns=START_NS + day * DAY_NS), tmp_path)
    names = sorted(path.name for path in (tmp_path / DIRECTORY).iterdir())
    assert (len(names), names[0], names[-2:]) == (31, "2024-11-03", ["2024-12-02", LATEST])

    write_daily_files(lake, tmp_path, retention=Retention(operations_days=3))
    names = sorted(path.name for path in (tmp_path / DIRECTORY).iterdir())
    assert names == ["2024-11-30", "2024-12-01", "2024-12-02", LATEST]


def test_the_job_writes_them__44_8(lake: Lake, tmp_path: Path) -> None:
    job = build_defs(settings=Settings(home=tmp_path)).resolve_job_def("daily_files")
    result = job.execute_in_process(instance=dg.DagsterInstance.ephemeral())
    (made,) = result.asset_materializations_for_node("history__daily_files")
    assert (made.metadata["objects"].value, made.metadata["alerts"].value) == (3, 0), "only verified commits"
    assert (tmp_path / DIRECTORY / LATEST / MANIFEST).exists()
