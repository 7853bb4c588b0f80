"""`sda channel`: the channels through which people are notified."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sda_platform.cli.grammar import lists_rows
from sda_platform.cli.listing import Output, word, words
from sda_platform.cli.people import require_used
from sda_platform.clock import iso_to_second
from sda_platform.settings import Settings
from sda_platform.units import SECOND_NS

if TYPE_CHECKING:
    from sda_platform.notification.channel_state import ChannelState
    from sda_platform.notification.rules import NotifyRules


@dataclass(frozen=True)
class _ListedChannel:
    channel: str
    service: str
    rules: str
    waits_s: float
    problem: str


@click.group(short_help="Channels to people: list, test.")
def channel() -> None:
    """List and test the channels of notify.toml, through which people are notified of alerts."""


@channel.command("list", short_help="List the channels, their rules, and what waits.")
@lists_rows()
@click.pass_obj
def list_channels(settings: Settings, output: Output) -> None:
    """List the channels with their services and rules, since when a message waits, and why."""
    from sda_platform.lake.errors import Misconfigured
    from sda_platform.notification import channel_state
    from sda_platform.notification.channels import address_of, service_of

    rules = _rules(settings)
    found = []
    for name, entry in rules.file.channels.items() if rules else ():
        state = channel_state.load(settings.home.absolute(), name)
        try:
            service, problem = service_of(name, address_of(name, entry)).service_name, _problem(state)
        except Misconfigured as error:
            service, problem = "unknown", str(error)
        names = ", ".join(rule.name for rule in (rules.of_channel(name) if rules else ()))
        found.append(_ListedChannel(name, str(service), names, state.late_s(time.time()), problem))
    columns = (
        word("channel", "channel"),
        words("service", "service"),
        words("rules", lambda each: each.rules or "none"),
        word("message waits", lambda each: f"{each.waits_s:,.0f} s" if each.waits_s else "none"),
        words("problem", lambda each: each.problem or "none"),
    )
    output.show(found, columns, nothing=_nothing(settings))


@channel.command(short_help="Send a test message to each channel.")
@click.argument("names", nargs=-1, metavar="[CHANNEL]...")
@lists_rows()
@click.pass_obj
def test(settings: Settings, names: tuple[str, ...], output: Output) -> None:
    """Send a test message to each CHANNEL (default: all) and print what happened. Exit code 1: not all took it."""
    from sda_platform.notification.channels import send
    from sda_platform.notification.message import PeopleMessage

    rules = _rules(settings)
    if rules is None:
        raise click.ClickException(_nothing(settings))
    channels = rules.file.channels
    for name in names:
        if name not in channels:
            raise click.BadParameter(f"there is no channel {name!r}: {', '.join(channels)}", param_hint="CHANNEL")
    message = PeopleMessage(f"test-{time.time_ns()}", "Test of the SDA platform", "This channel takes messages.")
    results = []
    for name in names or channels:
        problem = send(name, channels[name], message, is_plain_allowed=settings.access.plain_http)
        results.append({"channel": name, "result": "taken" if problem is None else f"not taken: {problem.reason}"})
    output.show(results, (word("channel", "channel"), words("result", lambda each: each["result"])))
    if any(each["result"] != "taken" for each in results):
        sys.exit(1)


def _problem(state: "ChannelState") -> str:
    """Return why a message waits, or why the last one was refused for good, and when."""
    if state.problem or not state.refused:
        return state.problem
    last = state.refused[-1]
    return f"{iso_to_second(round(last.at_s * SECOND_NS))} refused for good: {last.reason}"


def _rules(settings: Settings) -> "NotifyRules | None":
    from sda_platform.notification.rules import NotifyRules

    require_used(settings)
    return NotifyRules.load(settings)


def _nothing(settings: Settings) -> str:
    from sda_platform.notification.rules import rules_path

    return f"no channel is configured: there is no {rules_path(settings)}"
