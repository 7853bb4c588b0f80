"""The campaign covers the crash matrix, and hits points that exist."""

import re
from itertools import combinations
from pathlib import Path

import sda_platform
from sda_platform.orchestration.declarations import declared, tables_of, zones_of
from sda_platform.registry import TABLES
from sda_platform_tests.campaign.__main__ import recovered_in
from sda_platform_tests.campaign.cases import SAMPLED_WORKERS, by_the_clock, cases, moving_clock
from sda_platform_tests.campaign.in_object_store import SAMPLED_KILLS, in_object_store
from sda_platform_tests.campaign.platform import FED_TABLES, UNFED_JOBS
from sda_platform_tests.campaign.points import CRASH_POINTS
from sda_platform_tests.campaign.strikes import Crash, Kill, KillAgain, KillBetween, LoseStore, Zombie
from sda_platform_tests.campaign.world import World

PACKAGE = Path(sda_platform.__file__).parent
# Dagster's own crash points in its sensor loop, which ours follow.
OF_DAGSTER = {"daemon.run_created", "daemon.run_launched"}


def stood_for() -> set[str]:
    return {each for case in cases() for each in case.stands_for.split()}


def test_every_crash_point_has_a_case_or_a_reason_why_it_has_none__section_13() -> None:
    without = {point.id for point in CRASH_POINTS if not point.elsewhere} - stood_for()
    assert without == set()
    assert {point.id for point in CRASH_POINTS if point.elsewhere} & stood_for() == set()


def test_every_row_of_the_matrix_is_there() -> None:
    rows = [f"CP-{n:02d}" for n in range(1, 41)] + [f"CP-R{n}" for n in range(1, 5)]
    assert [point.id for point in CRASH_POINTS] == rows
    assert {each for each in stood_for() if each.startswith("CP-")} <= set(rows)


def test_every_point_that_a_case_waits_for_is_in_the_code() -> None:
    strikes = [case.strike for case in (*cases(), *by_the_clock(), *moving_clock(), *in_object_store())]
    named = [s.point for s in strikes if isinstance(s, Kill | KillAgain | KillBetween | Crash | Zombie | LoseStore)]
    named += [s.again for s in strikes if isinstance(s, KillAgain)]
    named += [s.recovery_killed_at for s in strikes if isinstance(s, Crash) and s.recovery_killed_at]
    awaited = {point.partition(":")[0] for point in named}
    marked = set(re.findall(r'failpoints\.hit\("([a-z_.]+)"', "".join(p.read_text() for p in PACKAGE.rglob("*.py"))))
    assert awaited - marked - OF_DAGSTER == set()


def test_names_are_unique_and_the_sample_has_something_of_every_part() -> None:
    names = [case.name for case in (*cases(), *by_the_clock(), *moving_clock())]
    assert len(names) == len(set(names))
    assert set(names) >= SAMPLED_WORKERS
    assert {case.name for case in in_object_store() if case.in_sample} >= SAMPLED_KILLS
    sampled = {type(case.strike).__name__ for case in cases() if case.in_sample}
    assert {"Kill", "KillBetween", "KillEngine", "Crash", "Zombie"} <= sampled


def test_every_table_has_a_case_of_every_stage() -> None:
    stages = {case.name for case in (*cases(), *by_the_clock(), *moving_clock())}
    apart = [table for job in UNFED_JOBS for table in tables_of(job)]  # no alert rests on these
    assert stages >= {f"commit.sent:{table.name}" for table in TABLES if table not in apart}
    assert any(case.in_sample for case in by_the_clock())
    assert any(case.in_sample for case in moving_clock())


def test_what_lands_for_a_table_lets_its_job_write_it() -> None:
    """A table with zones needs a segment in one of them, another table one of a zone of its job."""
    for case in cases():
        strike = case.strike
        table = next((t for t in FED_TABLES if case.name.endswith(f":{t.name}")), None)
        if not isinstance(strike, Kill) or table is None:
            continue
        feeds = {delivery.feed for delivery in World(1).next_input(strike.landed)}
        zones = table.zones or [zone for job in declared(table).jobs for zone in zones_of(job)]
        assert feeds & set(zones), f"{case.name}: {strike.landed} land in {feeds}, not in one of {zones}"


def test_a_repeated_segment_is_read_after_its_original() -> None:
    """Rows have the name of the delivery that was read first, which must be the same in victim and twin."""
    world = World(1)
    for _ in range(6):
        world.delivered += [*world.next_stretch(), world.new_element_sets()]
    sound = [delivery for delivery in world.delivered if delivery.is_sound]
    repeats = [(a.name, b.name) for a, b in combinations(sound, 2) if a.meta.sha256 == b.meta.sha256]
    assert len(repeats) >= 6
    assert [(first, again) for first, again in repeats if first >= again] == []


def test_one_seed_is_one_world(tmp_path: Path) -> None:
    first, second = World(7), World(7)
    for _ in range(3):
        ours, theirs = ([*world.next_stretch(), world.new_messages()] for world in (first, second))
        assert ours == theirs
        first.deliver(ours, str(tmp_path / "a"))
        second.deliver(theirs, str(tmp_path / "b"))
    assert first.written == second.written
    assert len(list(first.new_messages().records())) == 3
    assert any(not delivery.is_sound for delivery in first.delivered)
    assert len({d.meta.sha256 for d in first.delivered if d.is_sound}) < sum(d.is_sound for d in first.delivered)


def test_a_run_goes_on_after_the_cases_that_recovered() -> None:
    output = (
        "12:54:42   commit.planned:tracks: recovered in 27.3 s\n"
        "12:55:12   engine killed, commit in place: tracks: recovered in 9.0 s\n"
        "12:55:13   FAILED engine killed, commit in place: tracks: O3 two rows\n"
        "12:55:40   MISSED bulk, commit.sent of raw_records: nobody came by\n"
    )
    assert recovered_in(output) == {"commit.planned:tracks"}
