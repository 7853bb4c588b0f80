"""`sda alert`: the alerts that hold, and what a person does with one of them."""

import getpass
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sda_platform.cli.grammar import FILE, SPAN, default_option, errors_as_json, json_option, lists_rows, moment_option
from sda_platform.cli.listing import Output, print_facts
from sda_platform.cli.people import console, lake_of, write_key
from sda_platform.conjunction.level_colours import ALERT_LEVELS
from sda_platform.conjunction.selection import ORDERS
from sda_platform.settings import Settings

_alert = click.argument("alert_id", metavar="ALERT")
_all = click.option("--all", "is_whole", is_flag=True, help="Every line (default: of each kind the last 15).")
_MOST = 15


@click.group(short_help="Alerts: list, show, trace, acknowledge, assign, report.")
def alert() -> None:
    """List the active alerts, and show, trace, explain, acknowledge or report one. ALERT is an id or its beginning."""


@alert.command("list", short_help="List the active alerts, highest level first.")
@click.option("--level", "levels", type=click.Choice(ALERT_LEVELS), multiple=True, help="Only alerts of this level.")
@click.option("--satellite", default="", help="Only of this object: its number, or a part of its name.")
@click.option("--operator", help="Only of this operator in the fleet file.")
@click.option("--within", type=SPAN, help="Only with TCA at most so far ahead, such as 3d, 12h or 90min.")
@default_option(
    "--sort",
    type=click.Choice(ORDERS),
    default=ORDERS[0],
    help="What comes first: the highest level, nearest TCA …",
)
@lists_rows(limit=40)
@click.pass_obj
def list_alerts(
    settings: Settings,
    levels: tuple[str, ...],
    satellite: str,
    operator: str | None,
    within: int | None,
    sort: str,
    output: Output,
) -> None:
    """List the active alerts of the subscriber: highest level first, then largest Pc, then nearest TCA.

    The first lines state what the list rests on: the last screening, its span, the age of the element sets, and
    whether the platform runs. With JSON and CSV, they go to the standard error. A limit never leaves out a red alert.
    """
    from sda_platform.cli.alert.current import (
        alert_grid,
        currency_lines,
        current_alerts,
        first_alerts,
        selected_alerts,
        write_alerts,
    )
    from sda_platform.conjunction.selection import EventSelection, UnknownOperator, satellites_of
    from sda_platform.formats.fleet import protected_fleet

    numbers = None
    if operator is not None:
        try:
            numbers = satellites_of(protected_fleet(settings.screening.fleet_file), operator)
        except UnknownOperator as error:
            raise click.BadParameter(str(error), param_hint="--operator") from None
    until_ns = None if within is None else lake_of(settings).clock.now_ns() + within
    active = current_alerts(settings, with_origins=True)
    found = selected_alerts(active, EventSelection(frozenset(levels), satellite, numbers, until_ns), sort)
    output.note(currency_lines(settings))
    if output.is_table:
        console.print(alert_grid(found, output.limit, len(active)))
    elif output.form == "csv":
        write_alerts(settings, first_alerts(found, output.limit), sys.stdout)
    else:
        Output(output.form).show(first_alerts(found, output.limit))


@alert.command(short_help="Show alerts and their histories.")
@click.argument("alert_ids", metavar="ALERT...", nargs=-1, required=True)
@_all
@click.option("--plot", type=FILE, help="Write a PNG: history and geometry; of several alerts, Pc over time.")
@click.pass_obj
def show(settings: Settings, alert_ids: tuple[str, ...], is_whole: bool, plot: Path | None) -> None:
    """Show each ALERT (an id or its beginning): objects, TCA, miss distance, risk, and their history."""
    from sda_platform.cli.alert.show import action_lines, alert_lines, held_lines, stated_lines, write_picture
    from sda_platform.conjunction.currency import Currency
    from sda_platform.conjunction.data_origins import data_origins
    from sda_platform.conjunction.history import EventHistory
    from sda_platform.conjunction.policy_in_force import policy_in_force
    from sda_platform.observability.trace import trace_alert

    lake, policy, most = lake_of(settings), None, None if is_whole else _MOST
    histories = []
    for found in [trace_alert(lake, each) for each in alert_ids]:
        if not found.assessments and not plot:
            console.print_lines(stated_lines(found, Currency.of(lake), most))
        else:
            policy = policy or policy_in_force(lake)
            history = EventHistory.of_correction_log(found.assessments, found.messages, policy)
            console.print_lines(alert_lines(found, history, data_origins(lake, [history.last]), most))
            console.print_lines(held_lines(lake, history.last))
            histories.append(history)
        console.print_lines(action_lines(lake, settings.landing_uri, found.alert_id))
    if plot:
        write_picture(histories, plot)
        console.print(f"  drawn: {plot}")


