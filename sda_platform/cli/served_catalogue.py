"""`sda catalog serve`, `put` and `access`: the lookup endpoint, what it takes, and who asked it."""

import sys
from pathlib import Path

import click

from sda_platform.cli.grammar import FOUND_FILE, json_option, lists_rows
from sda_platform.cli.listing import Output, number, print_facts, word, words
from sda_platform.settings import Settings

_ACCESSES = (
    word("at (UTC)", lambda each: each.at_utc[:19].replace("T", " ")),
    words("client", "client"),
    words("address", "peer"),
    word("", "method"),
    words("path and query", "target"),
    number("status", "status"),
    number("bytes", "sent_bytes"),
)


@click.command()
@click.argument("file", type=FOUND_FILE)
@json_option
@click.pass_obj
def put(settings: Settings, file: Path, as_json: bool) -> None:
    """Take the element sets of FILE; when this ends they are durable. Exit code 1 where some were refused."""
    from sda_platform.runtime.serve import put_file

    accepted, refused = put_file(settings, file)
    reasons = (f"  record {each['record']}: {each['kind']}: {each['reason']}" for each in refused)
    lines = (f"{accepted} sets accepted, {len(refused)} refused", *reasons)
    print_facts(as_json, {"accepted": accepted, "refused": refused}, lines)
    sys.exit(int(bool(refused)))


@click.command()
@click.option("--client", default="", help="Only of this client; of a user of the UI: `user NAME`.")
@click.option("--text", default="", help="Only where the path or the query contains this text.")
@click.option("--writes", is_flag=True, help="Only what writes.")
@lists_rows(limit=100)
@click.pass_obj
def access(settings: Settings, client: str, text: str, writes: bool, output: Output) -> None:
    """Who read and wrote what at the lookup endpoint: its last requests, where it keeps a log of accesses."""
    from sda_platform.cli.people import require_used
    from sda_platform.serving.access_log import DIRECTORY, newest

    require_used(settings)
    most = output.limit or sys.maxsize
    found = newest(settings.home / DIRECTORY, most, client, text, writes=writes)
    output.show(found, _ACCESSES, nothing="no access was recorded")


@click.command()
@click.option("--host", help="Address of the server (default: SDA_SERVING_HOST, or 127.0.0.1).")
@click.option("--port", type=click.IntRange(1, 65535), help="Port (default: SDA_SERVING_PORT, or 3100).")
@click.pass_obj
def serve(settings: Settings, host: str | None, port: int | None) -> None:
    """Serve the catalogue over HTTP: objects, history, states, conjunctions, alerts; /openapi.json describes it."""
    from sda_platform.runtime.serve import run_endpoint

    host, port = host or settings.serving.host, port or settings.serving.port
    run_endpoint(settings, host=host, port=port)
