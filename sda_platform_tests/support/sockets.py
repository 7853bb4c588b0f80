"""What each listener of the platform answers, by credential: the test opens each, and the threat model shows them.

A test tries every row at a real socket (`unit/test_sockets.py`, `system/test_platform.py`), so the page cannot
promise what the code does not do.
"""

from typing import Final, NamedTuple


class Attempt(NamedTuple):
    """``who`` sends to a ``listener`` of the page of access, and what happens to it."""

    listener: str
    who: str
    outcome: str


UI: Final = "Dagster's UI and GraphQL"
CODE_SERVER: Final = "Dagster's code server (gRPC)"
ENGINE: Final = "Spark Connect server (gRPC) and the driver's own ports"
WORKERS: Final = "Worker host"
PAGES: Final = "`/health`, `/metrics`"
CATALOGUE: Final = "Lookup endpoint (`sda catalog serve`)"
CONSOLE: Final = "Console, at `/` of the lookup endpoint"
COLLECTOR: Final = "Collector: control plane, uploads"
FRAMES: Final = "Collector: links, telemetry (TCP)"
RADAR: Final = "Collector: radar (UDP)"
FEED: Final = "`sda collector feed`: simulated archive"
STATION: Final = "`sda ground station`: simulated station"

ATTEMPTS: Final = (
    Attempt(UI, "page under a foreign name", "403"),
    Attempt(UI, "anyone, loopback, no users set", "changes all"),
    Attempt(UI, "anyone, beyond loopback, no users set", "reads"),
    Attempt(UI, "anyone, users set", "401"),
    Attempt(UI, "viewer", "reads"),
    Attempt(UI, "operator", "changes runs and sensors"),
    Attempt(UI, "admin", "changes all"),
    Attempt(CODE_SERVER, "other user of the machine", "refused"),
    Attempt(CODE_SERVER, "the platform's user", "answers"),
    Attempt(ENGINE, "no token, wrong token", "refused"),
    Attempt(ENGINE, "no secret, at the driver's own ports", "refused"),
    Attempt(ENGINE, "the token", "executes"),
    Attempt(WORKERS, "other user of the machine", "refused"),
    Attempt(WORKERS, "the platform's user", "answers"),
    Attempt(PAGES, "page under a foreign name", "403"),
    Attempt(PAGES, "anyone", "reads"),
    Attempt(CATALOGUE, "page under a foreign name", "403"),
    Attempt(CATALOGUE, "anyone, loopback, no clients set", "reads, writes"),
    Attempt(CATALOGUE, "anyone, clients set", "reads; a write: 401"),
    Attempt(CATALOGUE, "client, object of another", "403"),
    Attempt(CATALOGUE, "client, own object", "writes"),
    Attempt(CATALOGUE, "anyone, reading needs a login", "401; console: 401"),
    Attempt(CATALOGUE, "client, reading needs a login", "reads; console: reads"),
    Attempt(CONSOLE, "page of another origin", "403"),
    Attempt(CONSOLE, "anyone, loopback, no users set", "reads, acts on alerts, sees contacts"),
    Attempt(CONSOLE, "anyone, beyond loopback, no users set", "reads; acting: 403"),
    Attempt(CONSOLE, "anyone, users set", "reads; acting: 401"),
    Attempt(CONSOLE, "viewer", "reads; acting: 403"),
    Attempt(CONSOLE, "operator, admin", "reads, acts on alerts, sees contacts"),
    Attempt(COLLECTOR, "page under a foreign name", "403"),
    Attempt(COLLECTOR, "anyone, loopback, no token set", "reads, lands"),
    Attempt(COLLECTOR, "anyone, token set", "401"),
    Attempt(COLLECTOR, "the token", "reads, lands"),
    Attempt(FRAMES, "anyone, no options", "lands"),
    Attempt(FRAMES, "address that is not allowed", "closed"),
    Attempt(FRAMES, "no certificate of the authority", "closed"),
    Attempt(FRAMES, "certificate of the authority", "lands"),
    Attempt(RADAR, "anyone, no options", "lands"),
    Attempt(RADAR, "address that is not allowed", "left out"),
    Attempt(RADAR, "address that is allowed", "lands"),
    Attempt(FEED, "page under a foreign name", "403"),
    Attempt(FEED, "anyone", "reads"),
    Attempt(STATION, "page of another origin", "403"),
    Attempt(STATION, "older token", "refused"),
    Attempt(STATION, "newest token", "executes"),
    Attempt(STATION, "newest token, keys set, no signature", "401"),
)


def stated(listener: str) -> dict[str, str]:
    """What happens to each sender to ``listener``."""
    return {each.who: each.outcome for each in ATTEMPTS if each.listener == listener}


def as_markdown() -> str:
    """The table of the threat model: a row for each listener."""
    lines = ["| Listener | Who sends: what happens |", "|---|---|"]
    for listener in dict.fromkeys(each.listener for each in ATTEMPTS):
        tried = [f"{who}: **{outcome}**" for who, outcome in stated(listener).items()]
        lines.append(f"| {listener} | {'; '.join(tried)} |")
    return "\n".join(lines)