@alert.command(short_help="Follow an alert back to its raw records.")
@_alert
@_all
@json_option
@click.option(
    "--timeline",
    "page",
    type=FILE,
    help="Write an HTML page with the times of its batches.",
)
@click.option("--otlp", help="Send the same as an OpenTelemetry trace to http://host:4318.")
@click.pass_obj
def trace(
    settings: Settings, alert_id: str, is_whole: bool, as_json: bool, page: Path | None, otlp: str | None
) -> None:
    """Follow ALERT (an id or its beginning) back to its segments and raw records.

    `sda lake impact` goes the other way: from a segment, a sensor or an element set to the alerts that rest on it.
    """
    from sda_platform.cli.alert.trace import send_timelines, write_timelines
    from sda_platform.observability.trace import trace_alert, trace_lines

    lake = lake_of(settings)
    found = trace_alert(lake, alert_id)
    if page:
        write_timelines(lake, found, page)
    if otlp or settings.otlp_endpoint:
        send_timelines(lake, found, otlp or settings.otlp_endpoint)
    print_facts(as_json, found, trace_lines(found, None if is_whole else _MOST))


@alert.command(short_help="Show what was known when an alert was decided, and what is known now.")
@_alert
@moment_option("", "Another moment than the decision")
@json_option
@click.pass_obj
@errors_as_json
def explain(settings: Settings, alert_id: str, as_of: str, as_json: bool) -> None:
    """Show what was known when ALERT (an id or its beginning; @N: its revision N) was decided, and what is known now.

    The JSON names the version of each table; `sda query --as-of FILE.json` reads them again.
    """
    from sda_platform.cli.alert.explanation import explanation_lines
    from sda_platform.history.explanation import explain_alert
    from sda_platform.registry import TABLES_BY_NAME

    found = explain_alert(lake_of(settings), TABLES_BY_NAME, alert_id, as_of)
    print_facts(as_json, found.to_dict(), explanation_lines(found))


@alert.command(short_help="Write the conjunction data message of an alert.")
@_alert
@default_option("--format", "encoding", type=click.Choice(["kvn", "xml"]), default="kvn", help="Encoding.")
@click.option("--out", type=FILE, help="File (default: standard output).")
@click.pass_obj
def cdm(settings: Settings, alert_id: str, encoding: Any, out: Path | None) -> None:
    """Write the conjunction data message (CCSDS 508.0) of ALERT (an id or its beginning), as it was assessed."""
    from sda_platform.cli.alert.message import alert_message
    from sda_platform.formats.fleet import protected_fleet

    fleet = protected_fleet(settings.screening.fleet_file)
    message = alert_message(lake_of(settings), alert_id, encoding, fleet)
    if out:
        out.write_bytes(message)
        console.print(f"written: {out}")
    else:
        click.echo(message.decode(), nl=False)


_by = click.option("--by", default=getpass.getuser, help="Who does it (default: the user of this machine).")


@alert.command(short_help="Acknowledge an alert.")
@_alert
@_by
@click.option("--comment", default="", help="A remark for others.")
@click.pass_obj
def ack(settings: Settings, alert_id: str, by: str, comment: str) -> None:
    """Acknowledge the current revision of ALERT (an id or its beginning); when this ends, that is durable."""
    _act(settings, alert_id, by=by, comment=comment)


