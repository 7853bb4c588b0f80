"""The cases of tier T2, by the crash points that they represent (CP-01 to CP-40, R1 to R4) or the fault of R4."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    CATALOG_EDITS,
    ELEMENT_SETS,
    EPHEMERIDES,
    HELD_ELEMENT_SETS,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
    SATELLITE_RECORDS,
)
from sda_platform.conjunction.tables import ALERT_ACKNOWLEDGEMENTS, CONJUNCTION_CANDIDATES, RECEIVED_CDMS
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.table import Table
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import SCHEDULED_JOBS
from sda_platform_tests.campaign import damage, strikes
from sda_platform_tests.campaign.platform import FED_TABLES, Victim
from sda_platform_tests.campaign.strikes import (
    Crash,
    Kill,
    KillAgain,
    KillBetween,
    KillClient,
    KillDuring,
    KillEngine,
    State,
    Strike,
    Zombie,
)
from sda_platform_tests.campaign.world import Input

# What has to land for a table to be written; for all others, readings. Element sets of what the fleet meets change
# alerts, too, which readings may leave as they are.
_LANDS: Mapping[str, Input] = {
    ELEMENT_SETS.name: "elements",
    ORBITAL_CATALOG.name: "elements",
    CATALOG_CONFLICTS.name: "elements",
    HELD_ELEMENT_SETS.name: "elements",
    CONJUNCTION_CANDIDATES.name: "elements",
    ALERT_DELIVERIES.name: "elements",
    EPHEMERIDES.name: "ephemerides",
    RECEIVED_CDMS.name: "messages",
    CATALOG_EDITS.name: "edits",
    ALERT_ACKNOWLEDGEMENTS.name: "acknowledgements",
    SATELLITE_RECORDS.name: "satellites",
    SATELLITE_CATALOG.name: "satellites",
}
# What a worker passes for every table it writes, in order, and the crash points of the requirements that this is.
_STAGES = (
    ("asset.begun", "CP-21"),
    ("lake.planned", "CP-07"),
    ("lake.transformed", "CP-08"),
    ("commit.planned", "CP-08"),
    ("commit.sent", "CP-12"),
    ("commit.landed", "CP-12"),
    ("commit.synced", "CP-17"),
    ("lake.committed", "CP-17"),
    ("asset.reported", "CP-20"),
)
# What it is in addition, where the table states more.
_ALSO = {
    "lake.committed:raw_records": "CP-16 CP-18",
    "commit.synced:element_sets": "CP-18",
    "lake.committed:dead_letters": "CP-16",
    "lake.planned:fused_tracks": "CP-28",
    "commit.sent:fused_tracks": "CP-29",
    "commit.sent:conjunction_candidates": "CP-33",
}
# Of the workers that the sample kills: tables of every pool and package, each at another stage.
SAMPLED_WORKERS = {
    "commit.sent:time_tag_biases",
    "commit.landed:refined_elements",
    "lake.planned:provisional_elements",
    "commit.sent:pass_schedule",
    "asset.reported:observations",
    "lake.planned:tracks",
    "commit.synced:alert_deliveries",
    "commit.landed:element_sets",
    "commit.sent:conjunction_candidates",
    "lake.committed:received_cdms",
}
_ENGINE_STATES: tuple[tuple[str, State], ...] = (
    ("CP-08", strikes.nothing_written_yet),
    ("CP-09", strikes.data_file_half_written),
    ("CP-10", strikes.data_files_written_but_no_commit),
    ("CP-12", strikes.commit_in_place),
)
_SAMPLED_IN_ENGINE = {("CP-09", OBSERVATIONS.name), ("CP-12", FUSED_TRACKS.name)}


@dataclass(frozen=True)
class Case:
    """One way to hit the platform; ``stands_for``: ids of the spec, separated by spaces."""

    name: str
    stands_for: str
    strike: Strike
    in_sample: bool = False


def cases() -> tuple[Case, ...]:
    """Every case of a platform that is fed, those that restart it last."""
    return (*_workers(), *_bulk(), *_ends(), *_recovering(), *_control_plane(), *_between(), *_engine(), *_restarts())


def by_the_clock() -> tuple[Case, ...]:
    """Every case of the jobs that a schedule starts, which `by_the_clock.run` judges in its own way."""
    return tuple(case for job in SCHEDULED_JOBS for table in tables_of(job) for case in _stages(table))


def moving_clock() -> tuple[Case, ...]:
    """Every case of a worker killed while mission time moves, which `moving_clock.run` judges in its own way."""
    return tuple(
        replace(case, name=f"clock moves, {case.name}", in_sample=case.name == f"commit.landed:{FUSED_TRACKS.name}")
        for table in (OBSERVATIONS, FUSED_TRACKS, DEAD_LETTERS)
        for case in _stages(table)
    )


def _stages(table: Table) -> Iterator[Case]:
    """A worker killed at every stage of ``table``."""
    for point, ids in _STAGES:
        name = f"{point}:{table.name}"
        yield Case(name, f"{ids} {_ALSO.get(name, '')}", Kill(name, _lands_for(table)), name in SAMPLED_WORKERS)


def _workers() -> Iterator[Case]:
    """A worker killed at every stage of every table."""
    for table in FED_TABLES:
        yield from _stages(table)
    yield Case("failed commit.sent", "CP-12", Kill(f"commit.sent:{OBSERVATIONS.name}", action="fail"))


def _ends() -> Iterator[Case]:
    """A worker killed while it takes segments, while it acknowledges them, and while it delivers."""
    for point, ids in (
        ("intake.before_listing", "CP-01"),
        ("intake.listed", "CP-02"),
        ("intake.read", "CP-03"),
        ("bronze.taken", "CP-08"),
        ("landing.metadata_moved", "CP-19"),
        ("landing.data_moved", "CP-19"),
        ("landing.acknowledged", "CP-18"),
        ("bronze.acknowledged", "CP-20"),
        ("delivery.planned", "CP-34"),
        ("delivery.written", "CP-37"),
        ("delivery.committed", "CP-35"),
        ("delivery.group_answered", "CP-37"),
        ("delivery.answered", "CP-36"),
    ):
        landed: Input = "elements" if point.startswith("delivery.") else "readings"
        yield Case(point, ids, Kill(point, landed), in_sample=point in ("landing.metadata_moved", "delivery.committed"))


def _bulk() -> Iterator[Case]:
    """The other write path: Arrow writes the data files of many rows, and the engine adds them to the log."""
    stages = (("lake.file_written", "CP-09"), ("lake.files_written", "CP-10"), ("commit.sent", "CP-12"))
    for point, ids in stages:
        for table in (RAW_RECORDS, DEAD_LETTERS):
            is_sampled = (point, table) == ("lake.files_written", RAW_RECORDS)
            yield Case(f"bulk, {point} of {table.name}", ids, Kill(f"{point}:{table.name}", "bulk"), is_sampled)
    in_place = KillEngine(RAW_RECORDS, strikes.commit_in_place, "bulk")
    yield Case("bulk, engine killed, commit in place", "CP-12", in_place)


def _recovering() -> Iterator[Case]:
    """The run that repairs what a killed one left is killed itself."""
    first = f"commit.sent:{RAW_RECORDS.name}"
    for again, ids in (("landing.acknowledged", "CP-18"), (f"lake.planned:{OBSERVATIONS.name}", "CP-07")):
        yield Case(f"{first}, then {again}", ids, KillAgain(first, again), in_sample=ids == "CP-18")


def _control_plane() -> Iterator[Case]:
    """Daemon, code server and worker killed in the course of one tick."""
    yield Case("daemon killed at sensor.decided", "CP-22", Kill("sensor.decided", service="daemon"))
    yield Case("daemon.run_created", "CP-23", Kill("daemon.run_created"), in_sample=True)
    yield Case("daemon.run_launched", "CP-24", Kill("daemon.run_launched"))
    yield Case("worker.forked", "CP-25", Kill("worker.forked"))
    yield Case("code server killed at sensor.decided", "CP-26", Kill("sensor.decided"), in_sample=True)
    yield Case(
        "zombie at commit.planned", "CP-27 F-zombie", Zombie(f"commit.planned:{OBSERVATIONS.name}"), in_sample=True
    )


def _between() -> Iterator[Case]:
    """Maintenance between a crash and the run that repairs it."""
    for table in (OBSERVATIONS, FUSED_TRACKS):
        point = f"commit.sent:{table.name}"
        yield Case(
            f"OPTIMIZE after {point}", "CP-12 CP-30", KillBetween(point, optimized(table)), table is OBSERVATIONS
        )
        yield Case(f"VACUUM after {point}", "CP-12", KillBetween(point, vacuumed(table)))


def _engine() -> Iterator[Case]:
    """The engine killed inside a commit or a statement, at the state of the disk that the requirements name."""
    tables: tuple[tuple[Table, dict[str, str]], ...] = (
        (OBSERVATIONS, {}),
        (FUSED_TRACKS, {"CP-10": "CP-29", "CP-12": "CP-29"}),
        (CONJUNCTION_CANDIDATES, {"CP-08": "CP-31", "CP-10": "CP-32", "CP-12": "CP-33"}),
    )
    for table, also in tables:
        for point, state in _ENGINE_STATES:
            name = f"engine killed, {_words(state)}: {table.name}"
            is_sampled = (point, table.name) in _SAMPLED_IN_ENGINE
            yield Case(name, f"{point} {also.get(point, '')}", KillEngine(table, state, _lands_for(table)), is_sampled)
    yield from _clients()
    yield Case(
        "engine killed in OPTIMIZE",
        "CP-38",
        KillDuring("OPTIMIZE {}", RAW_RECORDS, strikes.data_file_half_written),
        in_sample=True,
    )
    orphans = damage.with_old_orphans(RAW_RECORDS)
    yield Case(
        "engine killed in VACUUM",
        "CP-39",
        KillDuring("VACUUM {}", RAW_RECORDS, strikes.some_files_deleted, orphans),
    )
    comment = "ALTER TABLE {} ALTER COLUMN feed COMMENT 'The zone where it landed.'"
    yield Case(
        "engine killed in a change of schema", "CP-40", KillDuring(comment, RAW_RECORDS, strikes.commit_in_place)
    )


def _clients() -> Iterator[Case]:
    """A worker killed while the engine executes its statement, which then meets that of the next worker."""
    for table in (OBSERVATIONS, TRACKS, ORBITAL_CATALOG):
        for point, state in _ENGINE_STATES[1:3]:
            name = f"client killed, {_words(state)}: {table.name}"
            is_sampled = table is not OBSERVATIONS and point == "CP-10"
            yield Case(name, f"{point} F-zombie", KillClient(table, state, _lands_for(table)), is_sampled)


def _restarts() -> Iterator[Case]:
    """Everything is killed at once, and the disk is not what it was."""
    at, before = f"commit.sent:{OBSERVATIONS.name}", f"commit.planned:{OBSERVATIONS.name}"
    yield Case("all killed", "CP-12", Crash(at))
    yield Case("Dagster's database wiped", "F-state", Crash(at, Victim.wipe_dagster), in_sample=True)
    yield Case("commit left unfinished", "CP-11", Crash(before, damage.commit_left_unfinished(OBSERVATIONS)))
    for ids, damaged in (
        ("CP-13", damage.delta_checksum_missing),
        ("CP-14", damage.delta_checkpoint_torn),
        ("CP-15", damage.delta_checkpoint_pointer_stale),
    ):
        yield Case(_words(damaged), ids, Crash(at, damaged(OBSERVATIONS)))
    for lost in (damage.last_commit_emptied, damage.last_commit_halved, damage.last_commit_missing):
        for with_crc in (True, False):
            name = f"{_words(lost)}, {'with' if with_crc else 'without'} .crc"
            yield Case(name, "F-power", Crash(at, lost(OBSERVATIONS, with_crc=with_crc)))
    for spoiled in (damage.newest_page_zeroed, damage.newest_bit_flipped):
        yield Case(_words(spoiled), "F-power", Crash(at, spoiled(OBSERVATIONS)))
    for change in (damage.zeroed, damage.flipped):
        yield Case(f"rot, {_words(change)}", "F-rot", strikes.Rot(RAW_RECORDS, change), change is damage.flipped)
    # A commit whose segments are archived is on disk, unless the disk lies: its input has to be put back.
    waiting, archived = f"commit.sent:{RAW_RECORDS.name}", f"bronze.acknowledged:{RAW_RECORDS.name}"
    for point, ids, at in (
        ("recovery.examined", "CP-R1", waiting),
        ("recovery.set_aside", "CP-R2", waiting),
        ("landing.restored", "CP-R3", archived),
        ("recovery.segments_restored", "CP-R3", archived),
    ):
        strike = Crash(at, damage.last_commit_emptied(RAW_RECORDS), recovery_killed_at=point)
        is_sampled = point in ("recovery.set_aside", "recovery.segments_restored")
        yield Case(f"recovery killed at {point}", f"{ids} F-power", strike, is_sampled)


def _lands_for(table: Table) -> Input:
    """What has to land for ``table`` to be written."""
    return _LANDS.get(table.name, "readings")


def _words(function: Callable[..., object]) -> str:
    return function.__name__.replace("_", " ")


def optimized(table: Table) -> Callable[[Victim], None]:
    """Compact the table's files."""
    return lambda victim: _sql(victim, f"OPTIMIZE delta.`{victim.home}/lake/{table.name}`")


def vacuumed(table: Table) -> Callable[[Victim], None]:
    """Delete the files that no version within the retention time needs."""
    return lambda victim: _sql(victim, f"VACUUM delta.`{victim.home}/lake/{table.name}`")


def _sql(victim: Victim, statement: str) -> None:
    victim.session("maintenance").sql(statement).collect()
