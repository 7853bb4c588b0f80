"""`sda collector`: run the collector, see its sources, and send simulated observations to it."""

import sys
from pathlib import Path

import click

from sda_platform.cli.grammar import PATH, default_option, lists_rows
from sda_platform.cli.listing import Output
from sda_platform.cli.people import SCENARIOS, console
from sda_platform.settings import Settings


@click.group(short_help="Collector of sensors' and partners' data: run, status, feed.")
def collector() -> None:
    """Receive data of sensors and partners, show the sources, and send simulated observations to them."""


@collector.command(short_help="Receive data of sensors and partners.")
@click.option("--config", type=PATH, help="File of sources (default: SDA_COLLECT, or collect.toml in the home).")
@click.pass_obj
def run(settings: Settings, config: Path | None) -> None:
    """Receive data of sensors and partners until Ctrl-C or SIGTERM. `sda up` does this if collect.toml exists."""
    from sda_platform.edge.service import run_collector

    sys.exit(
        run_collector(
            config or settings.collect_path,
            landing_root=settings.landing_uri,
            home=settings.home,
            fleet=settings.screening,
        )
    )


@collector.command(short_help="List the sources of the running collector.")
@lists_rows()
@click.pass_obj
def status(settings: Settings, output: Output) -> None:
    """List the sources of the running collector: state, rate, last record, dropped records."""
    from sda_platform.cli.collector.report import agents_of, read_report, source_grid

    report = read_report(settings.home)
    if output.is_table:
        console.print(source_grid(report, agents_of(settings)))
    else:
        output.show(report["sources"], document=report)


@collector.command(short_help="Send simulated observations to the running collector.")
@default_option("--scenario", type=click.Choice([*SCENARIOS, "burst"]), default="nominal", help="What happens.")
@default_option("--minutes", type=float, default=3.0, help="Mission time to simulate.")
@default_option("--seed", type=int, default=20241101, help="Seed of the simulation.")
@click.pass_obj
def feed(settings: Settings, scenario: str, minutes: float, seed: int) -> None:
    """Send simulated observations to the running collector over real sockets; `burst`: radar tenfold for a third."""
    from sda_platform.cli.collector.feeding import feed_collector

    feed_collector(settings, console, scenario=scenario, minutes=minutes, seed=seed)
