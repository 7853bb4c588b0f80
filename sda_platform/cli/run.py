"""`sda run`: the runs of the platform."""

import click

from sda_platform.cli.grammar import lists_rows
from sda_platform.cli.listing import Output, word, words
from sda_platform.clock import iso_to_second
from sda_platform.settings import Settings

_COLUMNS = (
    word("run", lambda run: run.run_id[:8]),
    word("job", "job"),
    word("state", "state"),
    word("begun", lambda run: iso_to_second(run.begun_time_ns)),
    word("took", lambda run: "" if run.lasted_s is None else f"{run.lasted_s:,.0f} s"),
    words("reason", lambda run: " ".join(filter(None, (run.failure, run.reason)))),
    word("page", lambda run: run.url),
)


@click.group(short_help="Runs: state, reason of a failure, page.")
def run() -> None:
    """Show the runs of the platform."""


@run.command(name="list", short_help="List the newest runs.")
@click.option("--failed", is_flag=True, help="Failed ones.")
@lists_rows(limit=100)
@click.pass_obj
def list_runs(settings: Settings, failed: bool, output: Output) -> None:
    """List the newest runs, and why one failed, in wall time."""
    import dagster as dg

    from sda_platform.observability.past_runs import past_runs
    from sda_platform.runtime import platform_home

    platform_home.require_home(settings.home, settings.lake_uri, settings.landing_uri)
    home = settings.home.absolute()
    state = platform_home.running_platform(home)
    place = platform_home.dagster_home(home)
    if not (place / "dagster.yaml").exists():
        output.show([], _COLUMNS, nothing="no platform has run in this home")
        return
    ui_url = settings.ui_url or (state["addresses"]["webserver"] if state else settings.shown_ui_url)
    with dg.DagsterInstance.from_config(str(place)) as instance:
        found = past_runs(instance, ui_url.rstrip("/"), "failure" if failed else None, output.limit)
        output.show(found, _COLUMNS, nothing="no run")
