"""Commands that bring data in, and simulate or convert data."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.progress import Progress

from sda_platform.cli.grammar import FILE, FOLDER, PATH, default_option, instant
from sda_platform.cli.people import CONSTELLATION, SCENARIOS, console
from sda_platform.counts import counted
from sda_platform.formats.markings import DATA_MODES, classification_of
from sda_platform.settings import Settings

_once = click.option("--once", "is_once", is_flag=True, help="Leave the collector's configuration as it is.")


@click.command(short_help="Land files: verify them and seal them as segments.")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--feed", help="Landing zone (default: that of the format).")
@click.option("--format", "segment_format", help="Segment format, if the file ending does not determine it.")
@click.option(
    "--rank",
    type=click.IntRange(0, 100),
    help="Rank of the element sets: at equal epochs the higher wins (default: 0).",
)
@click.option("--classification", help="Classification of all records: U, C, S, or another text.")
@click.option("--data-mode", type=click.Choice(DATA_MODES), help="What all records are of.")
@click.option("--complete", is_flag=True, help="Accept a file whose last record has no end.")
@click.pass_obj
def land(
    settings: Settings,
    files: tuple[Path, ...],
    feed: str | None,
    segment_format: str | None,
    rank: int | None,
    classification: str | None,
    data_mode: str | None,
    complete: bool,
) -> None:
    """Land FILES: verify them, and seal them as segments of a landing zone.

    Files may have any size and may be compressed. Landing a file again continues where it stopped, or does nothing.
    Records that no table will use are listed; they become dead letters. Exit code 1 where there are some.
    """
    from sda_platform.audit_log import user
    from sda_platform.catalog.sites import site_keys
    from sda_platform.catalog.tables import EPHEMERIDES_FEED
    from sda_platform.cli.data.refused_records import RefusedRecords
    from sda_platform.clock import MissionClock
    from sda_platform.formats.segments import Sender
    from sda_platform.lake.lake import Lake, without_session
    from sda_platform.landing.first_lines import Mappings
    from sda_platform.landing.lander import Lander
    from sda_platform.list_settings import SensorFile
    from sda_platform.published import CATALOGUE, url_of

    clock, refused_in_all = MissionClock.load(settings.home), 0
    for path in files:
        refused = RefusedRecords(
            Lake(settings.lake_uri, clock, without_session),
            site_keys(settings.access.sites),
            SensorFile(**settings.fusion.model_dump(include=set(SensorFile.model_fields))),
        )
        with _reading(path) as report:
            lander = Lander(
                settings.landing_uri,
                clock,
                segment_max_bytes=settings.segment_max_bytes,
                report=report,
                sender=Sender(user(), rank=rank, classification=classification_of(classification), data_mode=data_mode),
                on_segment=refused.examine,
                mappings=Mappings.of(settings.home),
            )
            done = lander.land(path, feed=feed, segment_format=segment_format, is_complete=complete)
        if not done.records:
            verdict = "it has no records"
        elif not done.segments:
            verdict = "nothing to do: these bytes were landed before"
        elif len(done.segments) == 1:
            verdict = f"{counted(done.records, 'record')} in {done.segments[0]}"
        else:
            of = f"{len(done.segments):,} segments, the last is {done.segments[-1]}"
            verdict = f"{counted(done.records, 'record')}; {of}"
        more = f"; {refused.count:,} of them refused" if refused.count else ""
        console.print(f"{path} → {done.zone}: {verdict}{more}")
        for line in refused.lines():
            console.print(f"  {line}")
        if done.zone == EPHEMERIDES_FEED and done.records:
            endpoint = url_of(settings.home, CATALOGUE)
            how = f"curl {endpoint}" if endpoint else "once `sda up` serves the catalogue, GET "
            console.print(f"  what becomes of it: {how}/ephemerides/{done.short_hash}")
        refused_in_all += refused.count
    sys.exit(int(refused_in_all > 0))


@click.group(short_help="Fetch what one downloads of a provider: space-track, celestrak.")
def connect() -> None:
    """Fetch what one downloads of a provider now, and have the collector of `sda up` fetch it from now on.

    A repetition requests only what is due by the limits of the provider. Exit code 1 where a request fails.
    """


@connect.command("space-track", short_help="Element sets and messages of Space-Track.")
@_once
@click.pass_obj
def connect_space_track(settings: Settings, is_once: bool) -> None:
    """Fetch element sets of all objects and public messages of the fleet from Space-Track.

    SPACETRACK_USER and SPACETRACK_PASSWORD hold the account. Facts of objects and space weather come from CelesTrak.
    """
    _connect(settings, "space-track", is_once=is_once)


@connect.command("celestrak", short_help="Element sets of CelesTrak; no account.")
@_once
@click.pass_obj
def connect_celestrak(settings: Settings, is_once: bool) -> None:
    """Fetch element sets of active satellites and debris, facts of objects and space weather from CelesTrak."""
    _connect(settings, "celestrak", is_once=is_once)


def _connect(settings: Settings, provider: str, *, is_once: bool) -> None:
    from sda_platform.cli.data.connect import connect_provider

    sys.exit(int(not connect_provider(settings, provider, console.print, is_once=is_once)))


@contextmanager
def _reading(path: Path) -> Iterator[Callable[[str, int], None]]:
    """A bar for the reading of a file; it goes away when the file is read."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=path.stat().st_size if path.is_file() else None)
        yield lambda stage, position: bar.update(task, description=f"{stage} {path.name}", completed=position)


