"""`sda alert`: what a person does with one alert."""

import getpass
from pathlib import Path

import click

from sda_platform.cli.people import console, for_people, lake_of, write_text
from sda_platform.settings import Settings


@click.group()
def alert() -> None:
    """Acknowledge an alert, or report on it."""


@alert.command()
@click.argument("alert_id", metavar="ALERT")
@click.option("--by", default=getpass.getuser, help="Who acknowledges it (default: the user of this machine).")
@click.option("--comment", default="", help="A remark for others.")
@click.pass_obj
@for_people
def ack(settings: Settings, alert_id: str, by: str, comment: str) -> None:
    """Acknowledge the current revision of ALERT (an id or its beginning); when this ends, that is durable."""
    from sda_platform.conjunction.acknowledging import acknowledge
    from sda_platform.observability.trace import current_alert

    lake = lake_of(settings)
    known = current_alert(lake, alert_id)
    facts = {"alert_id": known["event_id"], "revision": known["sequence"]}
    acknowledge(lake, settings.landing_uri, **facts, by=by, comment=comment)
    console.print(f"acknowledged revision {known['sequence']} of alert {known['event_id']} by {by}")


@alert.command()
@click.argument("alert_id", metavar="ALERT")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The page, .html.")
@click.option("--czml", type=click.Path(path_type=Path, dir_okay=False), help="Also both orbits as CZML, for Cesium.")
@click.pass_obj
@for_people
def report(settings: Settings, alert_id: str, out: Path, czml: Path | None) -> None:
    """Write a report of ALERT (an id or its beginning): one HTML page that needs no network."""
    from sda_platform.cli.alerts import trace_lines
    from sda_platform.conjunction.acknowledging import known_acknowledgements
    from sda_platform.conjunction.alert_page import AlertReport
    from sda_platform.conjunction.data_origins import data_origins
    from sda_platform.conjunction.history import EventHistory
    from sda_platform.conjunction.resource import policy_in_force
    from sda_platform.observability.trace import trace_alert

    lake = lake_of(settings)
    story = trace_alert(lake, alert_id)
    seen = known_acknowledgements(lake, settings.landing_uri).get(story.alert_id, ())
    history = EventHistory.of_correction_log(story.assessments, story.messages, policy_in_force(lake))
    origins = data_origins(lake, [history.last])
    page = AlertReport(story.alert_id, story.alerts, history, seen, list(trace_lines(story))[1:], origins)
    files = {out: page.html()} | ({czml: page.czml()} if czml else {})
    for path, text in files.items():
        write_text(path, text)
        console.print(f"written: {path}")
