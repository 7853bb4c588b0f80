"""`sda collector feed`: a simulated world around the fleet, sent as its time comes, and the ledger at the end."""

import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from sda_platform.cli.collector.feeder import BURST, Feeder, feed
from sda_platform.cli.collector.report import read_report, source_grid
from sda_platform.cli.platform.simulated_world import observed_world
from sda_platform.clock import MissionClock
from sda_platform.edge.address import Address
from sda_platform.formats.fleet import protected_fleet
from sda_platform.settings import Settings

_SETTLED_S = 3.0


def feed_collector(settings: Settings, console: Console, *, scenario: str, minutes: float, seed: int) -> None:
    """Send ``minutes`` of mission time, and print what the collector made of it. Raises PlatformError, OSError."""
    clock, feeder = MissionClock.load(settings.home), Feeder(settings.home, settings.landing_uri)
    start_ns, duration_ns = clock.now_ns(), round(minutes * 60e9)
    burst_from_ns = start_ns + duration_ns // 3 if scenario == "burst" else None
    world = observed_world(
        "nominal" if scenario == "burst" else scenario,
        start_ns=start_ns,
        duration_s=minutes * 60.0,
        seed=seed,
        objects=[member.norad_id for member in protected_fleet()],
    )
    if burst_from_ns is not None:
        console.print(f"radar frames are sent {BURST} times in the middle third")
    with feeder.connected():
        reported_ns = start_ns
        for segment in feed(world, feeder, now_ns=clock.now_ns, burst_from_ns=burst_from_ns, burst_ns=duration_ns // 3):
            if segment.available_time_ns - reported_ns >= 10_000_000_000:
                reported_ns = segment.available_time_ns
                console.print(rates_line(read_report(settings.home)))
        time.sleep(_SETTLED_S)
        report = read_report(settings.home)
        console.print(source_grid(report))
        for line in balance_lines(report):
            console.print(line)
    console.print("sent: " + ", ".join(f"{kind} {count:,}" for kind, count in feeder.sent.items()))


def collector_config(archive: Address, backlog_max_bytes: int | None = None, control_port: int = 0) -> str:
    """Sources of this machine for a simulated world, at free ports; telescopes' records are polled from ``archive``.

    ``control_port``: where the collector has `/health` and `/metrics`; 0: at a free port.
    """
    bound = "" if backlog_max_bytes is None else f"backlog_max_bytes = {backlog_max_bytes}\n"
    return (
        f'[collector]\ncontrol = "127.0.0.1:{control_port}"\n{bound}\n'
        '[sources.radars]\nkind = "radar"\nbind = "127.0.0.1:0"\n\n'
        '[sources.links]\nkind = "isl"\nbind = "127.0.0.1:0"\n\n'
        f'[sources.telescopes]\nkind = "optical"\nurl = "http://{archive}/records"\npoll_interval_s = 1.0\n'
    )


def rates_line(report: dict[str, Any]) -> str:
    """Rates and what was shed, in one line."""
    rates = ", ".join(f"{each['name']} {each['rate_per_s']:,.0f}/s" for each in report["sources"])
    deferred, dropped = (sum(each[name] for each in report["sources"]) for name in ("deferred", "dropped"))
    saturated = f"; saturated: {', '.join(report['saturated'])}" if report["saturated"] else ""
    return f"collector: {rates}; deferred {deferred:,}, dropped {dropped:,}{saturated}"


def balance_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the ledger of each source: every record that was received is sealed, dropped or in flight."""
    for each in report["sources"]:
        left = each["received"] - each["sealed"] - each["dropped"] - each["in_flight"]
        verdict = "balanced" if not left else f"{left:,} records are missing"
        yield (
            f"{each['name']}: received {each['received']:,} = sealed {each['sealed']:,} (deferred {each['deferred']:,})"
            f" + dropped {each['dropped']:,} + in flight {each['in_flight']:,}: {verdict}"
        )
