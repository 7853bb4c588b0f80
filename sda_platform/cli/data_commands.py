"""Commands that bring data in, recompute tables, and simulate or convert data."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from rich.progress import Progress

from sda_platform.cli.people import CONSTELLATION, SCENARIOS, PeopleConsole, console, for_people, instant, lake_of
from sda_platform.settings import Settings


@click.command(short_help="Land files: verify them and seal them as segments.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--feed", help="Landing zone (default: that of the format).")
@click.option("--format", "segment_format", help="Segment format, if the file ending does not determine it.")
@click.option(
    "--rank",
    type=click.IntRange(0, 100),
    help="Rank of the element sets: at equal epochs the higher wins (default: 0).",
)
@click.option("--complete", is_flag=True, help="Accept a file whose last record has no end.")
@click.pass_obj
@for_people
def land(
    settings: Settings,
    files: tuple[Path, ...],
    feed: str | None,
    segment_format: str | None,
    rank: int | None,
    complete: bool,
) -> None:
    """Land FILES: verify them, and seal them as segments of a landing zone.

    Files may have any size and may be compressed. Landing a file again continues where it stopped, or does nothing.
    Records that no table will use are listed; they become dead letters. Exit code 1 where there are some.
    """
    from sda_platform.audit_log import user
    from sda_platform.cli.refused_records import RefusedRecords
    from sda_platform.clock import MissionClock
    from sda_platform.formats.segments import Sender
    from sda_platform.lake.lake import Lake, without_session
    from sda_platform.landing.first_lines import Mappings
    from sda_platform.landing.lander import Lander

    clock, refused_in_all = MissionClock.load(settings.home), 0
    for path in files:
        refused = RefusedRecords(Lake(settings.lake_uri, clock, without_session))
        with _reading(path) as report:
            lander = Lander(
                settings.landing_uri,
                clock,
                segment_max_bytes=settings.segment_max_bytes,
                report=report,
                sender=Sender(user(), rank=rank),
                on_segment=refused.examine,
                mappings=Mappings.of(settings.home),
            )
            done = lander.land(path, feed=feed, segment_format=segment_format, is_complete=complete)
        if not done.records:
            verdict = "it has no records"
        elif not done.segments:
            verdict = "nothing to do: these bytes were landed before"
        elif len(done.segments) == 1:
            verdict = f"{done.records:,} records in {done.segments[0]}"
        else:
            verdict = f"{done.records:,} records; {len(done.segments):,} segments, the last is {done.segments[-1]}"
        console.print(f"{path} → {done.zone}: {verdict}" + (f"; {refused.count:,} refused" if refused.count else ""))
        for line in refused.lines():
            console.print(f"  {line}")
        refused_in_all += refused.count
    sys.exit(int(refused_in_all > 0))


@contextmanager
def _reading(path: Path) -> Iterator[Callable[[str, int], None]]:
    """A bar for the reading of a file; it goes away when the file is read."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=path.stat().st_size if path.is_file() else None)
        yield lambda stage, position: bar.update(task, description=f"{stage} {path.name}", completed=position)


@click.command(short_help="Recompute a table and compare it bit for bit.")
@click.argument("table")
@click.option(
    "--from-sequence", type=click.IntRange(1), default=1, help="First commit (default: the first of the table)."
)
@click.option("--to-sequence", type=click.IntRange(1), default=sys.maxsize, help="Last commit (default: the newest).")
@click.option("--since", help="Only commits with an as_of at or after this mission time, ISO 8601.")
@click.option("--until", help="Only commits with an as_of before this mission time, ISO 8601.")
@click.option(
    "--shadow",
    default="",
    help="Directory of the shadow table, which is kept (default: a temporary one next to the lake).",
)
@click.option("--keep", is_flag=True, help="Keep the shadow table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def replay(
    settings: Settings,
    table: str,
    from_sequence: int,
    to_sequence: int,
    since: str | None,
    until: str | None,
    shadow: str,
    keep: bool,
    as_json: bool,
) -> None:
    """Recompute TABLE (or all) from its recorded inputs, and compare it with the live table bit for bit.

    Exit code 0 means identical, 1 different. Only a shadow table is written, and nothing is delivered.
    """
    from sda_platform.audit_log import record
    from sda_platform.cli.replay import comparison_grid, difference_lines, run_replay
    from sda_platform.replay.history import Span

    since_ns = instant(since, "--since") if since else -sys.maxsize
    until_ns = instant(until, "--until") if until else sys.maxsize
    span = Span(from_sequence, to_sequence, since_ns, until_ns)
    found = run_replay(settings, PeopleConsole(stderr=True), table, span, shadow=shadow, keep=keep)
    differ = ", ".join(each.table for each in found if not each.is_identical)
    record(settings.home, "replay", {"table": table, **asdict(span)}, f"differ: {differ}" if differ else "identical")
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        console.print(comparison_grid(found))
        for line in difference_lines(found):
            console.print(line)
    sys.exit(0 if all(each.is_identical for each in found) else 1)


