"""The run of `sda feed`: a simulated world around the fleet, sent as its time comes, and the ledger at the end."""

import time

from rich.console import Console

from sda_platform.cli.demo import observed_world
from sda_platform.cli.feeder import BURST, Feeder, feed
from sda_platform.cli.sources import read_report, source_grid
from sda_platform.clock import MissionClock
from sda_platform.conjunction.fleet import protected_fleet
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
                console.print(_line(read_report(settings.home)), markup=False)
        time.sleep(_SETTLED_S)
        console.print(source_grid(read_report(settings.home)))
    console.print("sent: " + ", ".join(f"{kind} {count:,}" for kind, count in feeder.sent.items()))


def _line(report: dict) -> str:  # type: ignore[type-arg]  # JSON
    """Rates and what was shed, in one line."""
    rates = ", ".join(f"{each['name']} {each['rate_per_s']:,.0f}/s" for each in report["sources"])
    deferred, dropped = (sum(each[name] for each in report["sources"]) for name in ("deferred", "dropped"))
    saturated = f"; saturated: {', '.join(report['saturated'])}" if report["saturated"] else ""
    return f"{rates}; deferred {deferred:,}, dropped {dropped:,}{saturated}"
