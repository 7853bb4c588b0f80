"""`sda channel`: the channels through which people are notified."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sda_platform.cli.grammar import lists_rows
from sda_platform.cli.listing import Output, word, words
from sda_platform.cli.people import console as people
from sda_platform.cli.people import require_used
from sda_platform.clock import iso_to_second
from sda_platform.conjunction.level_colours import ALERT_LEVELS
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


@click.group(short_help="Channels to people: add, list, test.")
def channel() -> None:
    """Add, list and test the channels of notify.toml, through which people are notified of alerts."""


@channel.command(short_help="Add a channel with its rule.")
@click.argument("name")
@click.option("--level", "levels", type=click.Choice(ALERT_LEVELS), multiple=True, help="Only alerts of this level.")
@click.option(
    "--satellite", "satellites", multiple=True, help="Only of this object: its number, or a part of its name."
)
@click.option("--operator", "operators", multiple=True, help="Only of this operator in the fleet file.")
@click.option("--within", help="Only with TCA at most so far ahead, such as 3d, 12h or 90min.")
@click.option(
    "--unacknowledged-for", help="Only once an alert has been without an acknowledgement for so long, such as 30min."
)
@click.option("--quiet", help="Hours without messages, such as 22:00-06:00; what they held comes after them.")
@click.option("--timezone", help="Of the quiet hours, such as Europe/Berlin (default: UTC).")
@click.option("--console", default="", help="Address of the console, with which links in messages begin.")
@click.option("--no-test", is_flag=True, help="Add it without a test message.")
@click.pass_obj
def add(settings: Settings, /, name: str, console: str, no_test: bool, **options: Any) -> None:
    """Add the channel NAME and a rule which sends alerts to it: all of them, or those that the options select.

    Its address is asked for, or read from the standard input: one line in the form of Apprise, such as
    mailtos://user:password@smtp.example.org?to=desk@example.org. It goes to a file that you alone can read. The channel
    is added if it takes a test message. A running platform uses it after seconds.
    """
    from sda_platform.notification.new_channel import add_channel
    from sda_platform.notification.rules import rules_path
    from sda_platform.private_home import make_private

    make_private(settings.home.absolute())
    address = _asked("Address of the channel")
    path = rules_path(settings)
    secret = add_channel(
        path,
        name,
        address,
        {option: [*value] if isinstance(value, tuple) else value for option, value in options.items() if value},
        console=console,
        is_tested=not no_test,
        is_plain_allowed=settings.access.plain_http,
    )
    people.print(f"channel {name}: {'added' if no_test else 'took a test message and is added'}")
    people.print(f"its rule is in {path}, its address in {secret}, readable by you alone")


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
    from sda_platform.notification.message import trial_message

    rules = _rules(settings)
    if rules is None:
        raise click.ClickException(_nothing(settings))
    channels = rules.file.channels
    for name in names:
        if name not in channels:
            raise click.BadParameter(f"there is no channel {name!r}: {', '.join(channels)}", param_hint="CHANNEL")
    message = trial_message()
    results = []
    for name in names or channels:
        problem = send(name, channels[name], message, is_plain_allowed=settings.access.plain_http)
        results.append({"channel": name, "result": "taken" if problem is None else f"not taken: {problem.reason}"})
    output.show(results, (word("channel", "channel"), words("result", lambda each: each["result"])))
    if any(each["result"] != "taken" for each in results):
        sys.exit(1)


def _asked(what: str) -> str:
    """Return a line of the standard input. A person is asked for it, and does not see what is typed."""
    if sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True)).strip()
    return sys.stdin.readline().strip()


def _problem(state: "ChannelState") -> str:
    """Return why a message waits, or why the last one was refused for good, and when."""
    if state.problem or not state.refused:
        return state.problem
    last = state.refused[-1]
    return f"{iso_to_second(round(last.at_s * SECOND_NS))} refused for good: {last.reason}"


def _rules(settings: Settings) -> "NotifyRules | None":
    from sda_platform.notification.rules import NotifyRules

    rules = NotifyRules.load(settings)
    if rules is None:  # "none" of a home that is mistyped would read as an answer
        require_used(settings)
    return rules


def _nothing(settings: Settings) -> str:
    from sda_platform.notification.rules import rules_path

    return f"no channel is configured: there is no {rules_path(settings)}"