@click.command(short_help="Write a simulated world as segments, with its truth.")
@click.argument("directory", type=FOLDER)
@default_option("--scenario", type=click.Choice([*SCENARIOS, CONSTELLATION]), default="nominal", help="What happens.")
@default_option("--start", default="2024-11-01T00:00:00Z", help="First mission time, ISO 8601.")
@default_option("--minutes", type=float, default=5.0, help="Mission time to simulate.")
@default_option("--seed", type=int, default=20241101, help="Seed of the simulation.")
def simulate(directory: Path, scenario: str, start: str, minutes: float, seed: int) -> None:
    """Write a simulated world as segments, with its truth, into DIRECTORY."""
    from sda_platform.cli.platform.simulated_world import write_simulation

    start_ns = instant(start, "--start")
    count = write_simulation(directory, scenario, start_ns=start_ns, minutes=minutes, seed=seed)
    console.print(f"{count} segments and the truth are in {directory}")


@click.command(short_help="Convert a file to another format.")
@click.argument("file", type=PATH)
@click.option("--to", "target", required=True, help="The format: kvn, xml, csv, json, or its full name (oem-xml, tle).")
@click.option("--from", "source", help="The format of FILE, if neither its ending nor its content determines it.")
@click.option("--out", type=FILE, help="File (default: standard output).")
@click.option("--skip-bad", is_flag=True, help="Leave out records that cannot be decoded, and list them.")
@click.pass_obj
def convert(settings: Settings, file: Path, target: str, source: str | None, out: Path | None, skip_bad: bool) -> None:
    """Convert FILE, which may be compressed, to another format.

    It may hold element sets (OMM, TLE), ephemerides (OEM), orbit parameters (OPM), tracking data (TDM) or conjunction
    data messages (CDM). A mapping of the home makes tracking data of a sensor's own columns.
    """
    from sda_platform.cli.data.convert import convert_file
    from sda_platform.landing.first_lines import Mappings

    mappings = Mappings.of(settings.home)
    done = convert_file(file, target, source=source, skip_bad=skip_bad, mappings=mappings)
    for reason in done.refused:
        click.echo(f"{file}: left out: {reason}", err=True)
    if out:
        out.write_bytes(done.data)
        console.print(f"{counted(done.records, 'record')} written: {out}")
    else:
        click.echo(done.data, nl=False)
