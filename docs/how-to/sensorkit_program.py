"""A program for SensorKit 2.0: it offers and submits what the platform has scheduled for one telescope.

Copy it to the observatory. `SCHEDULE_URL` is the address of `sda catalog serve`; `SCHEDULE_SENSOR` is the sensor's id
in the platform. SensorKit needs Python 3.13; nothing of the platform is needed here.
"""

import asyncio
import contextlib
import json
import os
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import sensorkit.api as sk
from sensorkit.std.collect import StandardCollectTask

URL = os.environ.get("SCHEDULE_URL", "http://127.0.0.1:3100/schedule")
SENSOR = os.environ.get("SCHEDULE_SENSOR", "optical-1")
REFRESH_S = 60.0


def read_schedule(url: str, sensor: str, since: datetime) -> list[dict[str, Any]]:
    """The observations of ``sensor`` that end after ``since``."""
    query = urlencode({"format": "sensorkit", "source_id": sensor, "since": since.isoformat()})
    with urllib.request.urlopen(f"{url}?{query}", timeout=10.0) as answer:  # noqa: S310 - the operator set the address
        found: list[dict[str, Any]] = json.load(answer)
    return found


@sk.declare_program
class ScheduledObservations:
    """Offers the scheduled times, and submits each observation once, when its time has come."""

    def __init__(self, url: str = URL, sensor: str = SENSOR) -> None:
        self._url, self._sensor = url, sensor
        self._planned: list[dict[str, Any]] = []
        self._submitted: set[tuple[str, str]] = set()
        self._refreshing: asyncio.Task[None] | None = None

    @sk.on_enable
    async def start(self) -> None:
        """Offer what is scheduled, and follow the schedule from now on."""
        self._refreshing = asyncio.create_task(self._follow(sk.program()))

    @sk.on_disable
    async def stop(self) -> None:
        """Stop following the schedule."""
        if self._refreshing is not None:
            self._refreshing.cancel()

    @sk.task_factory
    async def next_task(self) -> sk.TaskSubmission | None:
        """The observation whose time it is and that was not submitted before."""
        now = datetime.now(UTC)
        for each in self._planned:
            key = each["request_id"], each["offer"]["begin"]
            begin, end = (datetime.fromisoformat(each["offer"][name]) for name in ("begin", "end"))
            if key not in self._submitted and begin <= now < end:
                self._submitted.add(key)
                submission = each["submission"]
                task = StandardCollectTask.model_validate(submission["task"])
                return task.submit(expiry_time=datetime.fromisoformat(submission["expiry_time"]))
        return None

    async def _follow(self, program: Any) -> None:
        while True:
            # The last schedule remains in force while the platform does not answer.
            with contextlib.suppress(OSError, ValueError):
                since = datetime.now(UTC) - timedelta(seconds=1)
                self._planned = await asyncio.to_thread(read_schedule, self._url, self._sensor, since)
                program.clear_offers()
                for each in self._planned:
                    begin, end = (datetime.fromisoformat(each["offer"][name]) for name in ("begin", "end"))
                    program.add_offer(begin, end)
                await program.publish_offers()
            await asyncio.sleep(REFRESH_S)


@sk.service_entrypoint(version="1.0")
async def main(service: sk.Service) -> None:
    """Run as a service of SensorKit."""
    service.include(ScheduledObservations(), name="scheduled_observations")
    await service.run()