@click.command(short_help="Return dead letters to their landing zones.")
@click.option("--kind", "kinds", multiple=True, help="Error kind, such as bad_length; may be repeated.")
@click.option("--stage", "stages", multiple=True, help="Table that rejected the record; may be repeated.")
@click.option("--source", "sources", multiple=True, help="Sensor (radar-7) or landing zone (radar); may be repeated.")
@click.option("--since", help="Rejected at or after this mission time, ISO 8601.")
@click.option("--until", help="Rejected at or before this mission time, ISO 8601.")
@click.option("--dry-run", is_flag=True, help="List the dead letters, and reprocess nothing.")
@click.option("--into", help="Other directory of landing zones, for a trial.")
@click.pass_obj
@for_people
def reprocess(
    settings: Settings,
    kinds: tuple[str, ...],
    stages: tuple[str, ...],
    sources: tuple[str, ...],
    since: str | None,
    until: str | None,
    dry_run: bool,
    into: str | None,
) -> None:
    """Return dead letters to their landing zones, byte for byte; without a filter, all of them.

    A repeated command changes nothing.
    """
    from sda_platform.audit_log import record
    from sda_platform.cli.reprocess import dead_letter_grid, verdict
    from sda_platform.dead_letters.reprocess_job import reprocess_dead_letters
    from sda_platform.dead_letters.reprocessing import DeadLetterFilter

    chosen = DeadLetterFilter(
        frozenset(kinds),
        frozenset(stages),
        frozenset(sources),
        since_ns=instant(since, "--since") if since else None,
        until_ns=instant(until, "--until") if until else None,
    )
    found = reprocess_dead_letters(lake_of(settings), settings.landing_uri, chosen, into=into, dry_run=dry_run)
    if found.report:
        facts = {"kinds": kinds, "stages": stages, "sources": sources, "since": since, "until": until, "into": into}
        record(settings.home, "reprocess", facts, found.summary)
    console.print(dead_letter_grid(found.going_back))
    for line in verdict(found):
        console.print(line)


@click.command(short_help="Write a simulated world as segments, with its truth.")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--scenario",
    type=click.Choice([*SCENARIOS, CONSTELLATION]),
    default="nominal",
    show_default=True,
    help="What happens.",
)
@click.option("--start", default="2024-11-01T00:00:00Z", show_default=True, help="First mission time, ISO 8601.")
@click.option("--minutes", type=float, default=5.0, show_default=True, help="Mission time to simulate.")
@click.option("--seed", type=int, default=20241101, show_default=True, help="Seed of the simulation.")
@for_people
def simulate(directory: Path, scenario: str, start: str, minutes: float, seed: int) -> None:
    """Write a simulated world as segments, with its truth, into DIRECTORY."""
    from sda_platform.cli.simulated_world import write_simulation

    start_ns = instant(start, "--start")
    count = write_simulation(directory, scenario, start_ns=start_ns, minutes=minutes, seed=seed)
    console.print(f"{count} segments and the truth are in {directory}")


@click.command(short_help="Send simulated observations to the running collector.")
@click.option(
    "--scenario", type=click.Choice([*SCENARIOS, "burst"]), default="nominal", show_default=True, help="What happens."
)
@click.option("--minutes", type=float, default=3.0, show_default=True, help="Mission time to simulate.")
@click.option("--seed", type=int, default=20241101, show_default=True, help="Seed of the simulation.")
@click.pass_obj
@for_people
def feed(settings: Settings, scenario: str, minutes: float, seed: int) -> None:
    """Send simulated observations to the running collector over real sockets; `burst`: radar tenfold for a third."""
    from sda_platform.cli.feeding import feed_collector

    feed_collector(settings, console, scenario=scenario, minutes=minutes, seed=seed)


@click.command(short_help="Convert a file to another format.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", "target", required=True, help="The format: kvn, xml, csv, json, or its full name (oem-xml, tle).")
@click.option("--from", "source", help="The format of FILE, if neither its ending nor its content determines it.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File (default: standard output).")
@click.option("--skip-bad", is_flag=True, help="Leave out records that cannot be decoded, and list them.")
@click.pass_obj
@for_people
def convert(settings: Settings, file: Path, target: str, source: str | None, out: Path | None, skip_bad: bool) -> None:
    """Convert FILE, which may be compressed, to another format.

    It may hold element sets (OMM, TLE), ephemerides (OEM), orbit parameters (OPM), tracking data (TDM) or conjunction
    data messages (CDM). A mapping of the home makes tracking data of a sensor's own columns.
    """
    from sda_platform.cli.convert import convert_file
    from sda_platform.landing.first_lines import Mappings

    mappings = Mappings.of(settings.home)
    done = convert_file(file, target, source=source, skip_bad=skip_bad, mappings=mappings)
    for reason in done.refused:
        click.echo(f"{file}: left out: {reason}", err=True)
    if out:
        out.write_bytes(done.data)
        console.print(f"{done.records:,} records written: {out}")
    else:
        click.echo(done.data, nl=False)