@alert.command(short_help="Assign an alert to a person.")
@_alert
@click.argument("person")
@_by
@click.option("--comment", default="", help="A remark for others.")
@click.pass_obj
def assign(settings: Settings, alert_id: str, person: str, by: str, comment: str) -> None:
    """Assign ALERT (an id or its beginning) to PERSON, who acts from now on. An empty name ends the assignment."""
    _act(settings, alert_id, by=by, comment=comment, action="assign", assigned_to=person)


@alert.command(short_help="Comment on an alert.")
@_alert
@click.argument("text")
@_by
@click.pass_obj
def comment(settings: Settings, alert_id: str, text: str, by: str) -> None:
    """Add TEXT to the hand-over log of ALERT (an id or its beginning)."""
    _act(settings, alert_id, by=by, comment=text, action="comment")


def _act(settings: Settings, alert_id: str, *, by: str, **facts: str) -> None:
    from sda_platform.conjunction.acknowledging import act, words_of_action
    from sda_platform.observability.trace import current_alert

    lake = lake_of(settings)
    known = current_alert(lake, alert_id)
    made = act(lake, settings.landing_uri, alert_id=known["event_id"], revision=known["sequence"], by=by, **facts)
    console.print(f"alert {known['event_id']}: {words_of_action(vars(made))} by {made.acknowledged_by}")


@alert.command(short_help="Write a report of an alert.")
@_alert
@click.option("--out", type=FILE, required=True, help="The page, .html.")
@click.option("--czml", type=FILE, help="Also both orbits as CZML, for Cesium.")
@click.pass_obj
def report(settings: Settings, alert_id: str, out: Path, czml: Path | None) -> None:
    """Write a report of ALERT (an id or its beginning): one HTML page that needs no network."""
    from sda_platform.conjunction.acknowledging import known_actions
    from sda_platform.console.event import alert_report
    from sda_platform.observability.trace import trace_alert

    lake = lake_of(settings)
    story = trace_alert(lake, alert_id)
    actions = known_actions(lake, settings.landing_uri, [story.alert_id]).get(story.alert_id, ())
    page = alert_report(lake, settings, story, actions, with_contact=True)
    files = {out: page.html()} | ({czml: page.czml()} if czml else {})
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        console.print(f"written: {path}")


@alert.command("evidence-key", short_help="Make a key that signs evidence bundles.")
@click.argument("file", type=FILE)
def evidence_key(file: Path) -> None:
    """Make an Ed25519 key in FILE, and its public key in FILE.pub, whose fingerprint is printed.

    Keep FILE outside of the platform's home and lake. Give the fingerprint to those who verify, by another way than the
    bundles.
    """
    write_key(file)


@alert.command(short_help="Write a signed bundle of all that an alert rested on.")
@_alert
@click.option("--out", type=FILE, required=True, help="The bundle, .zip.")
@click.option("--key", type=FILE, required=True, help="The private key that signs it (`sda alert evidence-key`).")
@click.pass_obj
def evidence(settings: Settings, alert_id: str, out: Path, key: Path) -> None:
    """Write what the decision on ALERT (an id or its beginning; @N: its revision N) rested on, signed, for a third
    party: `sda alert verify-evidence` needs nothing else.
    """
    from sda_platform.cli.alert.evidence import write_bundle

    console.print_lines(write_bundle(lake_of(settings), settings, alert_id, out, key))


@alert.command("verify-evidence", short_help="Verify an evidence bundle; needs no lake.")
@click.argument("bundle", type=FILE)
@click.option("--key", help="The signer's public key (a PEM file) or its fingerprint.")
@json_option
def verify_evidence(bundle: Path, key: str | None, as_json: bool) -> None:
    """Verify BUNDLE: its signature, every byte, the chains of manifests, and the probability of collision anew.

    The exit code is 0 only where all is as the signer of --key left it.
    """
    from sda_platform.cli.alert.evidence import report_lines
    from sda_platform.evidence.verification import verify
    from sda_platform.signing_keys import trusted_fingerprint

    found = verify(bundle, trusted_fingerprint(key) if key else None)
    print_facts(as_json, {**asdict(found), "verdict": found.verdict}, report_lines(found))
    if found.problems or not found.is_trusted:
        raise click.exceptions.Exit(1)
