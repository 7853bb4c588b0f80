"""`sda ground state`: replicated state of stations on PostgreSQL."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sda_platform.cli.grammar import default_option, lists_rows
from sda_platform.cli.listing import Output, number, word
from sda_platform.foreign_text import printable
from sda_platform.settings import Settings

if TYPE_CHECKING:
    from sda_platform.ground.station_state import StationState

_PROMOTION_LEASE_S = 300
"""Longer than each step of a promotion may take: it holds although etcd does not answer meanwhile."""
_MODES = ("leader", "session", "consistent_prefix", "bounded", "any_follower")
_COLUMNS = (
    word("server", "name"),
    word("role", lambda server: "leader" if server.is_leader else "follower"),
    number("generation", "generation"),
    number("missing bytes", lambda server: f"{server.lag_bytes:,}"),
    number("lag", lambda server: f"{server.lag_s:.1f} s"),
)


@click.group(name="state", short_help="Replicated state of stations.")
def station_state() -> None:
    """Keys and values on a PostgreSQL leader and its followers (SDA_STATION_STATE)."""


@station_state.command(short_help="List leader and followers with their lag.")
@lists_rows()
@click.pass_obj
def replicas(settings: Settings, output: Output) -> None:
    """List every server that answers: its generation, and how far it is behind the leader."""
    with _opened(settings) as state:
        output.show(state.statuses(), _COLUMNS)


@station_state.command(short_help="Store a value.")
@click.argument("key")
@click.argument("value")
@click.pass_obj
def put(settings: Settings, key: str, value: str) -> None:
    """Store VALUE under KEY; prints the position, which `get --after` takes."""
    with _opened(settings) as state:
        state.create()
        click.echo(state.write(key, value))


@station_state.command(short_help="Read a value.")
@click.argument("key")
@default_option("--mode", type=click.Choice(_MODES), default="session", help="What is promised.")
@default_option("--after", type=int, default=0, help="Position of the session's newest write or read.")
@click.pass_obj
def get(settings: Settings, key: str, mode: str, after: int) -> None:
    """Print the value of KEY, and on standard error the server and the position of the session."""
    from sda_platform.ground.read_routing import ReadMode, ReadSession

    session = ReadSession(written=after, read=after)
    with _opened(settings) as state:
        value, name = state.read(key, ReadMode(mode), session)
    click.echo(f"{name}, position {session.read}", err=True)
    if value is None:
        raise click.ClickException(f"{name} has no value of {key}")
    click.echo(printable(value) if sys.stdout.isatty() else value)


@station_state.command(short_help="Make a follower the leader.")
@click.argument("name")
@click.option("--synchronous", required=True, help="The follower that acknowledges writes from now on.")
@click.option("--accept-loss", is_flag=True, help="Also where an acknowledged write may be missing.")
@click.pass_obj
def promote(settings: Settings, name: str, synchronous: str, accept_loss: bool) -> None:
    """Make the follower NAME the leader of a new generation. It must have every acknowledged write.

    With SDA_ETCD it holds a lease, so that two promotions exclude each other.
    """
    with _opened(settings) as state, _alone(settings):
        generation = state.promote(name, synchronous=synchronous, accept_loss=accept_loss)
    click.echo(f"{name} leads generation {generation}")


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Hold the lease of promotions, where the platform has an etcd."""
    if not settings.etcd:
        yield
        return
    from sda_platform.orchestration.leases import EtcdLeases, holding

    with holding(EtcdLeases(settings.etcd, settings.site), "station-state", _PROMOTION_LEASE_S):
        yield


@contextmanager
def _opened(settings: Settings) -> "Iterator[StationState]":
    from sda_platform.ground.station_state import StationState

    if not settings.station_state:
        raise click.ClickException("no station state: set SDA_STATION_STATE to the addresses of its servers")
    state = StationState(settings.station_state)
    try:
        yield state
    finally:
        state.close()
