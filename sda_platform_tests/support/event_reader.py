"""A client of the events as a process: it appends the id of each event to a file, however often it is killed.

    python -m sda_platform_tests.support.event_reader sse http://127.0.0.1:3100 FILE
    python -m sda_platform_tests.support.event_reader nats nats://127.0.0.1:4222 FILE

An event counts as received once its line is whole; then it is acknowledged, or its cursor is where the next start
resumes.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx

_RETRY_S = 0.1
_ANEW_S = 1.0
"""When the server sends again what a killed client had not acknowledged."""


class Received:
    """The file of what was received: a cursor and an id on each line."""

    def __init__(self, path: Path) -> None:
        path.touch()
        whole = path.read_bytes().rpartition(b"\n")[0]
        os.truncate(path, len(whole) + bool(whole))
        self._lines = [line.split() for line in whole.decode().splitlines()]
        self._file = path.open("a", buffering=1)

    @property
    def cursor(self) -> str:
        """That of the last line."""
        return self._lines[-1][0] if self._lines else "first"

    def write(self, cursor: str, event: str) -> None:
        """Append a line."""
        self._file.write(f"{cursor} {event}\n")
        self._lines.append([cursor, event])


def ids(path: Path) -> list[str]:
    """The ids of the events in a file of `Received`, in the order of their reception."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [fields[1] for fields in map(str.split, lines) if len(fields) > 1]


def read_sse(url: str, received: Received) -> None:
    """Read the stream of server-sent events, as a browser does, for ever."""
    while True:
        headers, cursor = {"Accept": "text/event-stream", "Last-Event-ID": received.cursor}, ""
        try:
            with httpx.stream("GET", f"{url}/events", headers=headers, timeout=30) as answer:
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        cursor = value
                    elif name == "data" and value != "{}":
                        received.write(cursor, json.loads(value)["id"])
        except httpx.HTTPError:
            time.sleep(_RETRY_S)


async def read_nats(url: str, received: Received) -> None:
    """Take messages by a durable consumer of the stream, for ever."""
    import nats
    from nats.errors import TimeoutError as NothingNew
    from nats.js.api import ConsumerConfig

    async def ignored(_: Exception) -> None:
        """A server that is down is tried again."""

    while True:
        try:
            client = await nats.connect(url, allow_reconnect=False, error_cb=ignored, connect_timeout=2)
            stream = client.jetstream(timeout=2)
            consumer: Any = await stream.pull_subscribe(
                "sda.>", durable="judge", stream="SDA", config=ConsumerConfig(ack_wait=_ANEW_S)
            )
            while not client.is_closed:
                try:
                    messages = await consumer.fetch(10, timeout=0.5)
                except NothingNew:
                    continue
                for message in messages:
                    if message.subject != "sda.place":
                        received.write(message.headers["Sda-Cursor"], json.loads(message.data)["id"])
                    await message.ack()
        except (OSError, nats.errors.Error):
            await asyncio.sleep(_RETRY_S)


if __name__ == "__main__":
    kind, address, file = sys.argv[1:]
    if kind == "sse":
        read_sse(address, Received(Path(file)))
    else:
        asyncio.run(read_nats(address, Received(Path(file))))
